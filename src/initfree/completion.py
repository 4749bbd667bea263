"""The end of a reconstruction: images that agree with nothing are left out, then wrong matches are."""

import time
from dataclasses import replace

import numpy as np

from initfree.ambiguity import verify
from initfree.arrays import Index
from initfree.certificate import INLIER_PIXELS
from initfree.euclidean import adjust
from initfree.problem import Problem, restricted, without_cameras
from initfree.repair import consensus, repair_limits
from initfree.result import Result, StageReport
from initfree.upgrade.metric import Metric

ROUNDS = 2
CLEAN = 0.995
"""Where this share of the observations agrees, the robust adjustment needs no help."""
MAX_LEFT_OUT = 0.04
"""Share of the images without which a reconstruction is still accepted."""
_NAMED = 8


def complete(result: Result) -> Result:
    """An accepted reconstruction on its consensus alone; of a rejected one the largest consistent part, if there is one."""
    if not result.certificate.accepted:
        result = consistent_part(result)
    return without_outliers(result) if result.certificate.accepted else result


def consistent_part(result: Result) -> Result:
    """The reconstruction without the images that the certificate says fail, until it is accepted or none is left to go.

    It stays a rejected one if more than 4% of the images are missing, or any where intrinsics are unknown; then the reason
    names them. A whole that no part of is accepted is returned as it is.
    """
    began = time.perf_counter()
    problem, metric, certificate = result.problem, result.metric, result.certificate
    stay, left = np.arange(problem.tracks.cameras), np.arange(problem.tracks.landmarks)
    while certificate.failing and not certificate.accepted:
        failing = np.flatnonzero(np.isin(problem.names, certificate.failing))
        found = without_cameras(problem, failing)
        if found is None:
            return result
        problem, cameras, landmarks = found
        stay, left = stay[cameras], left[landmarks]
        metric, _ = _adjusted(problem, _selected(metric, cameras, landmarks), result)
        certificate = verify(problem, metric)
    if not certificate.accepted:
        return result
    gone = [name for name in result.problem.names if name not in set(problem.names)]
    named = ", ".join(gone[:_NAMED]) + (", ..." if len(gone) > _NAMED else "")
    # Focal lengths found beside garbage may sit in a valley of their own, where the check that they are told means nothing.
    most = MAX_LEFT_OUT if problem.calibrated else 0.0
    if len(gone) <= most * result.problem.tracks.cameras:
        reason = f"the observations agree with every camera but those left out: {named}"
    else:
        reason = (
            f"only {len(stay)} of {result.problem.tracks.cameras} images form one consistent reconstruction; "
            f"left out: {named} ({result.certificate.reason})"
        )
        missing = len(gone) / result.problem.tracks.cameras
        certificate = replace(certificate, accepted=False, doubtful=False, margin=most - missing)
    return replace(
        result,
        problem=problem,
        P=result.P[stay],
        X=result.X[left],
        metric=metric,
        before=_selected(result.before, stay, left),
        upgraded=_selected(result.upgraded, stay, left),
        certificate=replace(certificate, reason=reason),
        stages=(*result.stages, StageReport("consistent part", time.perf_counter() - began)),
    )


def without_outliers(result: Result) -> Result:
    """The reconstruction adjusted on its consensus alone, landmarks without one dropped.

    Cauchy at 4 px still follows a wrong match a little, and a landmark of two right observations and a wrong one can move
    to please the wrong one; with 20% of them the robust optimum itself is several degrees off on weak data. Tracks that
    keep fewer than three observations go too: two always meet somewhere.
    """
    began = time.perf_counter()
    problem, metric = result.problem, result.metric
    left = np.arange(problem.tracks.landmarks)
    steps, cost = 0, None
    for _ in range(ROUNDS):
        agreeing = consensus(problem, metric)
        if agreeing.mean() >= CLEAN:
            break
        found = restricted(problem, agreeing)
        if found is None:
            break
        problem, landmarks = found
        left = left[landmarks]
        metric, report = _adjusted(problem, _selected(metric, slice(None), landmarks), result)
        steps, cost = steps + report.iterations, report.cost
    if problem is result.problem:
        return result
    report = StageReport("consensus", time.perf_counter() - began, iterations=steps, cost=cost)
    return replace(
        result,
        problem=problem,
        X=result.X[left],
        metric=metric,
        before=_selected(result.before, slice(None), left),
        upgraded=_selected(result.upgraded, slice(None), left),
        stages=(*result.stages, report),
    )


def _adjusted(problem: Problem, metric: Metric, result: Result) -> tuple[Metric, StageReport]:
    """At the last scale alone: what is left is near its optimum."""
    limits = replace(repair_limits(problem, 100, result.config.refine_tolerance), scales=(INLIER_PIXELS,))
    metric, convergence = adjust(problem.tracks, problem.m, problem.pixels, metric, limits, groups=problem.camera_ids)
    steps = len(convergence.history)
    return metric, StageReport("adjustment", convergence.seconds, iterations=steps, cost=convergence.cost)


def _selected(metric: Metric, cameras: Index | slice, landmarks: Index) -> Metric:
    return replace(
        metric,
        R=metric.R[cameras],
        t=metric.t[cameras],
        focal=metric.focal[cameras],
        radial=metric.radial[cameras],
        xyz=metric.xyz[landmarks],
    )
