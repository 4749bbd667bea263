"""Is this a reconstruction? Said from the observations alone.

What tells true from false is the worst camera, not means or medians: a failed reconstruction often has a small median
residual, all depths positive and a low cost, and a few cameras that nothing agrees with. The thresholds here are those
of a rule of thumb; they have not been fitted yet.
"""

from dataclasses import dataclass

import numpy as np

from initfree.arrays import Array, Tracks
from initfree.upgrade.metric import Metric

INLIER_PIXELS = 4.0
MIN_SHARE = 0.9
MIN_WORST_SHARE = 0.6
MIN_WORST_COUNT = 6
MIN_REDUNDANCY = 0.05
"""Share of equations beyond the unknowns: without any, a perfect fit says nothing."""


@dataclass(frozen=True)
class Certificate:
    """The verdict, its reason in plain words, and what it rests on."""

    accepted: bool
    reason: str
    inlier_share: float
    """observations within 4 px and in front of their camera"""
    worst_camera: int
    worst_share: float
    """the same for the camera with the smallest share"""
    worst_count: int
    """fewest such observations of any camera"""
    median_pixels: float


def metric_residuals(tracks: Tracks, m: Array, pixels: Array, metric: Metric) -> tuple[Array, Array]:
    """Reprojection error in pixels and depth of every observation under the metric cameras."""
    x = np.einsum("nij,nj->ni", metric.R[tracks.cam], metric.xyz[tracks.landmark]) + metric.t[tracks.cam]
    depth = x[:, 2]
    safe = np.where(np.abs(depth) < 1e-12, np.copysign(1e-12, depth), depth)
    projected = metric.focal[tracks.cam][:, None] * x[:, :2] / safe[:, None]
    return np.linalg.norm((projected - m) * pixels, axis=1), depth


def certify(tracks: Tracks, names: tuple[str, ...], m: Array, pixels: Array, metric: Metric) -> Certificate:
    """Accept if nearly all observations fit and every camera is held by a good share of its own."""
    error, depth = metric_residuals(tracks, m, pixels, metric)
    fits = (error <= INLIER_PIXELS) & (depth > 0.0)
    count = np.bincount(tracks.cam, weights=fits, minlength=tracks.cameras)
    share = count / np.bincount(tracks.cam, minlength=tracks.cameras)
    worst = int(np.argmin(share))
    overall = float(np.mean(fits))
    equations = 2 * tracks.observations
    unknowns = 7 * tracks.cameras + 3 * tracks.landmarks - 7
    reasons = []
    if tracks.cameras < 3:
        reasons.append(f"{tracks.cameras} images do not check each other; expected at least 3")
    elif equations - unknowns < MIN_REDUNDANCY * equations:
        reasons.append(f"{equations} equations for {unknowns} unknowns leave nothing to check the fit with")
    if overall < MIN_SHARE:
        reasons.append(f"only {overall:.0%} of the observations lie within {INLIER_PIXELS:g} px in front of their camera")
    if share[worst] < MIN_WORST_SHARE:
        reasons.append(f"image {names[worst]!r} fits only {share[worst]:.0%} of its observations")
    if count.min() < MIN_WORST_COUNT:
        reasons.append(f"image {names[int(np.argmin(count))]!r} is held by {int(count.min())} observations")
    return Certificate(
        accepted=not reasons,
        reason="; ".join(reasons) or "the observations agree with every camera",
        inlier_share=overall,
        worst_camera=worst,
        worst_share=float(share[worst]),
        worst_count=int(count.min()),
        median_pixels=float(np.median(error)),
    )
