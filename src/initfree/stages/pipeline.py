"""The stages of the paper, top to bottom; each is a function from state to state that can be called on its own.

observations -> relative rotations -> VarPro -> radial refinement -> projective refinement -> metric upgrade ->
Euclidean adjustment

`STAGES` is the one list of them: a single pipeline, every start of `auto` and the benchmark run it, whole or in part. A
stage that the configuration leaves out returns the state as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from initfree import formulations
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.engine.compilation import clock
from initfree.engine.levenberg_marquardt import Convergence, Iteration, LMConfig, OnIteration
from initfree.engine.linear_solver import LinearSolver
from initfree.engine.losses import scale_from_median
from initfree.formulations import Formulation
from initfree.formulations.pose_rot import RelativeRotations, RotationTerm
from initfree.result import StageReport
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust, residuals
from initfree.stages.initialization import initialize
from initfree.stages.refinement.radial import refine_radial
from initfree.stages.refinement.reprojection import ProjectiveRefinement, Reprojection, reprojection_errors
from initfree.stages.trace import Snapshot, Trace
from initfree.stages.upgrade import Projective, Upgraded, upgrade
from initfree.stages.varpro import VariableProjection, placed
from initfree.two_view.pair_matrices import pair_matrices
from initfree.two_view.rotations import rotations_for

OnProgress = Callable[[str, int, Iteration | None], None]
"""called with the stage's name, the attempt and, of an attempted step, its figures; a name that ends with "of N" counts to N
(pairs of images, finishing steps, parts)"""


def _nothing() -> Array:
    return np.empty(0)


@dataclass(frozen=True)
class State:
    """What the stages hand on: the problem and the configuration first, then what each of them found."""

    problem: Problem
    config: SolveConfig
    truth: Reconstruction | None = None
    """where rotations come from, if they come from the truth"""
    rotations: RelativeRotations | None = None
    cameras: Array | None = None
    """first cameras (cameras, 3, 4) in place of the configured initialisation"""
    P: Array = field(default_factory=_nothing)
    """(cameras, 3, 4) projective, normalised coordinates"""
    X: Array = field(default_factory=_nothing)
    """(landmarks, 4) homogeneous"""
    before: Reconstruction | None = None
    """the projective reconstruction read as if it were metric"""
    upgraded: Upgraded | None = None
    reconstruction: Reconstruction | None = None
    """the newest metric one"""
    reports: tuple[StageReport, ...] = ()
    on_progress: OnProgress | None = None
    trace: Trace = field(default_factory=Trace)
    """where the stages have been"""

    def reporting(self, stage: str, snapshot: Snapshot | None = None, *, metric: bool = False) -> OnIteration | None:
        """The callback of a stage's iterations; `snapshot` returns its cameras and landmarks."""
        on_iteration = None if self.on_progress is None else partial(self.on_progress, stage)
        if snapshot is None:
            return on_iteration
        keep = self.trace.begin(stage, self.problem.landmark_ids, snapshot, metric=metric)

        def both(index: int, step: Iteration) -> None:
            if step.accepted:
                keep(index + 1, step.cost)
            if on_iteration is not None:
                on_iteration(index, step)

        return both

    def with_report(self, report: StageReport, **found: object) -> "State":
        """The state after a stage."""
        return replace(self, reports=(*self.reports, report), **found)


Stage = Callable[[State], State]


def run_stages(state: State, stages: Sequence[Stage] | None = None) -> State:
    """Run `stages` one after the other, by default all of `STAGES`."""
    for stage in STAGES if stages is None else stages:
        state = stage(state)
    return state


def resolve_rotations(state: State) -> State:
    """Relative rotations, for formulations that use them: given, from the truth, or from two-view geometry."""
    formulation = formulations.make(state.config.formulation, state.config.alpha)
    if state.rotations is not None or not formulation.uses_rotations:
        return state
    began = clock()
    rotations = rotations_for(state.problem, state.config, state.truth, on_pairs(state.on_progress))
    report = StageReport("rotations", clock() - began, iterations=len(rotations.pairs))
    return state.with_report(report, rotations=rotations)


def minimise_ose(state: State) -> State:
    """Stage 1: object-space error by VarPro from the chosen initial cameras."""
    problem, config = state.problem, state.config
    formulation = formulations.make(config.formulation, config.alpha)
    term = None
    if state.rotations is not None and formulation.uses_rotations:
        term = RotationTerm(_weighed(problem, formulation, state.rotations), config.beta)
    first = initialize(config.init, problem.tracks, config.seed) if state.cameras is None else state.cameras
    if term is not None and state.cameras is not None and not formulation.relinearises:
        first = placed(problem.tracks, problem.m, formulation, first)
    stage = VariableProjection(
        problem.tracks, problem.m, formulation, first,
        loss=config.loss, loss_scale=config.loss_scale, camera_term=term, solver=_linear_solver(config),
        column_scaling=config.column_scaling,
    )  # fmt: skip
    # Cameras of radial formulations have no third row yet: nothing that could be shown.
    snapshot = None if formulation.radial else lambda: (stage.P, stage.X)
    limits = LMConfig(config.max_iterations, config.tolerance)
    convergence = stage.minimise(limits, state.reporting("varpro", snapshot))
    report = _report("varpro", convergence, stage.mean_residual, "normalised")
    if not formulation.radial:
        error = reprojection_errors(problem.tracks, problem.m, problem.unit, stage.P, stage.X)
        report = replace(report, mean_pixels=float(np.mean(error)))
    return state.with_report(report, P=stage.P, X=stage.X)


