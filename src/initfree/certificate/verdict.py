"""Is this a reconstruction? Said from the observations alone.

What tells true from false is the worst camera, not means or medians: a failed reconstruction often has a small median
residual, all depths positive and a low cost, and a few cameras that nothing agrees with. And wrong matches are far off,
while a bent reconstruction has errors of every size: so what counts is not how many observations fit (20% may be wrong),
but how many of those that come near do: the purity, at a radius that follows the noise. How the thresholds were chosen and
how often the verdict is wrong on data that it never saw stands in docs/certificate.md.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.coherence import coherence
from initfree.certificate.joint import weakest_joint
from initfree.problem import Problem
from initfree.tracks import Array, Tracks
from initfree.upgrade.metric import Metric

INLIER_PIXELS = 4.0
MAX_NOISE = 1.75
"""pixels: beyond it nothing tells a bent reconstruction from careless keypoints"""
RADII = 3.5
"""an observation fits well within this many noise levels, and comes near within ten times that"""
LEAST_RADIUS = 1.0
NEAR = 10.0
MIN_PURITY = 0.84
MIN_CAMERA_PURITY = 0.6
DEVIATIONS = 2.0
"""a camera's purity may be below the least by this many standard deviations of a share of so many observations"""
SAFE_CAMERA_PURITY = 0.8
CLEAR_CAMERA_PURITY = 0.9
MAX_UNEVENNESS = 1.6
"""A camera significantly below the safe purity is doubtful; below the clear one, if the cameras are this uneven."""
MAX_SYSTEMATIC = 0.23
"""pixels: a larger coherent part of the errors is doubtful"""
MIN_SHARE = 0.6
MIN_WORST_SHARE = 0.4
MIN_CONSENSUS_SHARE = 0.3
MIN_CONSENSUS = 6
"""Observations of a camera on landmarks that at least three observations fit: two always meet somewhere."""
MIN_JOINT_SHARE = 0.25
"""Share of what joins the two sides of any cut between images that fits both, six landmarks at least: less, and two parts
are joined wrongly, or by nothing."""
MIN_PARALLAX = 0.5
"""degrees: median over landmarks of the widest angle between its rays"""
MIN_SPREAD = 4.0 * INLIER_PIXELS
"""pixels: deviation of a camera's observations along the direction in which they vary least"""
MIN_REDUNDANCY = 0.05
"""Share of equations beyond the unknowns: without any, a perfect fit says nothing."""


@dataclass(frozen=True)
class Certificate:
    """The verdict, its reason in plain words, and what it rests on."""

    accepted: bool
    reason: str
    doubtful: bool
    """not accepted only because some camera fits clearly worse than the others, or errors of neighbours agree: the same from
    another start settles it"""
    margin: float
    """smallest difference of a share, or of `systematic` in pixels, to what is expected of it: the certificate as one
    number, better if larger"""
    failing: tuple[str, ...]
    """images that do not agree with the others"""
    noise: float
    """pixels: 40% quantile of a camera's errors, for the camera at the lower quartile"""
    radius: float
    """pixels within which an observation fits well: 3.5 noise levels, at least 1 px"""
    purity: float
    """share of the observations that fit well among those that come within ten radii"""
    worst_purity: float
    """the same of the camera with the smallest"""
    unevenness: float
    """largest median error of a camera over the lower quartile of all cameras'"""
    joint_share: float
    """share of the landmarks across the weakest cut between images that fit both, see `joint.weakest_joint`"""
    coherence: float
    """mean cosine between the residuals of neighbouring observations that fit, see `coherence.coherence`"""
    systematic: float
    """pixels: the coherent part of the noise, noise · (coherence less two deviations)^½"""
    inlier_share: float
    """observations within 4 px (or the radius, if larger) and in front of their camera"""
    worst_camera: str
    worst_share: float
    """the same for the camera with the smallest share"""
    worst_count: int
    """fewest such observations of any camera"""
    worst_consensus: int
    """fewest observations of a camera that fit landmarks with at least three fitting observations"""
    median_pixels: float
    parallax: float
    """degrees, see MIN_PARALLAX"""
    turning: float
    """pixels by which rotations, or homographies, alone miss the observations, see `baseline.baselines`"""
    spread: float
    """pixels, of the camera with the smallest, see MIN_SPREAD"""


