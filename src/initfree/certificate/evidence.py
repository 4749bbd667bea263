"""The figures that a verdict rests on, gathered from a problem and its reconstruction; nothing is judged here.

What tells true from false is the worst camera, not means or medians: a failed reconstruction often has a small median
residual, all depths positive and a low cost, and a few cameras that nothing agrees with. And wrong matches are far off,
while a bent reconstruction has errors of every size: so what counts is not how many observations fit (20% may be wrong),
but how many of those that come near do: the purity, at a radius that follows the noise.
"""

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.alternative import Alternative
from initfree.certificate.baseline import Baselines, baselines
from initfree.certificate.closer import CloserLook
from initfree.certificate.coherence import coherence
from initfree.certificate.focal import FocalLengths
from initfree.certificate.joint import Joint, weakest_joint
from initfree.certificate.thresholds import (
    DEVIATIONS,
    FITS_WELL,
    LARGE_IMAGE,
    LEAST_RADIUS,
    MAX_NOISE,
    MIN_JOINT_SHARE,
    NEAR,
)
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Tracks
from initfree.stages.euclidean.residuals import INLIER_PIXELS, Residuals, residuals


@dataclass(frozen=True)
class ByCamera:
    """Figures of every camera, (cameras,) each."""

    share: Array
    """of its observations, those that fit"""
    purity: Array
    """of its observations that come near, those that fit well"""
    near: Array
    """how many come near"""
    consensus: Array
    """observations that fit landmarks with at least three fitting observations"""
    consensus_share: Array
    median: Array
    """pixels, of the observations that fit"""
    spread: Array
    """pixels: smallest deviation of its observations over all directions in the image"""


_PARTS = ("names", "by_camera", "joint", "baselines", "left_out_because", "closer", "alternative", "focal_lengths")
"""of the evidence that are no numbers"""


@dataclass(frozen=True)
class Evidence:
    """What a reconstruction looks like, and how it was come by."""

    names: tuple[str, ...]
    """image of each camera"""
    calibrated: bool
    equations: int
    unknowns: int
    size: float
    """pixels along the longer side of the images"""
    noise: float
    """pixels: 40% quantile of a camera's errors, for the camera at the lower quartile"""
    radius: float
    """pixels within which an observation fits well: 3.5 times the noise, at least 1 px"""
    inlier_pixels: float
    """pixels within which an observation fits: 4, or the radius if larger"""
    inlier_share: float
    """observations that fit, in front of their camera"""
    purity: float
    """share of the observations that fit well among those that come within ten radii"""
    by_camera: ByCamera
    joint: Joint
    """the weakest cut between images; of the observations before any were left out"""
    coherence: float
    """mean cosine between the residuals of neighbouring observations that fit, see `coherence.coherence`"""
    systematic: float
    """pixels: the coherent part of the noise, noise · (coherence less two deviations)^½"""
    median_pixels: float
    mean_pixels: float
    """of the observations that fit"""
    parallax: float
    """degrees: median over landmarks of the widest angle between its rays"""
    baselines: Baselines
    focal_rise: float | None = None
    """squared standard deviations by which focal lengths a tenth longer fit worse; None where known, or not asked"""
    focal_lengths: FocalLengths | None = None
    """what camera models that fit about as well say of unknown focal lengths; None where known, or only one was tried"""
    reversal_rise: float | None = None
    """the same for depths reversed; None where perspective tells the two apart, or not asked"""
    alternative: Alternative | None = None
    """another optimum; None where none was found, or there was no reason to look"""
    closer: CloserLook | None = None
    """what is asked only where nothing else stands against the reconstruction"""
    confirmed: bool = False
    """whether a second start found the same reconstruction"""
    left_out: tuple[str, ...] = ()
    """images that agree with nothing and are not part of the reconstruction"""
    left_out_because: str = ""
    """what was wrong with them"""
    taken_back: bool = False
    """whether images were placed by the landmarks of the others"""
    intrinsics_doubt: str = ""
    """why the given intrinsics look wrong, if they do and nothing better was found"""

    @property
    def worst_camera(self) -> str:
        return self.names[int(np.argmin(self.by_camera.share))]

    @property
    def unevenness(self) -> float:
        """Largest median error of a camera over the lower quartile of all cameras'."""
        medians = self.by_camera.median
        if not np.isfinite(medians).all():
            return np.inf  # a camera that nothing fits
        return float(medians.max() / max(np.quantile(medians, 0.25, method="lower"), 0.2 * LEAST_RADIUS))

    def figures(self) -> dict[str, Any]:
        """All numbers, of cameras the worst, as run.json has them."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in _PARTS:
            del plain[name]
        closer = {} if self.closer is None else self.closer.figures()
        other = {} if self.alternative is None else self.alternative.figures()
        other |= {} if self.focal_lengths is None else {"focal_spread": self.focal_lengths.spread}
        return (
            plain
            | closer
            | other
            | {
                "worst_camera": self.worst_camera,
                "worst_share": float(self.by_camera.share.min()),
                "worst_purity": float(self.by_camera.purity.min()),
                "worst_consensus": int(self.by_camera.consensus.min()),
                "unevenness": self.unevenness,
                "joint_share": self.joint.share,
                "turning": self.baselines.turning,
                "spread": float(self.by_camera.spread.min()),
            }
        )


def gather(problem: Problem, reconstruction: Reconstruction, moving: Baselines | None = None) -> Evidence:
    """All figures that cost little; `moving` are the problem's baselines, where they are known already."""
    tracks = problem.tracks
    r = residuals(problem, reconstruction)
    seen_at = _seen_at(r)
    noise, size = _noise(tracks, seen_at), _size(problem)
    radius = _radius(noise, size)
    inlier_pixels = max(INLIER_PIXELS, radius)
    fits = seen_at <= inlier_pixels
    agreeing = fits & (np.bincount(tracks.landmark, weights=fits) >= 3)[tracks.landmark]
    by_camera = _by_camera(problem, seen_at, fits, agreeing, radius, inlier_pixels)
    mean_cosine, deviation = coherence(tracks, problem.m * problem.unit, r.vectors, seen_at <= radius)
    coherent = max(mean_cosine - DEVIATIONS * deviation, 0.0)
    near = float(np.count_nonzero(seen_at <= NEAR * radius))
    return Evidence(
        names=problem.names,
        calibrated=problem.calibrated,
        equations=2 * tracks.observations,
        unknowns=7 * tracks.cameras + 3 * tracks.landmarks - 7,
        size=size,
        noise=noise,
        radius=radius,
        inlier_pixels=inlier_pixels,
        inlier_share=float(np.mean(fits)),
        purity=float(np.count_nonzero(seen_at <= radius) / max(near, 1.0)),
        by_camera=by_camera,
        joint=joint_of(tracks, fits),
        coherence=mean_cosine,
        systematic=min(noise, max_noise(size)) * float(np.sqrt(coherent)),
        median_pixels=float(np.median(r.error)),
        mean_pixels=float(np.mean(r.error[fits])) if fits.any() else float("inf"),
        parallax=median_parallax(tracks, reconstruction, agreeing) if agreeing.any() else 0.0,
        baselines=baselines(problem) if moving is None else moving,
    )


