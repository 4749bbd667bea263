"""The largest part of a rejected reconstruction that is consistent: images that agree with nothing are left out, and those
that landmarks of the rest can place again are taken back."""

import time
from dataclasses import dataclass, replace

import numpy as np

from initfree.auto.repair import repair_limits
from initfree.certificate import Certificate, certify, judge
from initfree.certificate.thresholds import MIN_CONSENSUS
from initfree.config import SolveConfig
from initfree.data.problem import Problem, without_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.result import Result, StageReport
from initfree.stages.euclidean import adjust, resect
from initfree.stages.euclidean.residuals import INLIER_PIXELS

ROUNDS = 30
"""of taking images back"""


@dataclass(frozen=True)
class _Part:
    """Some of the images: their problem and reconstruction, and which cameras and landmarks of the whole they are."""

    problem: Problem
    reconstruction: Reconstruction
    certificate: Certificate
    cameras: Index
    landmarks: Index


def consistent_part(result: Result) -> Result:
    """The reconstruction without the images that the certificate says fail, until it is accepted or none is left to go.

    Then images are resected from the landmarks of that part, while it grows and stays accepted. It stays a rejected one if
    more than 4% of the images are missing, or any where intrinsics are unknown; then the reason names them. A whole that no
    part of is accepted is returned as it is.
    """
    if result.certificate.accepted:
        return result
    began = time.perf_counter()
    whole = result.problem.tracks
    everything = np.arange(whole.cameras), np.arange(whole.landmarks)
    part = _reduced(_Part(result.problem, result.reconstruction, result.certificate, *everything), result)
    if part is None:
        return result
    taken_back = False
    # The focal lengths of images that were left out mean nothing: they cannot be placed with them.
    for _ in range(ROUNDS if result.problem.calibrated else 0):
        more = _extended(part, result) if len(part.cameras) < whole.cameras else None
        if more is None or len(more.cameras) <= len(part.cameras):
            break
        part, taken_back = more, True
    evidence = replace(
        part.certificate.evidence,
        left_out=tuple(name for name in result.problem.names if name not in set(part.problem.names)),
        left_out_because=result.certificate.reason,
        taken_back=taken_back,
    )
    report = StageReport("consistent part", time.perf_counter() - began)
    reduced = result.subset(part.problem, part.cameras, part.landmarks, part.reconstruction)
    return replace(reduced, certificate=judge(evidence), stages=(*result.stages, report))


def _reduced(part: _Part, result: Result) -> _Part | None:
    """What is accepted of a part when failing images are left out, again and again; None if nothing is."""
    while part.certificate.failing and not part.certificate.accepted:
        failing = np.flatnonzero(np.isin(part.problem.names, part.certificate.failing))
        found = without_cameras(part.problem, failing)
        if found is None:
            return None
        problem, cameras, landmarks = found
        reconstruction, _ = readjusted(problem, part.reconstruction.subset(cameras, landmarks), result.config)
        part = _Part(
            problem, reconstruction, certify(problem, reconstruction), part.cameras[cameras], part.landmarks[landmarks]
        )
    return part if part.certificate.accepted else None


def _extended(part: _Part, result: Result) -> _Part | None:
    """The part with the images that its landmarks place, as far as it is still accepted with them."""
    whole, before = result.problem, result.reconstruction
    R, t, xyz = before.R.copy(), before.t.copy(), before.xyz.copy()
    R[part.cameras], t[part.cameras], xyz[part.landmarks] = (
        part.reconstruction.R,
        part.reconstruction.t,
        part.reconstruction.xyz,
    )
    missing = np.setdiff1d(np.arange(whole.tracks.cameras), part.cameras)
    state = replace(before, R=R, t=t, xyz=xyz)
    # No more than the certificate asks for: it judges them.
    state, placed = resect(whole, state, missing, min_inliers=MIN_CONSENSUS, seed=result.config.seed)
    found = without_cameras(whole, missing[~placed]) if placed.any() else None
    if found is None:
        return None
    problem, cameras, landmarks = found
    reconstruction, _ = readjusted(problem, state.subset(cameras, landmarks), result.config)
    return _reduced(_Part(problem, reconstruction, certify(problem, reconstruction), cameras, landmarks), result)


def readjusted(problem: Problem, reconstruction: Reconstruction, config: SolveConfig) -> tuple[Reconstruction, StageReport]:
    """At the last scale alone: what is left is near its optimum."""
    limits = replace(repair_limits(problem, 100, config.adjust_tolerance), scales=(INLIER_PIXELS,), near=True)
    reconstruction, convergence = adjust(problem, reconstruction, limits)
    steps = len(convergence.history)
    return reconstruction, StageReport("adjustment", convergence.seconds, iterations=steps, cost=convergence.cost)