def metric_residuals(tracks: Tracks, m: Array, unit: Array, metric: Metric) -> tuple[Array, Array]:
    """Reprojection error in pixels and depth of every observation under the metric cameras."""
    residuals, depth = residual_vectors(tracks, m, unit, metric)
    return np.linalg.norm(residuals, axis=1), depth


def residual_vectors(tracks: Tracks, m: Array, unit: Array, metric: Metric) -> tuple[Array, Array]:
    """Reprojection residual in pixels and depth of every observation under the metric cameras."""
    x = np.einsum("nij,nj->ni", metric.R[tracks.cam], metric.xyz[tracks.landmark]) + metric.t[tracks.cam]
    depth = x[:, 2]
    safe = np.where(np.abs(depth) < 1e-12, np.copysign(1e-12, depth), depth)
    projected = x[:, :2] / safe[:, None]
    n = np.einsum("nk,nk->n", projected, projected)
    k = metric.radial[tracks.cam]
    projected = projected * (metric.focal[tracks.cam] * (1.0 + k[:, 0] * n + k[:, 1] * n**2))[:, None]
    return (projected - m) * unit, depth


def certify(problem: Problem, metric: Metric) -> Certificate:
    """Accept if nearly all observations fit and every camera is held by a good share of its own."""
    tracks, names, m, unit = problem.tracks, problem.names, problem.m, problem.unit
    residuals, depth = residual_vectors(tracks, m, unit, metric)
    error = np.linalg.norm(residuals, axis=1)
    seen_at = np.where((depth > 0.0) & np.isfinite(error), error, np.inf)
    order = np.argsort(tracks.cam, kind="stable")
    by_camera = np.split(seen_at[order], np.cumsum(np.bincount(tracks.cam, minlength=tracks.cameras))[:-1])
    noise = float(np.quantile([np.quantile(e, 0.4, method="lower") for e in by_camera], 0.25, method="lower"))
    radius = max(LEAST_RADIUS, RADII * min(noise, MAX_NOISE))
    inlier_pixels = max(INLIER_PIXELS, radius)
    fits = seen_at <= inlier_pixels
    agreeing = fits & (np.bincount(tracks.landmark, weights=fits) >= 3)[tracks.landmark]

    def count(chosen: NDArray[np.bool_]) -> Array:
        return np.bincount(tracks.cam, weights=chosen, minlength=tracks.cameras).astype(np.float64)

    seen, fitting, consensus = np.bincount(tracks.cam, minlength=tracks.cameras), count(fits), count(agreeing)
    well, near = count(seen_at <= radius), np.maximum(count(seen_at <= NEAR * radius), 1.0)
    purity, camera_purity, share = float(well.sum() / near.sum()), well / near, fitting / seen
    medians = np.array([np.median(e[e <= inlier_pixels]) if (e <= inlier_pixels).any() else np.inf for e in by_camera])
    unevenness = float(medians.max() / max(np.quantile(medians, 0.25, method="lower"), 0.2 * LEAST_RADIUS))
    overall = float(np.mean(fits))
    reasons, failing = [], np.zeros(tracks.cameras, dtype=bool)

    def check(value: Array, least: float | Array, sentence: str) -> None:
        below = value < least
        if below.any():
            k = int(np.argmin(value - least))
            others = f" ({np.count_nonzero(below)} such images)" if np.count_nonzero(below) > 1 else ""
            reasons.append(f"image {names[k]!r} " + sentence.format(value[k]) + others)
            failing[below] = True

    if tracks.cameras < 3:
        reasons.append(f"{tracks.cameras} images do not check each other; expected at least 3")
    else:
        reasons += problem.baselines.reasons + _redundancy(tracks)
    spreads = image_spreads(tracks, m * unit)
    narrow = int(np.argmin(spreads))
    if spreads[narrow] < MIN_SPREAD:
        reasons.append(f"the observations of image {names[narrow]!r} lie on a line or a spot")
    if noise > MAX_NOISE:
        reasons.append(f"even the better cameras miss their observations by {noise:.2g} px; expected at most {MAX_NOISE} px")
    if overall < MIN_SHARE:
        reasons.append(f"only {overall:.0%} of the observations lie within {inlier_pixels:.2g} px in front of their camera")
    if purity < MIN_PURITY:
        reasons.append(f"only {purity:.0%} of the observations that come near fit within {radius:.2g} px")
    check(share, MIN_WORST_SHARE, "fits only {:.0%} of its observations")
    check(
        camera_purity,
        _significantly(MIN_CAMERA_PURITY, near),
        f"fits only {{:.0%}} of the observations that come near it within {radius:.2g} px",
    )
    check(consensus, MIN_CONSENSUS, "is held by {:.0f} observations of landmarks that others agree on")
    check(consensus / seen, MIN_CONSENSUS_SHARE, "has only {:.0%} of its observations on landmarks that others agree on")
    joint = weakest_joint(tracks, fits, partial(_significantly, MIN_JOINT_SHARE), MIN_CONSENSUS)
    joined = joint.share - float(_significantly(MIN_JOINT_SHARE, np.array(max(joint.joining, 1.0))))
    if joint.fitting < MIN_CONSENSUS or joined < 0.0:
        few = [names[k] for k in np.flatnonzero(joint.smaller)]
        part = f"image {few[0]!r}" if len(few) == 1 else f"{len(few)} images ({few[0]}, ...)"
        reasons.append(
            f"about {joint.joining:.0f} landmarks join {part} with the others, and {joint.fitting:.0f} of them fit both"
        )
        failing |= joint.smaller
    parallax = median_parallax(tracks, metric, agreeing) if agreeing.any() else 0.0
    if parallax < MIN_PARALLAX:
        reasons.append(f"the median landmark has a parallax of {parallax:.2g} degrees; expected at least {MIN_PARALLAX}")
    expected = SAFE_CAMERA_PURITY if unevenness <= MAX_UNEVENNESS else CLEAR_CAMERA_PURITY
    above = camera_purity - _significantly(expected, near)
    mean_cosine, deviation = coherence(tracks, m * unit, residuals, seen_at <= radius)
    systematic = min(noise, MAX_NOISE) * float(np.sqrt(max(mean_cosine - DEVIATIONS * deviation, 0.0)))
    doubts = []
    if (above < 0.0).any():
        k = int(np.argmin(above))
        doubts.append(
            f"image {names[k]!r} fits {camera_purity[k]:.0%} of the observations that come near it within {radius:.2g} px, "
            "clearly worse than the others, and no second start confirms it"
        )
    if systematic > MAX_SYSTEMATIC:
        doubts.append(
            f"errors of neighbouring observations point the same way, by about {systematic:.2g} px: the reconstruction may "
            "be bent, or a distortion is not in the model; no second start confirms it"
        )
    doubtful = bool(doubts) and not reasons
    if doubtful:
        reasons = doubts
    margins = [overall - MIN_SHARE, purity - MIN_PURITY, above.min(), (share - MIN_WORST_SHARE).min()]
    margins += [(consensus / seen - MIN_CONSENSUS_SHARE).min(), MAX_SYSTEMATIC - systematic, joined]
    worst = int(np.argmin(share))
    return Certificate(
        accepted=not reasons,
        reason="; ".join(reasons) or "the observations agree with every camera",
        doubtful=doubtful,
        margin=float(min(margins)) if doubtful or not reasons else min(float(min(margins)), 0.0),
        failing=tuple(names[k] for k in np.flatnonzero(failing)),
        noise=noise,
        radius=radius,
        purity=purity,
        worst_purity=float(camera_purity.min()),
        unevenness=unevenness,
        joint_share=joint.share,
        coherence=mean_cosine,
        systematic=systematic,
        inlier_share=overall,
        worst_camera=names[worst],
        worst_share=float(share[worst]),
        worst_count=int(fitting.min()),
        worst_consensus=int(consensus.min()),
        median_pixels=float(np.median(error)),
        parallax=parallax,
        turning=problem.baselines.turning,
        spread=float(spreads[narrow]),
    )


def _significantly(share: float, of: Array) -> Array:
    """The share out of so many below which one is significantly smaller than `share`."""
    return share - DEVIATIONS * np.sqrt(share * (1.0 - share) / of)


def _redundancy(tracks: Tracks) -> list[str]:
    equations = 2 * tracks.observations
    unknowns = 7 * tracks.cameras + 3 * tracks.landmarks - 7
    if equations - unknowns < MIN_REDUNDANCY * equations:
        return [f"{equations} equations for {unknowns} unknowns leave nothing to check the fit with"]
    return []


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