def fitting_radius(problem: Problem, reconstruction: Reconstruction) -> float:
    """Pixels within which an observation fits well, as the noise sets them."""
    return _radius(_noise(problem.tracks, _seen_at(residuals(problem, reconstruction))), _size(problem))


def _seen_at(r: Residuals) -> Array:
    """Errors in pixels, infinite behind a camera."""
    return np.where((r.depth > 0.0) & np.isfinite(r.error), r.error, np.inf)


def max_noise(size: float) -> float:
    """Pixels of noise that keypoints may have in images of this size."""
    return MAX_NOISE * max(1.0, size / LARGE_IMAGE)


def _radius(noise: float, size: float) -> float:
    return max(LEAST_RADIUS, FITS_WELL * min(noise, max_noise(size)))


def _size(problem: Problem) -> float:
    """Pixels along the longer side of the images, in the median."""
    cameras = problem.observations.cameras
    return float(np.median([max(cameras[int(k)].width, cameras[int(k)].height) for k in problem.camera_ids]))


def joint_of(tracks: Tracks, fits: NDArray[np.bool_]) -> Joint:
    """The weakest cut between images, `fits` being the observations that do."""
    return weakest_joint(tracks, fits, partial(significantly, MIN_JOINT_SHARE))


def significantly(share: float, of: Array) -> Array:
    """The share out of so many below which one is significantly smaller than `share`."""
    return share - DEVIATIONS * np.sqrt(share * (1.0 - share) / of)


def _split_by_camera(tracks: Tracks, values: Array) -> list[Array]:
    return np.split(values[tracks.by_camera], tracks.camera_ptr[1:-1])


def _noise(tracks: Tracks, seen_at: Array) -> float:
    """Of the better cameras: a few bad ones, or 20% of wrong matches, do not change it."""
    quantiles = [np.quantile(e, 0.4, method="lower") for e in _split_by_camera(tracks, seen_at)]
    return float(np.quantile(quantiles, 0.25, method="lower"))


def _by_camera(
    problem: Problem,
    seen_at: Array,
    fits: NDArray[np.bool_],
    agreeing: NDArray[np.bool_],
    radius: float,
    inlier_pixels: float,
) -> ByCamera:
    tracks = problem.tracks

    def count(chosen: NDArray[np.bool_]) -> Array:
        return np.bincount(tracks.cam, weights=chosen, minlength=tracks.cameras).astype(np.float64)

    seen, consensus = np.bincount(tracks.cam, minlength=tracks.cameras), count(agreeing)
    near = np.maximum(count(seen_at <= NEAR * radius), 1.0)
    fitting = [e[e <= inlier_pixels] for e in _split_by_camera(tracks, seen_at)]
    return ByCamera(
        share=count(fits) / seen,
        purity=count(seen_at <= radius) / near,
        near=near,
        consensus=consensus,
        consensus_share=consensus / seen,
        median=np.array([np.median(e) if len(e) else np.inf for e in fitting]),
        spread=image_spreads(tracks, problem.m * problem.unit),
    )


def median_parallax(tracks: Tracks, reconstruction: Reconstruction, fits: NDArray[np.bool_]) -> float:
    """Median over landmarks of the widest angle, in degrees, between a track's first fitting ray and another."""
    kept = np.flatnonzero(fits)
    ray = reconstruction.xyz[tracks.landmark[kept]] - reconstruction.centres[tracks.cam[kept]]
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
