"""What speaks against a model of another program, each in its own figure: pure functions of problem and reconstruction.

A witness has a `weight`: from one on it is a reason to refuse, and how far beyond says how strongly. Limits were chosen on
models of one half of the study's seeds (`benchmarks/foreign.py`); docs/check.md says how often they are wrong on the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from initfree.auto.strategy import solve_auto
from initfree.certificate import Certificate, Evidence
from initfree.certificate.checks import (
    CERTAIN_CAMERAS,
    CERTAIN_FOCAL_LENGTH,
    DETERMINED,
    EVEN_CAMERAS,
    NOT_DOUBLED,
    ONE_JOINT,
    Finding,
    listed,
    uneven,
)
from initfree.certificate.closeness import closeness
from initfree.certificate.modes import KEYPOINT_NOISE
from initfree.certificate.thresholds import MAX_LEFT_OUT, SIGNIFICANT
from initfree.certificate.verdict import settled
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.evaluation import global_rotation
from initfree.models.judged import LEAST_OBSERVATIONS
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.stages.euclidean.residuals import INLIER_PIXELS, robust_cost

UNJUDGED = 5.0
"""weight of images that nothing can be said of"""
DOUBT = 0.9
"""weight of what is not enough to refuse, and too much to accept"""
MAX_MOVED = 5.0
"""percent of AUC@20 by which a model may be off the optimum of its own observations"""
MAX_TURN, MAX_SHIFT = 2.0, 0.05
"""degrees, and share of the cameras' median distance from their middle, by which a single image may be off"""
MAX_FOCAL_CHANGE = 0.03
"""share by which a focal length may be off the one that the observations have"""
MIN_DEVIATIONS = 5.0
"""standard deviations of a focal length, below which a change of it is chance"""
DEVIATIONS = 2.0
"""standard deviations of a camera that must be within these limits, and of three quarters of the landmarks, as far as they
follow cameras and intrinsics, within MAX_SHIFT of their distance: one is 0.011 and less where the focal length is known or
determined, 0.06 and more before a facade seen from a line"""
_SAMPLED = 200
"""landmarks of which that is computed"""
JOINTS = {"even joints", "safe joints", ONE_JOINT}
OPEN = JOINTS | {CERTAIN_FOCAL_LENGTH, "focal length", "one focal length", "one scene"}
"""checks of the certificate that say that something is open, not that the model is wrong"""
FEWNESS = {"spread", "weakest joint", "consensus of every camera", "hinge", DETERMINED, CERTAIN_CAMERAS}
"""checks of the certificate that say that there are too few observations, or in too few places"""
_GRADED = 0.09
"""by how much the strongest doubt weighs more than the weakest"""
_STEPS = 30


@dataclass(frozen=True)
class Witness:
    """One reason for or against a model."""

    name: str
    weight: float
    sentence: str
    images: tuple[str, ...] = ()
    """that it speaks of"""

    @property
    def refuses(self) -> bool:
        return not self.weight < 1.0  # what is no number speaks for nothing

    @property
    def doubts(self) -> bool:
        return not self.refuses and self.weight >= DOUBT


@dataclass(frozen=True)
class Intrinsics:
    """A camera's focal length as the model has it, and as the model's own observations have it."""

    camera_id: int
    focal: float
    found: float
    """pixels, where focal length and first radial coefficient are free beside everything else"""
    deviation: float
    """standard deviation of a focal length, as a share"""
    significant: bool
    """whether freeing them lowers the cost by more than chance"""

    @property
    def change(self) -> float:
        """As a share."""
        return self.found / self.focal - 1.0

    @property
    def contradicted(self) -> bool:
        return self.significant and abs(self.change) > max(MAX_FOCAL_CHANGE, MIN_DEVIATIONS * self.deviation)


def unjudged(posed: tuple[str, ...], judged: Sequence[Problem]) -> Witness:
    """Registered images that too little holds together with the others: a verdict on those would be silent about them.

    One problem must hold all of them: two that hold a half each say nothing of how the halves are joined.
    """
    problem = max(judged, key=lambda one: len(one.names))
    gone = tuple(name for name in posed if name not in set(problem.names))
    parts = problem.dropped.components
    apart = f" (the observations fall into {parts} parts that share no landmark)" if parts > 1 else ""
    sentence = f"{len(gone)} of {len(posed)} registered images are not held by the others{apart}: {listed(gone)}"
    return Witness("unjudged images", UNJUDGED if gone else 0.0, sentence if gone else "every image is judged", gone)


