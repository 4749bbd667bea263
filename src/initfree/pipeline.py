"""The stages of the paper, top to bottom; each is a function that can be called on its own.

observations -> formulation and initialisation -> VarPro -> (radial) -> projective refinement -> metric upgrade ->
Euclidean adjustment -> certificate
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from initfree import formulations
from initfree.auto.completion import complete
from initfree.certificate.focal import verify
from initfree.certificate.verdict import metric_residuals
from initfree.config import SolveConfig
from initfree.engine.levenberg_marquardt import Convergence, Iteration, LMConfig, OnIteration
from initfree.engine.losses import scale_from_median
from initfree.errors import InputError
from initfree.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.formulations.pose_rot import RelativeRotations, RotationTerm
from initfree.initialization import initialize
from initfree.problem import Problem
from initfree.refinement.radial import refine_radial
from initfree.refinement.reprojection import ProjectiveRefinement, Reprojection, reprojection_errors
from initfree.result import Result, StageReport
from initfree.tracks import Array
from initfree.upgrade import Metric, Projective, upgrade
from initfree.varpro import VariableProjection

OnProgress = Callable[[str, int, Iteration | None], None]
"""called with the stage's name, the attempt (or pair of images) and, of an attempted step, its figures"""

_THREADED_SYSTEM = 2000


