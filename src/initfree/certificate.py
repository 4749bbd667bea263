"""Is this a reconstruction? Said from the observations alone.

What tells true from false is the worst camera, not means or medians: a failed reconstruction often has a small median
residual, all depths positive and a low cost, and a few cameras that nothing agrees with. And wrong matches are far off,
while a bent reconstruction has errors of every size: so what counts is not how many observations fit (20% may be wrong),
but how many of those that come near do: the purity. The thresholds lie in the gap that a first sample of
generated runs showed; a later run (benchmarks/RESULTS.md: set7, merged tracks) is wrong and passes them all the same. Error
rates on data never seen have not been measured yet.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.arrays import Array, Tracks
from initfree.baseline import turning_residual
from initfree.upgrade.metric import Metric

INLIER_PIXELS = 4.0
NEAR_PIXELS = 40.0
MIN_SHARE = 0.6
MIN_WORST_SHARE = 0.4
MIN_WORST_PURITY = 0.88
MIN_CONSENSUS_SHARE = 0.3
MIN_CONSENSUS = 6
"""Observations of a camera on landmarks that at least three observations fit: two always meet somewhere."""
MIN_PARALLAX = 0.5
"""degrees: median over landmarks of the widest angle between its rays"""
MIN_TURNING = 2.0
"""pixels"""
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
    worst_purity: float
    """smallest share of a camera's observations within 4 px among those within 40 px"""
    worst_consensus: int
    """fewest observations of a camera that fit landmarks with at least three fitting observations"""
    median_pixels: float
    parallax: float
    """degrees, see MIN_PARALLAX"""
    turning: float
    """pixels by which rotations alone miss the observations, see `baseline.turning_residual`"""
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
    agreeing = fits & (np.bincount(tracks.landmark, weights=fits) >= 3)[tracks.landmark]

    def by_camera(chosen: NDArray[np.bool_]) -> Array:
        return np.bincount(tracks.cam, weights=chosen.astype(np.float64), minlength=tracks.cameras).astype(np.float64)

    seen, count, consensus = np.bincount(tracks.cam, minlength=tracks.cameras), by_camera(fits), by_camera(agreeing)
    share = count / seen
    purity = count / np.maximum(by_camera((error <= NEAR_PIXELS) & (depth > 0.0)), 1.0)
    worst = int(np.argmin(share))
    overall = float(np.mean(fits))
    equations = 2 * tracks.observations
    unknowns = 7 * tracks.cameras + 3 * tracks.landmarks - 7
    reasons = []

    def check(value: Array, least: float, sentence: str) -> None:
        k = int(np.argmin(value))
        if value[k] < least:
            reasons.append(f"image {names[k]!r} " + sentence.format(value[k]))

    if tracks.cameras < 3:
        reasons.append(f"{tracks.cameras} images do not check each other; expected at least 3")
    elif equations - unknowns < MIN_REDUNDANCY * equations:
        reasons.append(f"{equations} equations for {unknowns} unknowns leave nothing to check the fit with")
    parallax = median_parallax(tracks, metric, agreeing) if agreeing.any() else 0.0
    spreads = image_spreads(tracks, m * pixels)
    narrow = int(np.argmin(spreads))
    if spreads[narrow] < MIN_SPREAD:
        reasons.append(f"the observations of image {names[narrow]!r} lie on a line or a spot")
    if overall < MIN_SHARE:
        reasons.append(f"only {overall:.0%} of the observations lie within {INLIER_PIXELS:g} px in front of their camera")
    check(share, MIN_WORST_SHARE, "fits only {:.0%} of its observations")
    check(purity, MIN_WORST_PURITY, f"fits only {{:.0%}} of the observations that come within {NEAR_PIXELS:g} px of it")
    check(consensus, MIN_CONSENSUS, "is held by {:.0f} observations of landmarks that others agree on")
    check(consensus / seen, MIN_CONSENSUS_SHARE, "has only {:.0%} of its observations on landmarks that others agree on")
    turning = _turning(tracks, m, pixels, metric)
    if parallax < MIN_PARALLAX or turning < MIN_TURNING:
        reasons.append(
            f"the median landmark has a parallax of {parallax:.2g} degrees, and rotations alone explain the images "
            f"to {turning:.2g} px: the cameras only turn, and nothing tells how far away anything is"
        )
    return Certificate(
        accepted=not reasons,
        reason="; ".join(reasons) or "the observations agree with every camera",
        inlier_share=overall,
        worst_camera=names[worst],
        worst_share=float(share[worst]),
        worst_count=int(count.min()),
        worst_purity=float(purity.min()),
        worst_consensus=int(consensus.min()),
        median_pixels=float(np.median(error)),
        parallax=parallax,
        turning=turning,
        spread=float(spreads[narrow]),
    )


def _turning(tracks: Tracks, m: Array, pixels: Array, metric: Metric) -> float:
    rays = np.column_stack([m / metric.focal[tracks.cam][:, None], np.ones(len(m))])
    return turning_residual(tracks, rays, pixels.mean(axis=1) * metric.focal[tracks.cam])


def median_parallax(tracks: Tracks, metric: Metric, fits: NDArray[np.bool_]) -> float:
    """Median over landmarks of the widest angle, in degrees, between a track's first fitting ray and another."""
    centres = -(metric.R.transpose(0, 2, 1) @ metric.t[:, :, None])[:, :, 0]
    kept = np.flatnonzero(fits)
    ray = metric.xyz[tracks.landmark[kept]] - centres[tracks.cam[kept]]
    ray /= np.maximum(np.linalg.norm(ray, axis=1, keepdims=True), 1e-300)
    _, first, track = np.unique(tracks.landmark[kept], return_index=True, return_inverse=True)
    chord = np.linalg.norm(ray - ray[first][track], axis=1)
    widest = np.maximum.reduceat(chord, first)
    return float(np.degrees(2.0 * np.arcsin(np.clip(0.5 * np.median(widest), 0.0, 1.0))))


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
