"""What a worker does: one job, from its observations to its rows."""

import gzip
import importlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

from initfree import formulations
from initfree.arrays import Array
from initfree.benchmark.config import SolverConfig
from initfree.benchmark.data import Data, Place, load_data, true_cameras
from initfree.benchmark.jobs import ADJUSTED, PIPELINE, TRUTH, DataSpec, Job
from initfree.benchmark.pictures import reconstruction
from initfree.benchmark.rows import row, scored, stage_columns
from initfree.certificate import certify
from initfree.config import SolveConfig
from initfree.errors import InputError
from initfree.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.formulations.pose_rot import RelativeRotations
from initfree.model import MetricModel
from initfree.pipeline import (
    adjust_euclidean,
    blas_threads,
    minimise_ose,
    refine_projective,
    refine_radial_cameras,
    upgrade_metric,
)
from initfree.problem import Problem
from initfree.repair import robust_cost
from initfree.result import Result, StageReport
from initfree.rotations import estimate_rotations, rotations_from_truth
from initfree.strategy import solve_auto
from initfree.upgrade import Metric
from initfree.upgrade.selected import better

_UPGRADE = {"before": "none"}
"""rows are named in the paper's words"""


@dataclass
class Outcome:
    """What a job sends back."""

    rows: list[dict[str, Any]]
    history: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    models: dict[str, MetricModel] = field(default_factory=dict)
    """reconstruction by upgrade"""


@dataclass(frozen=True)
class Parcel:
    """An outcome as files."""

    job: str
    rows: list[dict[str, Any]]
    history: bytes | None = None
    reconstruction: bytes | None = None


def run_job(job: Job, place: Place, pictures: bool) -> Parcel:
    """Never raises: what goes wrong in a job is in its rows."""
    data = None
    try:
        import_modules(job.imports, place.search)
        data = load_data(job.data, place)
        with blas_threads(data.problem):
            _warm(job.method, job.formulation, job.loss, job.data, place)
            outcome = METHODS[job.method](job, data, place)
        history = gzip.compress(json.dumps(outcome.history).encode(), mtime=0) if outcome.history else None
        image = reconstruction(data, outcome.models) if pictures and outcome.models else None
        return Parcel(job.key, outcome.rows, history, image)
    except Exception as error:
        return Parcel(job.key, failures(job, error, data))


@cache
def _warmed(method: str, formulation: str, loss: str) -> list[bool]:
    return []


def _warm(method: str, formulation: str, loss: str, spec: DataSpec, place: Place) -> None:
    """Two steps of every stage before the first run of a kind in this process: machine code is made or read now, and the
    times of the runs are those of the solver."""
    once = _warmed(method, formulation, loss)
    if once or method not in (PIPELINE, "auto", "oracle"):
        return
    once.append(True)
    short = SolverConfig(max_iterations=2)
    upgrades = ("before", "linear1997", "linear", "calibrated", "refined") if method == PIPELINE else (ADJUSTED,)
    job = Job(spec, PIPELINE, formulation or "pose", "spectral", loss or "none", "truth", short, upgrades)
    pipeline(job, load_data(spec, place), place)


def failures(job: Job, error: BaseException, data: Data | None = None) -> list[dict[str, Any]]:
    """The rows of a job that raised."""
    return [row(job, upgrade, data, one_line(error)) for upgrade in job.upgrades]


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"


def import_modules(names: tuple[str, ...], search: tuple[str, ...]) -> None:
    """Modules that register formulations."""
    sys.path.extend(path for path in search if path not in sys.path)
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise InputError(f"cannot import {name}, which the sweep's imports name: {error}") from error


def settings(job: Job) -> SolveConfig:
    """The solver's configuration of a job of the paper's pipeline."""
    assert job.solver is not None
    init = "spectral" if job.init == TRUTH else job.init
    loss: Any = job.loss
    return SolveConfig(formulation=job.formulation, init=init, loss=loss, seed=job.data.seed, **vars(job.solver))


def pipeline(job: Job, data: Data, place: Place) -> Outcome:
    """The paper's pipeline: one stage 1, one refinement, every upgrade."""
    config, problem = settings(job), data.problem
    formulation = formulations.make(config.formulation, config.alpha)
    rotations, seconds_rotations = _rotations(job, data, place) if formulation.uses_rotations else (None, 0.0)
    began = time.perf_counter()
    start = true_cameras(data) if job.init == TRUTH else None
    P, X, ose = minimise_ose(problem, config, rotations, None, start)
    if formulation.radial:
        P, X, _ = refine_radial_cameras(problem, config, P, X, None)
    # As in the paper's table of times, all that comes before the refinement.
    seconds = {"seconds_ose": time.perf_counter() - began + seconds_rotations}
    began = time.perf_counter()
    P, X, refinement = refine_projective(problem, config, P, X, None)
    seconds["seconds_refine"] = time.perf_counter() - began
    outcome = Outcome([], {"ose": _history(ose), "refinement": _history(refinement)})
    shared = stage_columns(ose, refinement)
    upgraded: Upgraded = {}
    for upgrade in job.upgrades:
        try:
            metric, columns = _metric(problem, config, P, X, upgrade, upgraded)
            columns["euclidean_cost"] = robust_cost(problem, metric)
            outcome.models[upgrade] = as_model(problem, metric)
            columns |= scored(outcome.models[upgrade], data)
        except Exception as error:
            columns = {"error": one_line(error)}
        columns |= seconds
        columns["seconds_total"] = sum(value for name, value in columns.items() if name.startswith("seconds_"))
        outcome.rows.append(row(job, upgrade, data, **{**shared, **columns}))
    return outcome