def certified(certificate: Certificate, where: str, more: Certificate | None = None) -> Witness:
    """What the certificate says.

    Too few observations of the model itself are no objection where the matches that it was made from, `more`, are enough.

    A focal length that the observations leave open is a doubt, and so is a joint that fits less than the rest, or whose
    misfits agree on another one, and near landmarks that contradict far ones: parts are joined wrongly, or many matches are
    of things that only look alike, and with exhaustive matches of repeated things the wrong ones may be the more.
    """
    enough = set() if more is None else FEWNESS & {f.check for f in more.findings if f.passed}
    failed = [f for f in certificate.findings if not (f.passed or f.check in enough or settled(certificate.evidence, f))]
    hard = [f for f in failed if not (f.doubt or f.check in OPEN)]
    counted = hard or failed
    agrees = certificate.reason if certificate.accepted else "they fit, and there are enough among all matches"
    sentence = f"{where}: {'; '.join(dict.fromkeys(f.reason for f in counted)) or agrees}"
    if not hard and any(f.check in JOINTS for f in failed):
        sentence += " (two parts are joined wrongly, or many matches are of things that only look alike)"
    worst = max((-f.margin for f in counted), default=0.0)
    weight = 1.0 + worst if hard else DOUBT + _GRADED * min(worst, 1.0) if failed else _calm(certificate.findings)
    e = certificate.evidence
    return Witness(f"certificate, {where}", weight, sentence, tuple(dict.fromkeys(n for f in counted for n in _loose(e, f))))


def _loose(e: Evidence, finding: Finding) -> tuple[str, ...]:
    """Images that a finding names, or the smaller of two groups that it says do not hold together."""
    groups = {
        EVEN_CAMERAS: lambda: _few(uneven(e) < 0.0),
        DETERMINED: lambda: e.determination.weakest.smaller,
        "hinge": lambda: e.hinge.smaller,
        ONE_JOINT: lambda: e.joint.smaller,
        NOT_DOUBLED: lambda: e.duplication.smaller,
    }
    blind = finding.check == DETERMINED and not e.determination.system.solvable
    if finding.failing or blind or finding.check not in groups:
        return finding.failing
    return tuple(name for name, apart in zip(e.names, groups[finding.check](), strict=True) if apart)


