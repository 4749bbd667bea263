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
MIN_PARALLAX = 0.5
"""degrees: median over landmarks of the largest angle between one of its rays and their mean"""
MIN_SPREAD = 4.0 * INLIER_PIXELS
"""pixels: deviation of a camera's observations along the direction in which they vary least"""
MIN_REDUNDANCY = 0.05
"""Share of equations beyond the unknowns: without any, a perfect fit says nothing."""


@dataclass(frozen=True)
class Certificate:
    """The verdict, its reason in plain words, and what it rests on."""

    accepted: bool
    reason: str
    inlier_share: float
    """observations within 4 px and in front of their camera"""
    worst_camera: str
    worst_share: float
    """the same for the camera with the smallest share"""
    worst_count: int
    """fewest such observations of any camera"""
    median_pixels: float
    parallax: float
    """degrees, see MIN_PARALLAX"""
    spread: float
    """pixels, of the camera with the smallest, see MIN_SPREAD"""


def metric_residuals(tracks: Tracks, m: Array, pixels: Array, metric: Metric) -> tuple[Array, Array]:
    """Reprojection error in pixels and depth of every observation under the metric cameras."""
    x = np.einsum("nij,nj->ni", metric.R[tracks.cam], metric.xyz[tracks.landmark]) + metric.t[tracks.cam]
    depth = x[:, 2]
    safe = np.where(np.abs(depth) < 1e-12, np.copysign(1e-12, depth), depth)
    projected = x[:, :2] / safe[:, None]
    n = np.einsum("nk,nk->n", projected, projected)
    k = metric.radial[tracks.cam]
    projected = projected * (metric.focal[tracks.cam] * (1.0 + k[:, 0] * n + k[:, 1] * n**2))[:, None]
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
    angle = parallax(tracks, metric)
    if not angle >= MIN_PARALLAX:
        reasons.append(f"the rays of a landmark differ by {angle:.2g} degrees: no baseline, so no depth")
    spreads = image_spreads(tracks, m * pixels)
    narrow = int(np.argmin(spreads))
    if spreads[narrow] < MIN_SPREAD:
        reasons.append(f"the observations of image {names[narrow]!r} lie on a line or a spot")
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
        worst_camera=names[worst],
        worst_share=float(share[worst]),
        worst_count=int(count.min()),
        median_pixels=float(np.median(error)),
        parallax=angle,
        spread=float(spreads[narrow]),
    )


def parallax(tracks: Tracks, metric: Metric) -> float:
    """Median over landmarks of the largest angle between one of its rays and their mean, in degrees."""
    centres = -np.einsum("nji,nj->ni", metric.R, metric.t)
    ray = metric.xyz[tracks.landmark] - centres[tracks.cam]
    ray /= np.maximum(np.linalg.norm(ray, axis=1, keepdims=True), 1e-300)
    mean = np.add.reduceat(ray, tracks.ptr[:-1], axis=0)
    mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-300)
    chord = np.linalg.norm(ray - mean[tracks.landmark], axis=1)
    angle = np.degrees(2.0 * np.arcsin(np.minimum(0.5 * chord, 1.0)))
    return float(np.median(np.maximum.reduceat(angle, tracks.ptr[:-1])))


def image_spreads(tracks: Tracks, xy: Array) -> Array:
    """Per camera, the smallest standard deviation of its observations over all directions in the image."""
    count = np.bincount(tracks.cam, minlength=tracks.cameras)
    moments = [
        np.bincount(tracks.cam, weights=w, minlength=tracks.cameras) / count
        for w in (xy[:, 0], xy[:, 1], xy[:, 0] ** 2, xy[:, 0] * xy[:, 1], xy[:, 1] ** 2)
    ]
    a, b, c = moments[2] - moments[0] ** 2, moments[3] - moments[0] * moments[1], moments[4] - moments[1] ** 2
    smallest = 0.5 * (a + c) - np.sqrt(0.25 * (a - c) ** 2 + b**2)
    return np.sqrt(np.maximum(smallest, 0.0))