def _linear_solver(config: SolveConfig) -> LinearSolver:
    return LinearSolver(config.linear_solver, config.inner_iterations, config.inner_tolerance, config.inner_stop)


def _weighed(problem: Problem, formulation: Formulation, rotations: RelativeRotations) -> RelativeRotations:
    """With the pairs' matrices, where the formulation weighs by them."""
    if not formulation.pair_matrices or rotations.matrix is not None:
        return rotations
    return replace(rotations, matrix=pair_matrices(problem, rotations))


def refine_radial_cameras(state: State) -> State:
    """RpOSE only: radial refinement and third rows. Distortion is a nuisance where intrinsics are unknown."""
    problem, config = state.problem, state.config
    if not formulations.make(config.formulation, config.alpha).radial:
        return state
    P, X, convergence = refine_radial(
        problem.tracks, problem.m, problem.unit, state.P, state.X,
        distortion=not problem.calibrated,
        config=LMConfig(config.max_iterations, config.refine_tolerance),
        on_iteration=state.reporting("radial"),
        solver=_linear_solver(config),
    )  # fmt: skip
    mean = float(np.sqrt(2.0 * convergence.cost / problem.tracks.observations))
    return state.with_report(_report("radial", convergence, mean, "pixels (rms)"), P=P, X=X)


def refine_projective(state: State) -> State:
    """Stage 2: reprojection error in pixels; Cauchy is graduated from the residuals' own scale to the chosen one."""
    problem, config = state.problem, state.config
    if not config.refine:
        return state
    error = Reprojection(problem.m, problem.unit)
    stage = ProjectiveRefinement(problem.tracks, error, state.P, state.X, solver=_linear_solver(config))
    on_iteration = state.reporting("refinement", lambda: stage.reconstruction)
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
    return state.with_report(_report("refinement", convergence, mean, "pixels"), P=P, X=X)


def upgrade_metric(state: State) -> State:
    """Stage 3: the metric reconstruction, and the projective one read as metric."""
    began = clock()
    scene = Projective.of(state.problem, state.P, state.X)
    upgraded = upgrade(state.config.upgrade, scene)
    report = StageReport("upgrade", clock() - began)
    before = upgrade("none", scene).reconstruction
    return state.with_report(report, before=before, upgraded=upgraded, reconstruction=upgraded.reconstruction)


def adjust_euclidean(state: State) -> State:
    """Stage 4: robust bundle adjustment. Unknown focal lengths and distortion are free, shared where cameras are."""
    problem, config = state.problem, state.config
    if not config.adjust:
        return state
    assert state.reconstruction is not None, "the adjustment follows the upgrade"
    began = clock()
    now = state.reconstruction

    def snapshot() -> tuple[Array, Array]:
        return np.concatenate([now.R, now.t[:, :, None]], axis=2), now.xyz

    on_iteration = state.reporting("adjustment", snapshot, metric=True)

    def on_step(index: int, step: Iteration, reached: Reconstruction) -> None:
        nonlocal now
        now = reached
        if on_iteration is not None:
            on_iteration(index, step)

    free = FreeIntrinsics.of(problem)
    limits = AdjustConfig(free=free, max_iterations=config.max_iterations, tolerance=config.adjust_tolerance)
    reconstruction, convergence = adjust(problem, state.reconstruction, limits, on_step=on_step)
    mean = float(np.mean(residuals(problem, reconstruction).error))
    report = _report("adjustment", convergence, mean, "pixels")
    report = replace(report, seconds=clock() - began)
    return state.with_report(report, reconstruction=reconstruction)


STAGES: tuple[Stage, ...] = (
    resolve_rotations,
    minimise_ose,
    refine_radial_cameras,
    refine_projective,
    upgrade_metric,
    adjust_euclidean,
)
PROJECTIVE: tuple[Stage, ...] = STAGES[:4]
"""those that know cameras up to a projective transform only"""


def on_pairs(on_progress: OnProgress | None) -> Callable[[int, int], None] | None:
    """The callback of two-view geometry, pair by pair."""
    if on_progress is None:
        return None
    return lambda index, total: on_progress(f"two-view geometry, pair of {total}", index, None)


def _report(name: str, convergence: Convergence, mean_residual: float, unit: str) -> StageReport:
    return StageReport(
        name=name,
        seconds=convergence.seconds,
        iterations=len(convergence.history),
        accepted=convergence.accepted,
        reason=convergence.reason,
        gradient=convergence.gradient,
        initial_cost=convergence.initial_cost,
        cost=convergence.cost,
        mean_residual=mean_residual,
        residual_unit=unit,
        mean_pixels=mean_residual if unit == "pixels" else None,
        history=tuple(convergence.history),
    )
