"""A job of the paper's pipeline: one stage 1, one refinement, every metric upgrade."""

import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from initfree import formulations
from initfree.benchmark.data import Data, Place, load_data, true_cameras
from initfree.benchmark.jobs import ADJUSTED, TRUTH, DataSpec, Job
from initfree.benchmark.rows import SECONDS, row, scored, stage_columns
from initfree.certificate import certify
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.errors import InputError
from initfree.formulations.pose_rot import RelativeRotations
from initfree.result import StageReport
from initfree.stages.euclidean import robust_cost
from initfree.stages.pipeline import PROJECTIVE, State, adjust_euclidean, run_stages, upgrade_metric
from initfree.stages.upgrade import Projective, Upgraded
from initfree.stages.upgrade.selected import CANDIDATES, better
from initfree.two_view.rotations import rotations_for, truth_in_place_of

_UPGRADE = {"before": "none"}
"""rows are named in the paper's words"""


@dataclass
class Outcome:
    """What a job sends back."""

    rows: list[dict[str, Any]]
    history: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    models: dict[str, Reconstruction] = field(default_factory=dict)
    """reconstruction by upgrade"""


def settings(job: Job) -> SolveConfig:
    """The solver's configuration of a job of the paper's pipeline."""
    assert job.solver is not None
    init = "spectral" if job.init == TRUTH else job.init
    rotations = "truth" if job.rotations == "truth" else "estimated"
    given: dict[str, Any] = vars(job.solver) | {"loss": job.loss, "rotations": rotations}
    return SolveConfig(formulation=job.formulation, init=init, seed=job.data.seed, **given)


def pipeline(job: Job, data: Data, place: Place) -> Outcome:
    """The paper's pipeline: one stage 1, one refinement, every upgrade."""
    config, problem = settings(job), data.problem
    state = State(problem, config, cameras=true_cameras(data) if job.init == TRUTH else None)
    seconds_rotations = 0.0
    if formulations.make(config.formulation, config.alpha).uses_rotations:
        rotations, seconds_rotations = rotations_of(job, config, data, place)
        state = replace(state, rotations=rotations)
    began = time.perf_counter()
    state = run_stages(state, PROJECTIVE[:-1])
    # As in the paper's table of times, all that comes before the refinement.
    seconds = {"seconds_ose": time.perf_counter() - began + seconds_rotations}
    began = time.perf_counter()
    state = run_stages(state, PROJECTIVE[-1:])
    seconds["seconds_refine"] = time.perf_counter() - began
    reports = {report.name: report for report in state.reports}
    ose, refinement = reports["varpro"], reports["refinement"]
    outcome = Outcome([], {"ose": history_of(ose), "refinement": history_of(refinement)})
    shared = stage_columns(ose, refinement)
    upgrades = Upgrades(state)
    for upgrade in job.upgrades:
        try:
            reconstruction, columns = _metric(upgrades, upgrade)
            columns["euclidean_cost"] = robust_cost(problem, reconstruction)
            outcome.models[upgrade] = labelled(problem, reconstruction)
            columns |= scored(outcome.models[upgrade], data)
        except Exception as error:
            columns = dict[str, Any](error=one_line(error))
        columns |= seconds
        columns["seconds_total"] = sum(columns.get(name, 0.0) for name in SECONDS)
        outcome.rows.append(row(job, upgrade, data, **{**shared, **columns}))
    return outcome


@dataclass
class Upgrades:
    """Metric upgrades of one projective reconstruction, each made once, and their seconds."""

    state: State
    made: dict[str, tuple[State, float]] = field(default_factory=dict)

    def __call__(self, name: Any) -> tuple[State, float]:
        if name not in self.made:
            began = time.perf_counter()
            state = upgrade_metric(replace(self.state, config=replace(self.state.config, upgrade=name)))
            self.made[name] = state, time.perf_counter() - began
        return self.made[name]

    @property
    def scene(self) -> Projective:
        return Projective.of(self.state.problem, self.state.P, self.state.X)

    def upgraded(self, name: Any) -> tuple[Upgraded, float]:
        state, seconds = self(name)
        assert state.upgraded is not None
        return state.upgraded, seconds


def _metric(upgrades: Upgrades, upgrade: str) -> tuple[Reconstruction, dict[str, Any]]:
    """The metric reconstruction of a row, and its columns."""
    if upgrade in CANDIDATES:
        # Of two upgrades that are rows themselves; the refined one takes as long as all others together.
        (one, first), (two, second) = (upgrades.upgraded(name) for name in CANDIDATES[upgrade])
        return better(upgrades.scene, one, two).reconstruction, {"seconds_upgrade": first + second}
    state, seconds = upgrades("calibrated" if upgrade == ADJUSTED else _UPGRADE.get(upgrade, upgrade))
    columns: dict[str, Any] = {"seconds_upgrade": seconds}
    if upgrade == ADJUSTED:
        began = time.perf_counter()
        state = adjust_euclidean(state)
        columns["seconds_adjust"] = time.perf_counter() - began
        assert state.reconstruction is not None
        certificate = certify(state.problem, state.reconstruction)
        columns |= {"accepted": certificate.accepted, "reason": certificate.reason}
    assert state.reconstruction is not None
    return state.reconstruction, columns


def labelled(problem: Problem, reconstruction: Reconstruction) -> Reconstruction:
    """With image names and landmark ids, so that it can be compared with the truth."""
    return replace(reconstruction, names=problem.names, ids=problem.landmark_ids)


def rotations_of(job: Job, config: SolveConfig, data: Data, place: Place) -> tuple[RelativeRotations, float]:
    if job.rotations != "truth":
        rotations, seconds = _estimated(job.data, config, place)
        if job.rotations == "truth-as-estimated":
            rotations = truth_in_place_of(rotations, data.problem, data.truth)
        return rotations, seconds
    began = time.perf_counter()
    return rotations_for(data.problem, config, data.truth), time.perf_counter() - began


@lru_cache(maxsize=4)
def _estimated_once(spec: DataSpec, place: Place, config: SolveConfig) -> tuple[RelativeRotations, float]:
    began = time.perf_counter()
    return rotations_for(load_data(spec, place).problem, config), time.perf_counter() - began


def _estimated(spec: DataSpec, config: SolveConfig, place: Place) -> tuple[RelativeRotations, float]:
    """Once for all inits and losses, with the time that it took."""
    return _estimated_once(spec, place, replace(config, init="spectral", loss="none"))


def history_of(stage: StageReport) -> list[dict[str, float]]:
    first = [] if stage.initial_cost is None else [{"cost": stage.initial_cost, "seconds": 0.0}]
    return first + [{"cost": step.cost, "seconds": step.seconds} for step in stage.history]


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
