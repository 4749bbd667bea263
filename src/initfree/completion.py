"""The end of a certified reconstruction: wrong matches go, what was left out of the core comes back."""

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from initfree.certificate import INLIER_PIXELS, metric_residuals
from initfree.euclidean import AdjustConfig, MetricState, adjust, resect, triangulate
from initfree.problem import Problem, build_problem, restricted
from initfree.repair import repair_limits
from initfree.result import Result, StageReport
from initfree.upgrade.metric import Metric

ROUNDS = 2
CLEAN = 0.995
"""Where this share of the observations agrees, the robust adjustment needs no help."""


def consensus(problem: Problem, metric: Metric, least: int = 3) -> NDArray[np.bool_]:
    """Observations within 4 px, in front, of landmarks that at least `least` such observations agree on."""
    error, depth = metric_residuals(problem.tracks, problem.m, problem.pixels, metric)
    fits = (error <= INLIER_PIXELS) & (depth > 0.0)
    return fits & (np.bincount(problem.tracks.landmark, weights=fits) >= least)[problem.tracks.landmark]


def without_outliers(result: Result) -> Result:
    """The reconstruction adjusted on its consensus alone, landmarks without one dropped.

    Cauchy at 4 px still follows a wrong match a little, and a landmark of two right observations and a wrong one can move
    to please the wrong one; with 20% of them the robust optimum itself is several degrees off on weak data.
    """
    began = time.perf_counter()
    problem, metric, X = result.problem, result.metric, result.X
    steps, cost = 0, None
    for _ in range(ROUNDS):
        agreeing = consensus(problem, metric)
        if agreeing.mean() >= CLEAN:
            break
        found = restricted(problem, agreeing)
        if found is None:
            break
        problem, left = found
        limits = replace(repair_limits(problem, 100, result.config.refine_tolerance), scales=(INLIER_PIXELS,))
        metric, convergence = _adjusted(problem, replace(metric, xyz=metric.xyz[left]), limits)
        X, steps, cost = X[left], steps + len(convergence.history), convergence.cost
    if problem is result.problem:
        return result
    report = StageReport("consensus", time.perf_counter() - began, iterations=steps, cost=cost)
    ids = {int(i): k for k, i in enumerate(result.problem.landmark_ids)}
    kept = [ids[int(i)] for i in problem.landmark_ids]
    return replace(
        result,
        problem=problem,
        X=X,
        metric=metric,
        before=replace(result.before, xyz=result.before.xyz[kept]),
        upgraded=replace(result.upgraded, xyz=result.upgraded.xyz[kept]),
        stages=(*result.stages, report),
    )


def _adjusted(problem: Problem, metric: Metric, limits: AdjustConfig):
    return adjust(problem.tracks, problem.m, problem.pixels, metric, limits, groups=problem.camera_ids)


def completed_metric(problem: Problem, metric: Metric, seed: int = 0) -> tuple[Problem, Metric]:
    """With tracks of two observations, and with the cameras that only these connect, resected and adjusted."""
    wider = build_problem(problem.observations, 2)
    place = {int(image): k for k, image in enumerate(problem.images)}
    old = np.array([place.get(int(image), -1) for image in wider.images])
    new, known = np.flatnonzero(old < 0), old >= 0
    n = len(old)
    R, t = np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3))
    focal, radial = np.full(n, float(np.median(metric.focal))), np.zeros((n, 2))
    R[known], t[known] = metric.R[old[known]], metric.t[old[known]]
    focal[known], radial[known] = metric.focal[old[known]], metric.radial[old[known]]
    tracks = wider.tracks
    weight = known[tracks.cam].astype(float)
    xyz, _ = triangulate(tracks, wider.m, wider.pixels, R, t, focal, radial, weight=weight)
    state = MetricState(R, t, focal, radial, np.nan_to_num(xyz))
    if len(new):
        state, _ = resect(tracks, wider.m, wider.pixels, state, new, seed=seed)
    start = state.to_metric(metric, tracks)
    limits = replace(repair_limits(wider, 100, 1e-8), scales=(INLIER_PIXELS,))
    return wider, _adjusted(wider, start, limits)[0]
