"""A job of the paper's pipeline: one stage 1, one refinement, every metric upgrade."""

import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from initfree import formulations
from initfree.auto.repair import robust_cost
from initfree.benchmark.data import Data, Place, load_data, true_cameras
from initfree.benchmark.jobs import ADJUSTED, TRUTH, DataSpec, Job
from initfree.benchmark.rows import SECONDS, row, scored, stage_columns
from initfree.certificate.focal import verify
from initfree.config import SolveConfig
from initfree.errors import InputError
from initfree.formulations.pose_rot import RelativeRotations
from initfree.model import MetricModel
from initfree.pipeline import adjust_euclidean, minimise_ose, refine_projective, refine_radial_cameras, upgrade_metric
from initfree.problem import Problem
from initfree.result import StageReport
from initfree.tracks import Array
from initfree.two_view.rotations import estimate_rotations, rotations_from_truth
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
    outcome = Outcome([], {"ose": history_of(ose), "refinement": history_of(refinement)})
    shared = stage_columns(ose, refinement)
    upgraded: Upgraded = {}
    for upgrade in job.upgrades:
        try:
            metric, columns = _metric(problem, config, P, X, upgrade, upgraded)
            columns["euclidean_cost"] = robust_cost(problem, metric)
            outcome.models[upgrade] = as_model(problem, metric)
            columns |= scored(outcome.models[upgrade], data)
        except Exception as error:
            columns = dict[str, Any](error=one_line(error))
        columns |= seconds
        columns["seconds_total"] = sum(columns.get(name, 0.0) for name in SECONDS)
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
        certificate = verify(problem, metric)
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


def history_of(stage: StageReport) -> list[dict[str, float]]:
    first = [] if stage.initial_cost is None else [{"cost": stage.initial_cost, "seconds": 0.0}]
    return first + [{"cost": step.cost, "seconds": step.seconds} for step in stage.history]


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
