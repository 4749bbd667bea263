"""The figures behind a verdict: pure functions of problem, reconstruction and history.

A figure is computed at its first use and cached; `Evidence.asked` says whether that has happened.

Two ideas. First, the worst camera decides, not means or medians: a failed reconstruction often has a small median
residual, positive depths and a low cost, and only a few bad cameras. Second, wrong matches have large errors, while a
bent reconstruction has errors of every size. So the decisive figure is not the share of observations that fit (20% may be
wrong), but the share among those that come near: the purity, at a radius that follows the noise.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.alternative import Alternative, alternative, as_alternative, better_of, doubtful
from initfree.certificate.baseline import Baselines, baselines
from initfree.certificate.coherence import coherence
from initfree.certificate.coincident import twin_share
from initfree.certificate.contradiction import Contradiction, contradiction
from initfree.certificate.depth_halves import Halves, expected_between, near_against_far, random_halves
from initfree.certificate.focal import FocalLengths, focal_rise
from initfree.certificate.freer import (
    FOCAL,
    LENS,
    RADIAL,
    Freed,
    by_image,
    euclidean_to_projective,
    freed,
    settled,
    shuttered,
    some,
)
from initfree.certificate.hinge import Hinge, thinnest_hinge
from initfree.certificate.history import History
from initfree.certificate.joint import Joint, weakest_joint
from initfree.certificate.left_out import fitting
from initfree.certificate.modes import Determination, determination, drift
from initfree.certificate.photo_order import joint_by_order
from initfree.certificate.reversal import reversal_rise
from initfree.certificate.thresholds import (
    DEVIATIONS,
    FITS_WELL,
    LARGE_IMAGE,
    LEAST_RADIUS,
    MAX_NOISE,
    MAX_TWIN_SHARE,
    MIN_JOINT_SHARE,
    NEAR,
)
from initfree.certificate.twins import Duplication, duplication
from initfree.certificate.uncertainty import CameraSystem, Uncertainty, camera_system
from initfree.data.problem import Problem, restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index, Tracks
from initfree.stages.euclidean import FreeIntrinsics
from initfree.stages.euclidean.residuals import INLIER_PIXELS, Residuals, consensus, residuals


@dataclass(frozen=True)
class ByCamera:
    """Figures of every camera, (cameras,) each."""

    share: Array
    """share of its observations that fit"""
    purity: Array
    """share of well fitting observations among those that come near"""
    near: Array
    """number of observations that come near"""
    consensus: Array
    """observations that fit landmarks with at least three fitting observations"""
    consensus_share: Array
    median: Array
    """pixels, of the observations that fit"""
    spread: Array
    """pixels: smallest deviation of its observations over all directions in the image"""


_OF_CAMERAS = (
    "baselines", "joint", "system", "uncertainty", "determination", "duplication", "hinge", "reversal_rise", "alternative",
    "focal_rise", "twin_share", "drift_of_intact", "contradiction", "joint_by_order",
)  # fmt: skip
"""figures that do not change when landmarks without a depth are removed"""
_OF_AGREEING = ("determination", "duplication", "hinge", "twin_share", "drift_of_intact")
"""figures of the cameras and the agreeing observations"""


class Evidence:
    """All figures of a reconstruction and its history; each is computed once, at its first use."""

    def __init__(self, problem: Problem, reconstruction: Reconstruction, history: History | None = None) -> None:
        self.problem = problem
        self.reconstruction = reconstruction
        self.history = History() if history is None else history

    def __getstate__(self) -> dict[str, Any]:
        """Without intermediate values, because results are sent between processes."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def asked(self, figure: str) -> bool:
        """Whether a figure has been computed."""
        return figure in self.__dict__

    def adding(self, **facts: Any) -> Self:
        """The same figures with more facts in the history; figures that depend on these facts are computed again."""
        history = replace(self.history, **facts)
        return self._with(self.problem, self.reconstruction, history, lambda name: name not in facts)

    def with_landmarks(self, problem: Problem, reconstruction: Reconstruction) -> Self:
        """The same cameras with fewer landmarks; figures of the cameras stay."""
        return self._with(problem, reconstruction, self.history, lambda name: name in _OF_CAMERAS)

    def after(self, before: "Evidence") -> Self:
        """This evidence with the figures that it must share with that before observations were left out which agree with
        nothing, if the cameras stayed."""
        known = {name: before.__dict__[name] for name in _OF_AGREEING if before.asked(name)}
        return self.assuming(**known)

    def assuming(self, **figures: Any) -> Self:
        """The evidence as if these figures had other values: for experiments with the verdict."""
        other = self._with(self.problem, self.reconstruction, self.history, lambda _: True)
        other.__dict__.update(figures)
        return other

    def _with(
        self, problem: Problem, reconstruction: Reconstruction, history: History, stays: Callable[[str], bool]
    ) -> Self:
        other = type(self)(problem, reconstruction, history)
        other.__dict__.update({
            name: value for name, value in self.__dict__.items() if name not in other.__dict__ and stays(name)
        })  # fmt: skip
        return other

    @property
    def names(self) -> tuple[str, ...]:
        """Image of each camera."""
        return self.problem.names

    @cached_property
    def equations(self) -> int:
        return 2 * self.problem.tracks.observations

    @cached_property
    def unknowns(self) -> int:
        tracks = self.problem.tracks
        return 7 * tracks.cameras + 3 * tracks.landmarks - 7

    @cached_property
    def size(self) -> float:
        """Pixels along the longer side of the images."""
        return _size(self.problem)

    @cached_property
    def _residuals(self) -> Residuals:
        return residuals(self.problem, self.reconstruction)

    @cached_property
    def _errors(self) -> Array:
        """(observations,) pixels, infinite behind a camera."""
        return _errors_in_front(self._residuals)

    @cached_property
    def _fits(self) -> NDArray[np.bool_]:
        return self._errors <= self.inlier_pixels

    @cached_property
    def _agreeing(self) -> NDArray[np.bool_]:
        """Fitting observations of landmarks with at least three fitting observations."""
        tracks = self.problem.tracks
        return self._fits & (np.bincount(tracks.landmark, weights=self._fits) >= 3)[tracks.landmark]

    @cached_property
    def noise(self) -> float:
        """Pixels: 40% quantile of a camera's errors, for the camera at the lower quartile."""
        return _noise(self.problem.tracks, self._errors)

    @cached_property
    def radius(self) -> float:
        """Pixels within which an observation fits well: 3.5 times the noise, at least 1 px."""
        return _radius(self.noise, self.size)

    @cached_property
    def inlier_pixels(self) -> float:
        """Pixels within which an observation fits: 4, or the radius if larger."""
        return max(INLIER_PIXELS, self.radius)

    @cached_property
    def inlier_share(self) -> float:
        """Share of the observations that fit, in front of their camera."""
        return float(np.mean(self._fits))

    @cached_property
    def purity(self) -> float:
        """Share of the observations that fit well among those that come within ten radii."""
        radius = self._radii[self.problem.tracks.cam]
        near = np.count_nonzero(self._errors <= NEAR * radius)
        return float(np.count_nonzero(self._errors <= radius) / max(near, 1))

    @cached_property
    def by_camera(self) -> ByCamera:
        return _by_camera(self.problem, self._errors, self._fits, self._agreeing, self._radii, self.inlier_pixels)

    @cached_property
    def _radii(self) -> Array:
        """(cameras,) the radius, or a camera's own if its errors are larger and those of neighbours have nothing in common:
        a blurred image has more noise, a camera in a wrong place has errors that agree."""
        own = np.array([_radius(noise, self.size) for noise in _noises(self.problem.tracks, self._errors)])
        return np.where(self._coherence[2], np.maximum(own, self.radius), self.radius)

    @cached_property
    def joint(self) -> Joint:
        """The weakest cut between images, over the observations before any were left out."""
        own, before = joint_of(self.problem.tracks, self._fits), self.history.joint
        return before if before is not None and before.observations > own.observations else own

    @cached_property
    def _coherence(self) -> tuple[float, float, NDArray[np.bool_]]:
        units = self.problem.m * self.problem.unit
        return coherence(self.problem.tracks, units, self._residuals.vectors, self._errors <= self.radius)

    @cached_property
    def coherence(self) -> float:
        """Mean cosine between the residuals of neighbouring observations that fit, see `coherence.coherence`."""
        return self._coherence[0]

    @cached_property
    def systematic(self) -> float:
        """Pixels: the coherent part of the noise, noise · (coherence less two deviations)^½."""
        mean, deviation, _ = self._coherence
        return min(self.noise, max_noise(self.size)) * float(np.sqrt(max(mean - DEVIATIONS * deviation, 0.0)))

    @cached_property
    def median_pixels(self) -> float:
        return float(np.median(self._residuals.error))

    @cached_property
    def mean_pixels(self) -> float:
        """Of the observations that fit."""
        return float(np.mean(self._residuals.error[self._fits])) if self._fits.any() else float("inf")

    @cached_property
    def parallax(self) -> float:
        """Degrees: median over landmarks of the widest angle between its rays."""
        agreeing = self._agreeing
        return median_parallax(self.problem.tracks, self.reconstruction, agreeing) if agreeing.any() else 0.0

    @cached_property
    def baselines(self) -> Baselines:
        known = self.history.baselines
        return baselines(self.problem) if known is None else known

    @cached_property
    def system(self) -> CameraSystem:
        """The reduced camera system over the agreeing observations; with free intrinsics unless they are exact."""
        problem, reconstruction = self.problem, self.reconstruction
        free = FreeIntrinsics.of(problem, known=problem.exact)
        return camera_system(
            problem.tracks, problem.m, problem.unit, reconstruction.cameras, reconstruction.xyz,
            consensus(problem, reconstruction), free=free, groups=problem.camera_ids,
        )  # fmt: skip

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Standard deviations of every camera."""
        return self.system.uncertainty()

    @cached_property
    def determination(self) -> Determination:
        """Distances of reconstructions drawn from the covariance."""
        return determination(self.system)

    @cached_property
    def duplication(self) -> Duplication:
        """Whether equal parts of the scene lie on top of each other."""
        problem, reconstruction, used = self.problem, self.reconstruction, self.system.weight > 0.0
        return duplication(problem.tracks, problem.m, problem.unit, reconstruction.cameras, reconstruction.xyz, used)

    @cached_property
    def twin_share(self) -> float:
        """Share of the landmarks with another one in the same place that none of their images sees as well."""
        problem, r = self.problem, self.reconstruction
        return twin_share(problem.tracks, problem.unit, r.cameras, r.xyz, consensus(problem, r))

    @cached_property
    def contradiction(self) -> Contradiction | None:
        """What the misfits across the weakest joint say."""
        return contradiction(self.problem, self.reconstruction, self.joint.smaller)

    @cached_property
    def joint_by_order(self) -> int:
        """Whether the order of the photographs speaks for the present joint (1) or for the other one (-1)."""
        c = self.contradiction
        if c is None or not c.no_chance or c.other is None:
            return 0
        return joint_by_order(self.names, self.problem.tracks, self.joint.smaller, self.reconstruction, c.other)

    @cached_property
    def other_joint_doubles(self) -> bool:
        """Whether the other joint that misfits agree on would put things on top of each other: then that one is wrong, and
        parts of the scene look alike."""
        problem, other = self.problem, None if self.contradiction is None else self.contradiction.other
        if other is None:
            return False
        counts = consensus(problem, self.reconstruction)
        return twin_share(problem.tracks, problem.unit, other.cameras, other.xyz, counts) > MAX_TWIN_SHARE

    @cached_property
    def belonging(self) -> list[tuple[str, int, int]]:
        """Images that were left out and fit the others, see `left_out.fitting`."""
        return fitting(self.problem, self.reconstruction, self.history.left_out)

    @cached_property
    def drift_of_intact(self) -> float | None:
        """Ratio of the drift of `determination` without the landmarks that lost an observation to that with all.

        For equal numbers of landmarks, since deviations fall with the root of their number. A merged track with a rest
        that happens to fit connects unrelated parts. None if the other landmarks do not connect the images.
        """
        problem, r, tracks = self.problem, self.reconstruction, self.problem.tracks
        agreeing = self._agreeing
        lost = np.bincount(tracks.landmark, weights=agreeing, minlength=tracks.landmarks) < given_lengths(problem)
        intact = agreeing & ~lost[tracks.landmark]
        if not lost.any() or not np.isfinite(self.determination.drift) or restricted(problem, intact) is None:
            return None
        system = camera_system(
            tracks, problem.m, problem.unit, r.cameras, r.xyz, intact,
            free=FreeIntrinsics.unless(problem.exact), groups=problem.camera_ids,
        )  # fmt: skip
        by_fewer = np.sqrt(np.count_nonzero(intact) / max(np.count_nonzero(agreeing), 1))
        return by_fewer * drift(system) / max(self.determination.drift, 1e-300)

    @cached_property
    def _settled(self) -> tuple[Problem, Reconstruction]:
        """A sufficient subset of landmarks, and the reconstruction adjusted to it."""
        problem, reconstruction = some(self.problem, self.reconstruction)
        return problem, settled(problem, reconstruction)

    @cached_property
    def projective_ratio(self) -> float:
        """See `freer.euclidean_to_projective`."""
        return euclidean_to_projective(*self._settled)

    @cached_property
    def with_radial(self) -> Freed:
        """With a radial distortion beside what the lenses have."""
        problem, held = self._settled
        return freed(problem, held, RADIAL, problem.camera_ids)

    @cached_property
    def with_lens(self) -> Freed:
        """With focal lengths and a radial distortion."""
        problem, held = self._settled
        return freed(problem, held, LENS, problem.camera_ids)

    @cached_property
    def with_own_focal_lengths(self) -> Freed:
        """With one focal length an image."""
        problem, held = self._settled
        return freed(problem, held, FOCAL, by_image(problem))

    @cached_property
    def with_shutter(self) -> Freed:
        """With a rolling shutter, see `freer.shuttered`."""
        return shuttered(*self._settled)

    @cached_property
    def near_far(self) -> Halves | None:
        """See `depth_halves.near_against_far`."""
        return near_against_far(*self._settled)

    @cached_property
    def random_halves(self) -> Halves | None:
        """The same of halves by chance."""
        return random_halves(*self._settled)

    @cached_property
    def near_far_expected(self) -> float:
        """See `depth_halves.expected_between`."""
        return expected_between(*self._settled)

    @cached_property
    def hinge(self) -> Hinge:
        """Whether two parts are joined along a line or at a spot alone."""
        return thinnest_hinge(self.problem.tracks, self.system.weight > 0.0, self.reconstruction.xyz)

    @cached_property
    def reversal_rise(self) -> float | None:
        """Squared standard deviations by which reversed depths fit worse; None if perspective excludes a reversal."""
        return reversal_rise(self.problem, self.reconstruction)

    @cached_property
    def alternative(self) -> Alternative | None:
        """Another optimum; None if there is none, or no reason to search."""
        if not doubtful(self.determination, self.parallax):
            return None
        return alternative(self.problem, self.reconstruction, self.system)

    def beside(self, others: list[Reconstruction]) -> Self:
        """The evidence with other reconstructions of the same problem as possible alternatives."""
        best = self.alternative if self.asked("alternative") else None
        for other in others:
            best = better_of(best, as_alternative(self.problem, self.reconstruction, other))
        return self if best is None else self.assuming(alternative=best)

    @cached_property
    def focal_rise(self) -> float | None:
        """Squared standard deviations by which focal lengths a tenth longer fit worse; None where they are exact."""
        if self.problem.exact:
            return None
        known = self.history.focal_rise
        return focal_rise(self.problem, self.reconstruction) if known is None else known

    @property
    def focal_lengths(self) -> FocalLengths | None:
        """Focal lengths of the camera models that were tried."""
        return self.history.focal_lengths

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
        """All computed figures for run.json; of cameras the worst."""
        h, worst = self.history, self.by_camera
        found: dict[str, Any] = {
            "intrinsics": self.problem.intrinsics,
            "confirmed": sorted(h.confirmed),
            "left_out": h.left_out,
            "resected": h.resected,
            "intrinsics_doubt": h.intrinsics_doubt,
            "joint_share": self.joint.share,
            "turning": self.baselines.turning,
            "worst_camera": self.worst_camera,
            "worst_share": float(worst.share.min()),
            "worst_purity": float(worst.purity.min()),
            "worst_consensus": int(worst.consensus.min()),
            "spread": float(worst.spread.min()),
        }
        found |= {name: getattr(self, name) for name in _NUMBERS}
        found |= {name: getattr(self, name) for name in ("reversal_rise", "focal_rise") if self.asked(name)}
        if self.focal_lengths is not None:
            found["focal_spread"] = self.focal_lengths.spread
        if self.asked("alternative") and self.alternative is not None:
            found |= self.alternative.figures()
        for name, read in _EXPENSIVE.items():
            if self.asked(name):
                found |= read(self)
        return found


_NUMBERS = (
    "equations", "unknowns", "size", "noise", "radius", "inlier_pixels", "inlier_share", "purity", "coherence", "systematic",
    "median_pixels", "mean_pixels", "parallax", "unevenness",
)  # fmt: skip
_EXPENSIVE: dict[str, Callable[[Evidence], dict[str, float]]] = {
    "uncertainty": lambda e: {
        "rotation_deviation": float(e.uncertainty.rotation.max()),
        "centre_deviation": float(e.uncertainty.centre.max()),
        "focal_deviation": float(e.uncertainty.focal.max()),
    },
    "determination": lambda e: {
        "expected_rotation_auc20": e.determination.rotation_auc20,
        "expected_translation_auc20": e.determination.translation_auc20,
        "drift": e.determination.drift,
    },
    "duplication": lambda e: {"sharing": e.duplication.sharing, "twins": e.duplication.twins},
    "contradiction": lambda e: {} if e.contradiction is None else e.contradiction.figures(),
    "joint_by_order": lambda e: {"joint_by_order": e.joint_by_order},
    "twin_share": lambda e: {"twin_share": e.twin_share},
    "drift_of_intact": lambda e: {} if e.drift_of_intact is None else {"drift_of_intact": e.drift_of_intact},
    "projective_ratio": lambda e: {"projective_ratio": e.projective_ratio},
    "with_radial": lambda e: e.with_radial.figures("radial"),
    "with_lens": lambda e: e.with_lens.figures("lens"),
    "with_own_focal_lengths": lambda e: e.with_own_focal_lengths.figures("own_focal"),
    "with_shutter": lambda e: e.with_shutter.figures("shutter"),
    "near_far": lambda e: {} if e.near_far is None else {"near_far_auc20": e.near_far.rotation_auc20},
    "hinge": lambda e: {"hinge_thickness": e.hinge.thickness, "hinge_lever": e.hinge.lever},
}
"""figures that cost more, as numbers"""


def given_lengths(problem: Problem) -> Index:
    """(landmarks,): observations that the input has of each in the images of the problem."""
    o = problem.observations
    ids = np.sort(o.landmark_id[np.isin(o.image, problem.images)])
    first, last = (np.searchsorted(ids, problem.landmark_ids, side) for side in ("left", "right"))
    return last - first


def fitting_radius(problem: Problem, reconstruction: Reconstruction) -> float:
    """Pixels within which an observation fits well, as the noise sets them."""
    return _radius(_noise(problem.tracks, _errors_in_front(residuals(problem, reconstruction))), _size(problem))


def _errors_in_front(r: Residuals) -> Array:
    """Errors in pixels, infinite behind a camera."""
    return np.where(r.in_front & np.isfinite(r.error), r.error, np.inf)


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


def _noise(tracks: Tracks, errors: Array) -> float:
    """The noise of the better cameras, which a few bad ones, or 20% of wrong matches, do not change."""
    return float(np.quantile(_noises(tracks, errors), 0.25, method="lower"))


def _noises(tracks: Tracks, errors: Array) -> list[float]:
    """Pixels: 40% quantile of the errors of each camera."""
    return [float(np.quantile(e, 0.4, method="lower")) for e in _split_by_camera(tracks, errors)]


def _by_camera(
    problem: Problem,
    errors: Array,
    fits: NDArray[np.bool_],
    agreeing: NDArray[np.bool_],
    radii: Array,
    inlier_pixels: float,
) -> ByCamera:
    tracks = problem.tracks

    def count(chosen: NDArray[np.bool_]) -> Array:
        return np.bincount(tracks.cam, weights=chosen, minlength=tracks.cameras).astype(np.float64)

    seen, consensus = np.bincount(tracks.cam, minlength=tracks.cameras), count(agreeing)
    near = np.maximum(count(errors <= NEAR * radii[tracks.cam]), 1.0)
    fitting = [e[e <= inlier_pixels] for e in _split_by_camera(tracks, errors)]
    return ByCamera(
        share=count(fits) / seen,
        purity=count(errors <= radii[tracks.cam]) / near,
        near=near,
        consensus=consensus,
        consensus_share=consensus / seen,
        median=np.array([np.median(e) if len(e) else np.inf for e in fitting]),
        spread=image_spreads(tracks, problem.m * problem.unit),
    )


@np.errstate(over="ignore", invalid="ignore")  # a reconstruction that fell apart has no parallax
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
