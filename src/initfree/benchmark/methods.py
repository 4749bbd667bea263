"""What can make a reconstruction of a job's observations: the paper's pipeline, our strategy, an oracle, COLMAP."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from initfree.api import solve
from initfree.benchmark.data import Data, Place
from initfree.benchmark.jobs import ADJUSTED, PIPELINE, Job
from initfree.benchmark.pipeline_run import Outcome, history_of, labelled, pipeline
from initfree.benchmark.rows import row, scored, stage_columns
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.engine.levenberg_marquardt import LMConfig
from initfree.formulations import make
from initfree.result import Result
from initfree.stages.euclidean import AdjustConfig, EuclideanAdjustment, FreeIntrinsics, adjust, robust_cost
from initfree.stages.initialization import initialize
from initfree.stages.upgrade import Projective, upgrade
from initfree.stages.varpro import VariableProjection


def auto(job: Job, data: Data, place: Place) -> Outcome:
    """Our own strategy, as `initfree solve` runs it."""
    began = time.perf_counter()
    result = solve(data.problem, SolveConfig(seed=job.data.seed))
    seconds = time.perf_counter() - began
    stages = {stage.name: stage for stage in result.stages}
    # A start that rotations hold has no projective refinement; one that goes on from another, no stage 1 of its own.
    projective = {"ose": stages.get("varpro"), "refinement": stages.get("refinement")}
    history = {name: history_of(stage) for name, stage in projective.items() if stage is not None}
    columns = stage_columns(projective["ose"], projective["refinement"])
    columns |= {"accepted": result.certificate.accepted, "reason": f"{result.winner}: {result.certificate.reason}"}
    columns |= {"euclidean_cost": _ranked_cost(result), "seconds_total": seconds}
    return _adjusted(job, data, result.reconstruction, columns, history)


def _ranked_cost(result: Result) -> float:
    """Of all observations: wrong ones are left out of an accepted result."""
    return next(start.cost for start in result.starts if start.name == result.winner)


def oracle(job: Job, data: Data, place: Place) -> Outcome:
    """The robust adjustment from the true cameras and landmarks: as good as these observations allow."""
    began = time.perf_counter()
    reconstruction = adjust_from_truth(data.problem, data.true_reconstruction)
    seconds = time.perf_counter() - began
    columns = {
        "euclidean_cost": robust_cost(data.problem, reconstruction),
        "seconds_adjust": seconds,
        "seconds_total": seconds,
    }
    return _adjusted(job, data, labelled(data.problem, reconstruction), columns)


def classical(job: Job, data: Data, place: Place) -> Outcome:
    """Traditional bundle adjustment from cameras that know nothing: least squares of the reprojection error.

    The cameras of the start `normal` read as metric ones, landmarks solved for from them, intrinsics known: what
    variable projection is given too, so that the stage alone differs (the paper's Figure 2a).
    """
    problem = data.problem
    tracks = problem.tracks
    began = time.perf_counter()
    P = initialize("normal", tracks, job.data.seed)
    X = VariableProjection(tracks, problem.m, make("pose", 0.05), P).X
    start = upgrade("none", Projective(tracks, P, X, problem.calibrated)).reconstruction
    stage = EuclideanAdjustment(tracks, problem.m, problem.unit, start, cheirality=False)
    convergence = stage.minimise(LMConfig(300, 1e-8))
    seconds = time.perf_counter() - began
    columns = {
        "refine_residual": float(np.mean(np.sqrt(stage.squared_residuals))),
        "refine_iterations": len(convergence.history),
        "refine_reason": convergence.reason,
        "refine_gradient": convergence.gradient,
        "euclidean_cost": robust_cost(problem, stage.state),
        "seconds_adjust": seconds,
        "seconds_total": seconds,
    }
    return _adjusted(job, data, labelled(problem, stage.state), columns)


def adjust_from_truth(problem: Problem, truth: Reconstruction) -> Reconstruction:
    """At 4 px from the first: wider scales would let wrong matches pull it away from the truth that it starts at."""
    free = FreeIntrinsics.of(problem)
    limits = AdjustConfig(free=free, scales=(4.0,))
    return adjust(problem, truth, limits)[0]


def _mapper(job: Job, data: Data, place: Place) -> Outcome:
    from initfree.benchmark.mappers import reconstruct

    model, seconds, reason = reconstruct(job, place)
    return _adjusted(job, data, model, {"reason": reason, "seconds_total": seconds})


def _adjusted(
    job: Job, data: Data, model: Reconstruction, columns: dict[str, Any], history: dict[str, Any] | None = None
) -> Outcome:
    return Outcome([row(job, ADJUSTED, data, **{**columns, **scored(model, data)})], history or {}, {ADJUSTED: model})


METHODS: dict[str, Callable[[Job, Data, Place], Outcome]] = {
    PIPELINE: pipeline,
    "auto": auto,
    "oracle": oracle,
    "classical": classical,
    "colmap-incremental": _mapper,
    "colmap-global": _mapper,
}
