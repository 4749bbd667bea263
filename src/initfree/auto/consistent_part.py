"""The largest part of a rejected reconstruction that is consistent: images that agree with nothing are left out, and those
that landmarks of the rest can place again are taken back."""

import time
from dataclasses import dataclass, replace

import numpy as np

from initfree.auto.repair import repair_limits
from initfree.certificate.focal import verify
from initfree.certificate.verdict import INLIER_PIXELS, MIN_CONSENSUS, Certificate
from initfree.euclidean import MetricState, adjust, resect
from initfree.problem import Problem, without_cameras
from initfree.result import Result, StageReport
from initfree.tracks import Index
from initfree.upgrade.metric import Metric

MAX_LEFT_OUT = 0.04
"""Share of the images without which a reconstruction is still accepted."""
ROUNDS = 30
"""of taking images back"""
_NAMED = 8


@dataclass(frozen=True)
class _Part:
    """Some of the images: their problem and reconstruction, and which cameras and landmarks of the whole they are."""

    problem: Problem
    metric: Metric
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
    part = _reduced(_Part(result.problem, result.metric, result.certificate, *everything), result)
    if part is None:
        return result
    # Focal lengths of images that are left out are garbage too.
    for _ in range(ROUNDS if result.problem.calibrated else 0):
        more = _extended(part, result) if len(part.cameras) < whole.cameras else None
        if more is None or len(more.cameras) <= len(part.cameras):
            break
        part = more
    problem, certificate = part.problem, part.certificate
    gone = [name for name in result.problem.names if name not in set(problem.names)]
    named = ", ".join(gone[:_NAMED]) + (", ..." if len(gone) > _NAMED else "")
    # Focal lengths found beside garbage may sit in a valley of their own, where the check that they are told means nothing.
    most = MAX_LEFT_OUT if problem.calibrated else 0.0
    if not gone:
        reason = "the observations agree with every camera; some were found from the landmarks of the others"
    elif len(gone) <= most * whole.cameras:
        reason = f"the observations agree with every camera but those left out: {named}"
    else:
        reason = (
            f"only {len(part.cameras)} of {whole.cameras} images form one consistent reconstruction; "
            f"left out: {named} ({result.certificate.reason})"
        )
        missing = len(gone) / whole.cameras
        certificate = replace(certificate, accepted=False, doubtful=False, margin=most - missing)
    return replace(
        result,
        problem=problem,
        P=result.P[part.cameras],
        X=result.X[part.landmarks],
        metric=part.metric,
        before=selected(result.before, part.cameras, part.landmarks),
        upgraded=selected(result.upgraded, part.cameras, part.landmarks),
        certificate=replace(certificate, reason=reason),
        stages=(*result.stages, StageReport("consistent part", time.perf_counter() - began)),
    )


def _reduced(part: _Part, result: Result) -> _Part | None:
    """What is accepted of a part when failing images are left out, again and again; None if nothing is."""
    while part.certificate.failing and not part.certificate.accepted:
        failing = np.flatnonzero(np.isin(part.problem.names, part.certificate.failing))
        found = without_cameras(part.problem, failing)
        if found is None:
            return None
        problem, cameras, landmarks = found
        metric, _ = readjusted(problem, selected(part.metric, cameras, landmarks), result)
        part = _Part(problem, metric, verify(problem, metric), part.cameras[cameras], part.landmarks[landmarks])
    return part if part.certificate.accepted else None


def _extended(part: _Part, result: Result) -> _Part | None:
    """The part with the images that its landmarks place, as far as it is still accepted with them."""
    whole, before = result.problem, result.metric
    R, t, xyz = before.R.copy(), before.t.copy(), before.xyz.copy()
    R[part.cameras], t[part.cameras], xyz[part.landmarks] = part.metric.R, part.metric.t, part.metric.xyz
    missing = np.setdiff1d(np.arange(whole.tracks.cameras), part.cameras)
    state = MetricState.from_metric(replace(before, R=R, t=t, xyz=xyz))
    # No more than the certificate asks for: it judges them.
    state, placed = resect(
        whole.tracks, whole.m, whole.unit, state, missing, min_inliers=MIN_CONSENSUS, seed=result.config.seed
    )
    found = without_cameras(whole, missing[~placed]) if placed.any() else None
    if found is None:
        return None
    problem, cameras, landmarks = found
    metric, _ = readjusted(problem, selected(state.to_metric(before, whole.tracks), cameras, landmarks), result)
    return _reduced(_Part(problem, metric, verify(problem, metric), cameras, landmarks), result)


def readjusted(problem: Problem, metric: Metric, result: Result) -> tuple[Metric, StageReport]:
    """At the last scale alone: what is left is near its optimum."""
    limits = replace(repair_limits(problem, 100, result.config.refine_tolerance), scales=(INLIER_PIXELS,))
    metric, convergence = adjust(problem.tracks, problem.m, problem.unit, metric, limits, groups=problem.camera_ids)
    steps = len(convergence.history)
    return metric, StageReport("adjustment", convergence.seconds, iterations=steps, cost=convergence.cost)


def selected(metric: Metric, cameras: Index | slice, landmarks: Index) -> Metric:
    """Some of the cameras and landmarks."""
    return replace(
        metric,
        R=metric.R[cameras],
        t=metric.t[cameras],
        focal=metric.focal[cameras],
        radial=metric.radial[cameras],
        xyz=metric.xyz[landmarks],
    )
