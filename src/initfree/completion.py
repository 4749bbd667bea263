"""The end of a certified reconstruction: a last adjustment without its wrong matches."""

import time
from dataclasses import replace

from initfree.certificate import INLIER_PIXELS
from initfree.euclidean import adjust
from initfree.problem import restricted
from initfree.repair import consensus, repair_limits
from initfree.result import Result, StageReport

ROUNDS = 2
CLEAN = 0.995
"""Where this share of the observations agrees, the robust adjustment needs no help."""


def without_outliers(result: Result) -> Result:
    """The reconstruction adjusted on its consensus alone, landmarks without one dropped.

    Cauchy at 4 px still follows a wrong match a little, and a landmark of two right observations and a wrong one can move
    to please the wrong one; with 20% of them the robust optimum itself is several degrees off on weak data. Tracks that
    keep fewer than three observations go too: two always meet somewhere.
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
        metric = replace(metric, xyz=metric.xyz[left])
        metric, convergence = adjust(problem.tracks, problem.m, problem.pixels, metric, limits, groups=problem.camera_ids)
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