Upgraded = dict[str, tuple[Metric, float]]
"""metric reconstructions of one projective one, and their seconds, by upgrade"""


def _metric(
    problem: Problem, config: SolveConfig, P: Array, X: Array, upgrade: str, upgraded: Upgraded
) -> tuple[Metric, dict[str, Any]]:
    """The metric reconstruction of a row, and its columns."""

    def made(name: Any) -> tuple[Metric, float]:
        if name not in upgraded:
            began = time.perf_counter()
            metric, _, _ = upgrade_metric(problem, replace(config, upgrade=name), P, X)
            upgraded[name] = metric, time.perf_counter() - began
        return upgraded[name]

    if upgrade == "selected":
        # Of two upgrades that are rows themselves; the refined one takes as long as all others together.
        (one, first), (two, second) = made("linear"), made("refined")
        return better(one, two), {"seconds_upgrade": first + second}
    metric, seconds = made("calibrated" if upgrade == ADJUSTED else _UPGRADE.get(upgrade, upgrade))
    columns: dict[str, Any] = {"seconds_upgrade": seconds}
    if upgrade == ADJUSTED:
        began = time.perf_counter()
        metric, _ = adjust_euclidean(problem, config, metric, None)
        columns["seconds_adjust"] = time.perf_counter() - began
        certificate = certify(problem.tracks, problem.names, problem.m, problem.pixels, metric)
        columns |= {"accepted": certificate.accepted, "reason": certificate.reason}
    return metric, columns


def as_model(problem: Problem, metric: Metric) -> MetricModel:
    return MetricModel(problem.names, metric.R, metric.t, problem.landmark_ids, metric.xyz)


def _rotations(job: Job, data: Data, place: Place) -> tuple[RelativeRotations, float]:
    if not data.problem.calibrated:
        raise InputError(f"{job.formulation} needs known intrinsics; {job.data.set} has none")
    if job.rotations == "estimated":
        return _estimated(job.data, place)
    began = time.perf_counter()
    return rotations_from_truth(data.problem, data.truth), time.perf_counter() - began


@lru_cache(maxsize=4)
def _estimated(spec: DataSpec, place: Place) -> tuple[RelativeRotations, float]:
    """Once for all inits and losses, with the time that it took."""
    began = time.perf_counter()
    return estimate_rotations(load_data(spec, place).problem, spec.seed), time.perf_counter() - began


def _history(stage: StageReport) -> list[dict[str, float]]:
    first = [] if stage.initial_cost is None else [{"cost": stage.initial_cost, "seconds": 0.0}]
    return first + [{"cost": step.cost, "seconds": step.seconds} for step in stage.history]


def auto(job: Job, data: Data, place: Place) -> Outcome:
    """Our own strategy, as `initfree solve` runs it."""
    began = time.perf_counter()
    result = solve_auto(data.problem, SolveConfig(seed=job.data.seed))
    seconds = time.perf_counter() - began
    stages = {stage.name: stage for stage in result.stages}
    history = {"ose": _history(stages["varpro"]), "refinement": _history(stages["refinement"])}
    columns = stage_columns(stages["varpro"], stages["refinement"])
    columns |= {"accepted": result.certificate.accepted, "reason": f"{result.winner}: {result.certificate.reason}"}
    columns |= {"euclidean_cost": _ranked_cost(result), "seconds_total": seconds}
    return _adjusted(job, data, result.model(), columns, history)


def _ranked_cost(result: Result) -> float:
    """Of all observations: wrong ones are left out of an accepted result."""
    return next(start.cost for start in result.starts if start.name == result.winner)


def oracle(job: Job, data: Data, place: Place) -> Outcome:
    """The robust adjustment from the true cameras and landmarks: as good as these observations allow."""
    began = time.perf_counter()
    metric = adjust_from_truth(data.problem, data.truth_metric)
    seconds = time.perf_counter() - began
    columns = {"euclidean_cost": robust_cost(data.problem, metric), "seconds_adjust": seconds, "seconds_total": seconds}
    return _adjusted(job, data, as_model(data.problem, metric), columns)


def adjust_from_truth(problem: Problem, truth: Metric) -> Metric:
    """At 4 px from the first: wider scales would let wrong matches pull it away from the truth that it starts at."""
    free = FreeIntrinsics() if problem.calibrated else FreeIntrinsics(focal=True, radial=2)
    limits = AdjustConfig(free=free, scales=(4.0,))
    return adjust(problem.tracks, problem.m, problem.pixels, truth, limits, groups=problem.camera_ids)[0]


def _mapper(job: Job, data: Data, place: Place) -> Outcome:
    from initfree.benchmark.mappers import reconstruct

    model, seconds, reason = reconstruct(job, place)
    return _adjusted(job, data, model, {"reason": reason, "seconds_total": seconds})


def _adjusted(
    job: Job, data: Data, model: MetricModel, columns: dict[str, Any], history: dict[str, Any] | None = None
) -> Outcome:
    return Outcome([row(job, ADJUSTED, data, **{**columns, **scored(model, data)})], history or {}, {ADJUSTED: model})


METHODS: dict[str, Callable[[Job, Data, Place], Outcome]] = {
    PIPELINE: pipeline,
    "auto": auto,
    "oracle": oracle,
    "colmap-incremental": _mapper,
    "colmap-global": _mapper,
}