def _few(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """None where they are more than may be left out: then it is not they."""
    return chosen & bool(chosen.mean() <= MAX_LEFT_OUT)


def _calm(findings: tuple[Finding, ...]) -> float:
    """Below a doubt: the closer the nearest threshold, the higher."""
    return 0.5 - min(0.5, max(0.0, min((f.margin for f in findings), default=0.5)))


def at_optimum(e: Evidence) -> Witness:
    """A robust adjustment of poses and landmarks to the model's own observations must not lead far away."""
    limits = AdjustConfig(scales=(INLIER_PIXELS,), max_iterations=_STEPS, tolerance=1e-6, near=True)
    apart = Apart.between(e.reconstruction, adjust(e.problem, e.reconstruction, limits)[0])
    if apart.weight < 1.0:
        return Witness("at its optimum", 0.5 * apart.weight, "it is at the optimum of its own observations")
    images = apart.named(e.names)
    which = f": {listed(images)}" if images else ""
    sentence = f"adjusted to its own observations it moves to another place (AUC@20 {apart.auc:.0f} against it){which}"
    return Witness("at its optimum", apart.weight, sentence, images)


@dataclass(frozen=True)
class Apart:
    """How far two reconstructions of the same cameras are from each other."""

    auc: float
    """AUC@20 of rotations or of directions, the smaller"""
    turn: Array
    """(cameras,) degrees, against the others"""
    shift: Array
    """(cameras,) share of the cameras' median distance from their middle"""

    @classmethod
    def between(cls, one: Reconstruction, other: Reconstruction) -> "Apart":
        """Cameras in the same order. Medians: a camera that one of them has elsewhere must not decide for the others."""
        auc = min(closeness(one.R, one.centres, other.R, other.centres, 20.0))
        R = global_rotation(other.R, one.R)
        turn = np.degrees(Rotation.from_matrix(other.R @ R.T @ one.R.transpose(0, 2, 1)).magnitude())
        x, y = (points - np.median(points, axis=0) for points in (other.centres @ R.T, one.centres))
        size = max(float(np.median(np.linalg.norm(y, axis=1))), 1e-300)
        s = size / max(float(np.median(np.linalg.norm(x, axis=1))), 1e-300)
        return cls(auc, turn, np.linalg.norm(s * x - y, axis=1) / size)

    def named(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Cameras that are elsewhere; none where most are, because then it is not they but the whole that is bent."""
        far = (self.turn > MAX_TURN) | (self.shift > MAX_SHIFT)
        return tuple(name for name, off in zip(names, far, strict=True) if off) if far.mean() < 0.5 else ()

    @property
    def weight(self) -> float:
        """From one on they are two."""
        worst = max(float(self.turn.max()) / MAX_TURN, float(self.shift.max()) / MAX_SHIFT)
        return max((100.0 - self.auc) / MAX_MOVED, worst)


def intrinsics(e: Evidence) -> tuple[Intrinsics, ...]:
    """Focal length and k1 of every camera freed, beside everything else."""
    problem, reconstruction, deviation = e.problem, e.reconstruction, e.uncertainty.focal
    free = FreeIntrinsics(focal=True, radial=1)
    limits = AdjustConfig(free=free, scales=(INLIER_PIXELS,), max_iterations=_STEPS, tolerance=1e-6, near=True)
    before = robust_cost(problem, reconstruction)
    settled, _ = adjust(problem, reconstruction, AdjustConfig(scales=(INLIER_PIXELS,), max_iterations=_STEPS, near=True))
    found, _ = adjust(problem, reconstruction, limits)
    cost = min(robust_cost(problem, settled), before)
    gain = 2.0 * problem.tracks.observations * (1.0 - robust_cost(problem, found) / max(cost, 1e-300))
    ids, first = np.unique(problem.camera_ids, return_index=True)
    cameras = problem.observations.cameras
    return tuple(
        Intrinsics(
            int(k), cameras[int(k)].mean_focal_length(), cameras[int(k)].mean_focal_length() * float(found.focal[i]),
            float(deviation[i]), gain > SIGNIFICANT * len(ids),
        )
        for k, i in zip(ids, first, strict=True)
    )  # fmt: skip


def contradicted(problem: Problem, cameras: tuple[Intrinsics, ...]) -> Witness:
    """Focal lengths that the observations contradict."""
    against = [one for one in cameras if one.contradicted]
    if not against:
        return Witness("intrinsics", 0.0, "nothing contradicts the focal lengths")
    worst = max(against, key=lambda one: abs(one.change))
    chosen = {one.camera_id for one in against}
    images = tuple(n for n, k in zip(problem.names, problem.camera_ids.tolist(), strict=True) if k in chosen)
    sentence = (
        f"the images contradict the focal length of camera {worst.camera_id}: {worst.focal:.0f} px in the model, "
        f"{worst.found:.0f} px where it is free ({worst.change:+.0%})"
    )
    return Witness("intrinsics", abs(np.log1p(worst.change)) / MAX_FOCAL_CHANGE, sentence, images)


def placed(e: Evidence) -> Witness:
    """Whether the landmarks have a place: a focal length that is off by 3% may leave every camera where it is, and move what
    they see by a quarter of its distance."""
    s = e.system
    seen = np.bincount(s.tracks.landmark, weights=s.weight, minlength=s.tracks.landmarks)
    which = np.random.default_rng(0).permutation(np.flatnonzero(seen >= LEAST_OBSERVATIONS))[:_SAMPLED]
    if not (s.solvable and len(which)):
        return Witness("landmarks", DOUBT, "too little fits to tell how certain the landmarks are")
    distance = np.maximum(np.linalg.norm(s.xyz[which] - s.centres.mean(axis=0), axis=1), 1.0)
    drift = float(np.quantile(s.landmark_drifts(which, max(s.noise, KEYPOINT_NOISE)) / distance, 0.75))
    says = (
        f"cameras and focal lengths, as uncertain as they are, move a quarter of the landmarks by {drift:.2%} of their "
        "distance or more"
    )
    weight = _graded(DEVIATIONS * drift / MAX_SHIFT)
    return Witness("landmarks", weight, says if weight < DOUBT else f"the images leave open how far away things are: {says}")


def held(e: Evidence) -> Witness:
    """Whether every image is certain: one with six observations may be 3 degrees off, and fit them all."""
    u = e.determination.deviations
    uncertain = DEVIATIONS * np.maximum(u.rotation / MAX_TURN, u.centre / MAX_SHIFT)
    k = int(np.argmax(uncertain))
    # Deviations are against all cameras: one that is loose makes the others uncertain, too, but less.
    worst = uncertain > max(1.0, 0.5 * float(uncertain[k]))
    images = tuple(name for name, one in zip(e.names, worst, strict=True) if one)
    says = (
        f"the standard deviation of the rotation of image {e.names[k]!r} is {u.rotation[k]:.2g} degrees, that of its "
        f"position {u.centre[k]:.2%} of the scene's extent"
    )
    others = f" ({len(images)} such images)" if len(images) > 1 else ""
    return Witness("certain images", _graded(float(uncertain[k])), says + others, images)


def _graded(share: float) -> float:
    """The weight of what is a doubt beyond a limit, by its share of the limit: never a reason to refuse."""
    return 0.5 * share if share <= 1.0 else DOUBT + _GRADED * min(share - 1.0, 1.0)


def independent(e: Evidence) -> Witness:
    """A solve from nothing of what was judged, with the model's intrinsics: whether it finds the same cameras."""
    found = solve_auto(replace(e.problem, intrinsics="given"), SolveConfig())
    name = "solve from nothing"
    if not found.accepted:
        return Witness(name, DOUBT, "a solve from nothing finds no reconstruction that it accepts")
    place = {image: k for k, image in enumerate(e.names)}
    same = e.reconstruction.subset(np.array([place[image] for image in found.reconstruction.names]), slice(None))
    apart = Apart.between(same, found.reconstruction)
    if apart.weight < 1.0 and len(same.names) == len(e.names):
        return Witness(name, 0.0, "a solve from nothing finds the same cameras")
    images = apart.named(same.names)
    which = f": {listed(images)}" if images else ""
    sentence = f"a solve from nothing finds other cameras (AUC@20 {apart.auc:.0f} against these){which}"
    return Witness(name, max(apart.weight, DOUBT), sentence, images)