def solve(
    problem: Problem,
    config: SolveConfig = SolveConfig(),
    *,
    rotations: RelativeRotations | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """From observations to a metric reconstruction. `rotations` replace the estimated ones in pose-rot."""
    with blas_threads(problem):
        return _solve(problem, config, rotations, on_progress)


def blas_threads(problem: Problem) -> threadpool_limits:
    """Small factorisations lose more to waking BLAS threads than they gain, and with one thread they repeat bit for bit."""
    return threadpool_limits(1 if 12 * problem.tracks.cameras < _THREADED_SYSTEM else None, user_api="blas")


def _solve(
    problem: Problem, config: SolveConfig, rotations: RelativeRotations | None, on_progress: OnProgress | None
) -> Result:
    stages: list[StageReport] = []

    def reporting(stage: str) -> OnIteration | None:
        return None if on_progress is None else partial(on_progress, stage)

    formulation = formulations.make(config.formulation, config.alpha)
    if formulation.uses_rotations:
        if not problem.calibrated:
            raise InputError(f"{config.formulation} needs known intrinsics; this problem has none")
        if rotations is None:
            rotations, report = _estimate_rotations(problem, config, on_progress)
            stages.append(report)
    P, X, report = minimise_ose(problem, config, rotations, reporting("varpro"))
    stages.append(report)
    if formulation.radial:
        P, X, report = refine_radial_cameras(problem, config, P, X, reporting("radial"))
        stages.append(report)
    if config.refine:
        P, X, report = refine_projective(problem, config, P, X, reporting("refinement"))
        stages.append(report)
    upgraded, before, report = upgrade_metric(problem, config, P, X)
    stages.append(report)
    metric = upgraded
    if config.adjust:
        metric, report = adjust_euclidean(problem, config, upgraded, reporting("adjustment"))
        stages.append(report)
    certificate = verify(problem, metric)
    result = Result(problem, config, P, X, before, upgraded, metric, certificate, tuple(stages))
    return complete(result) if config.adjust else result


def on_pairs(on_progress: OnProgress | None) -> Callable[[int], None] | None:
    """How two-view geometry tells of its pairs."""
    return None if on_progress is None else lambda index: on_progress("two-view geometry: pair", index, None)


def _estimate_rotations(
    problem: Problem, config: SolveConfig, on_progress: OnProgress | None
) -> tuple[RelativeRotations, StageReport]:
    from initfree.two_view.rotations import estimate_rotations

    if config.rotations != "estimated":
        raise InputError("rotations from the truth were asked for, but no truth was given (--truth MODEL)")
    began = time.perf_counter()
    rotations = estimate_rotations(problem, config.seed, on_pairs(on_progress))
    return rotations, StageReport("rotations", time.perf_counter() - began, iterations=len(rotations.pairs))


def minimise_ose(
    problem: Problem,
    config: SolveConfig,
    rotations: RelativeRotations | None,
    on_iteration: OnIteration | None,
    start: Array | None = None,
) -> tuple[Array, Array, StageReport]:
    """Stage 1: object-space error by VarPro from the chosen initial cameras, or from `start`."""
    formulation = formulations.make(config.formulation, config.alpha)
    term = RotationTerm(rotations, config.beta) if rotations is not None and formulation.uses_rotations else None
    stage = VariableProjection(
        problem.tracks,
        problem.m,
        formulation,
        initialize(config.init, problem.tracks, config.seed) if start is None else start,
        loss=config.loss,
        loss_scale=config.loss_scale,
        camera_term=term,
    )
    convergence = stage.minimise(LMConfig(config.max_iterations, config.tolerance), on_iteration)
    report = _report("varpro", convergence, stage.mean_residual, "normalised")
    if not formulation.radial:
        error = reprojection_errors(problem.tracks, problem.m, problem.unit, stage.P, stage.X)
        report = replace(report, mean_pixels=float(np.mean(error)))
    return stage.P, stage.X, report


def refine_radial_cameras(
    problem: Problem, config: SolveConfig, P: Array, X: Array, on_iteration: OnIteration | None
) -> tuple[Array, Array, StageReport]:
    """RpOSE only: radial refinement and third rows. Distortion is a nuisance where intrinsics are unknown."""
    P, X, convergence = refine_radial(
        problem.tracks, problem.m, problem.unit, P, X,
        distortion=not problem.calibrated,
        config=LMConfig(config.max_iterations, config.refine_tolerance),
        on_iteration=on_iteration,
    )  # fmt: skip
    mean = float(np.sqrt(2.0 * convergence.cost / problem.tracks.observations))
    return P, X, _report("radial", convergence, mean, "pixels (rms)")


def refine_projective(
    problem: Problem, config: SolveConfig, P: Array, X: Array, on_iteration: OnIteration | None
) -> tuple[Array, Array, StageReport]:
    """Stage 2: reprojection error in pixels; Cauchy is graduated from the residuals' own scale to the chosen one."""
    stage = ProjectiveRefinement(problem.tracks, Reprojection(problem.m, problem.unit), P, X)
    limits = LMConfig(config.max_iterations, config.refine_tolerance)
    if config.refine_loss == "none":
        convergence = stage.minimise(limits, on_iteration=on_iteration)
    else:
        widest = scale_from_median(stage.squared_residuals, 3.0, 5.0 * config.refine_scale)
        steps = max(2, int(np.ceil(np.log(widest / config.refine_scale) / np.log(5.0))) + 1)
        scales = np.geomspace(widest, config.refine_scale, steps)
        convergence = stage.minimise_graduated(limits, scales.tolist(), on_iteration)
    mean = float(np.mean(np.sqrt(stage.squared_residuals)))
    P, X = stage.reconstruction
    return P, X, _report("refinement", convergence, mean, "pixels")


def upgrade_metric(problem: Problem, config: SolveConfig, P: Array, X: Array) -> tuple[Metric, Metric, StageReport]:
    """Stage 3: the metric reconstruction, and the projective one read as metric."""
    began = time.perf_counter()
    scene = Projective(problem.tracks, P, X, problem.calibrated)
    metric = upgrade(config.upgrade, scene)
    report = StageReport("upgrade", time.perf_counter() - began)
    return metric, upgrade("none", scene), report


def adjust_euclidean(
    problem: Problem, config: SolveConfig, metric: Metric, on_iteration: OnIteration | None
) -> tuple[Metric, StageReport]:
    """Stage 4: robust bundle adjustment. Unknown focal lengths and distortion are free, shared where cameras are."""
    began = time.perf_counter()
    free = FreeIntrinsics.unless(problem.calibrated)
    limits = AdjustConfig(free=free, max_iterations=config.max_iterations, tolerance=config.refine_tolerance)
    metric, convergence = adjust(
        problem.tracks, problem.m, problem.unit, metric, limits, groups=problem.camera_ids, on_iteration=on_iteration
    )
    error, _ = metric_residuals(problem.tracks, problem.m, problem.unit, metric)
    report = _report("adjustment", convergence, float(np.mean(error)), "pixels")
    return metric, replace(report, seconds=time.perf_counter() - began)


def _report(name: str, convergence: Convergence, mean_residual: float, unit: str) -> StageReport:
    return StageReport(
        name=name,
        seconds=convergence.seconds,
        iterations=len(convergence.history),
        accepted=convergence.accepted,
        reason=convergence.reason,
        initial_cost=convergence.initial_cost,
        cost=convergence.cost,
        mean_residual=mean_residual,
        residual_unit=unit,
        mean_pixels=mean_residual if unit == "pixels" else None,
        history=tuple(convergence.history),
    )
