"""From a sweep's configuration to its runs, each with a key that is the same on every machine.

A *job* is one stage-1 run with its refinement, or one run of another method; a *row* is a job with one metric upgrade. The
key of a job is a hash of everything that decides its outcome, and nothing else: no path, no time, no machine.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from initfree import formulations
from initfree.benchmark.config import Condition, Densification, SetConfig, SolverConfig, SweepConfig
from initfree.benchmark.sources import bal_problems, definition, generator_config, has_data, set_title
from initfree.engine.linear_solver import LINEAR_SOLVERS
from initfree.engine.losses import stage_1_losses
from initfree.errors import InputError
from initfree.stages.initialization import INITIALIZATIONS, SEEDLESS
from initfree.stages.upgrade import UPGRADES

PIPELINE = "initfree"
"""method of the paper's pipeline"""
ADJUSTED = "adjusted"
"""upgrade of a row after Euclidean bundle adjustment"""
TRUTH = "truth"
"""init that starts stage 1 at the true cameras"""


@dataclass(frozen=True)
class DataSpec:
    """Which observations a job works on."""

    set: str
    source: str
    """generated or bal"""
    definition: str
    """the generator's configuration as JSON, or the BAL file's name"""
    seed: int
    min_obs: int
    densification: Densification
    condition: Condition
    intrinsics: str = "rays"
    """rays: known, calibrated rays; pixels: unknown, rescaled pixels"""

    @property
    def first(self) -> int | None:
        """The generator's own minimum of observations, where it is not the preset's."""
        return self.min_obs if self.densification == "generate" else None

    @property
    def visibility(self) -> str:
        """The generator's: surface or frustum; empty for measured data."""
        made = json.loads(self.definition) if self.source == "generated" else {}
        return "" if made.get("scene", {}).get("kind", "colmap") == "colmap" else made["visibility"]["kind"]

    @cached_property
    def key(self) -> str:
        """Of what is generated: a filter is applied when it is loaded."""
        return _hash([self.set, self.source, self.definition, self.seed, self.first, asdict(self.condition)])


@dataclass(frozen=True)
class Job:
    """One run; `upgrades` are the rows that it makes."""

    data: DataSpec
    method: str
    formulation: str = ""
    init: str = ""
    loss: str = ""
    rotations: str = ""
    solver: SolverConfig | None = None
    upgrades: tuple[str, ...] = (ADJUSTED,)
    imports: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """Without the upgrades: one more of them is one more row of the same job."""
        settings = None if self.solver is None else _settings(self.solver)
        return _hash([asdict(self.data), self.method, self.formulation, self.init, self.loss, self.rotations, settings])

    def row_key(self, upgrade: str) -> str:
        return _hash([self.key, upgrade])

    @property
    def row_keys(self) -> list[str]:
        return [self.row_key(upgrade) for upgrade in self.upgrades]

    def __str__(self) -> str:
        parts = [self.data.set, f"seed {self.data.seed}", f"min-obs {self.data.min_obs}"]
        method = [] if self.method == PIPELINE else [self.method]
        pixels = [self.data.intrinsics] if self.data.intrinsics != "rays" else []
        if self.solver is not None and self.solver.linear_solver != "exact":
            pixels.append(f"{self.solver.linear_solver} {self.solver.inner_iterations}")
        return ", ".join(
            parts + pixels + method + [part for part in (self.formulation, self.init, self.loss, self.rotations) if part]
        )


def _settings(solver: SolverConfig) -> dict[str, Any]:
    """What of the settings decides: those of inexact linear solvers count where one is used."""
    settings = asdict(solver)
    if solver.linear_solver == "exact":
        for name in ("linear_solver", "inner_iterations", "inner_tolerance", "inner_stop"):
            del settings[name]
    return settings


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def expand(config: SweepConfig, data: Path | None = None) -> list[Job]:
    """All jobs of a sweep, seed by seed, those of one dataset together."""
    uses_rotations = _check(config)
    sets = config.sets
    if config.source == "bal":
        sets = sets or tuple(SetConfig(name) for name in bal_problems(data))
    else:
        _check_titles(config)
    jobs = [job for one in sets if not one.optional or has_data(one) for job in _of_set(config, one, data, uses_rotations)]
    if not jobs:
        raise InputError(f"the sweep {config.name} has no runs; expected sets and formulations or methods")
    place = {seed: k for k, seed in enumerate(dict.fromkeys(job.data.seed for job in jobs))}
    # Seed by seed, so that a sweep that is stopped has whole seeds; sorting keeps the rest in order.
    return sorted({job.key: job for job in jobs}.values(), key=lambda job: place[job.data.seed])


def _of_set(config: SweepConfig, one: SetConfig, data: Path | None, uses_rotations: set[str]) -> Iterator[Job]:
    if config.source == "bal":
        file = bal_problems(data).get(one.name)
        if file is None:
            known = ", ".join(bal_problems(data))
            raise InputError(f"no BAL problem {one.name} under {data}; found {known}")
        name, what = one.name, file.name
    else:
        made = generator_config(one, config.shuffle)
        name, what = set_title(one), definition(made)
    for seed in one.seeds or config.seeds:
        for min_obs in one.min_obs or config.min_obs:
            for condition in config.conditions:
                given = "pixels" if config.source == "bal" else "rays"
                spec = DataSpec(name, config.source, what, seed, min_obs, one.densification, condition, given)
                yield from _of_data(config, one, spec, uses_rotations)


def _of_data(config: SweepConfig, one: SetConfig, spec: DataSpec, uses_rotations: set[str]) -> Iterator[Job]:
    # A seed changes neither a BAL file nor a start without random numbers: one stands for all.
    one_for_all = config.source == "bal" and spec.seed != (one.seeds or config.seeds)[0]
    for method in config.methods if one.methods is None else one.methods:
        if not (one_for_all and method in ("auto", "oracle")):
            yield Job(spec, method, imports=config.imports)
    upgrades = (*config.upgrades, *([ADJUSTED] if config.adjust else []))
    named, inits, losses, sources, solvers, orders = (
        mine if (mine := getattr(one, axis)) is not None else getattr(config, axis)
        for axis in ("formulations", "inits", "losses", "rotations", "linear_solvers", "inner_iterations")
    )
    protocols = ("paper",) if config.source == "bal" else config.intrinsics
    for formulation, protocol in product(named, protocols):
        rotated = formulation in uses_rotations
        starts = [i for i in inits if not (one_for_all and (i == TRUTH or (i in SEEDLESS and not rotated)))]
        seen = replace(spec, intrinsics="rays" if rotated or protocol == "rays" else "pixels")
        variants: Iterator[tuple[Any, ...]] = product(
            sources if rotated else ("",),
            config.alphas or (config.solver.alpha,),
            (config.betas if rotated else ()) or (config.solver.beta,),
            [
                (name, terms)
                for name in solvers or (config.solver.linear_solver,)
                for terms in ((name != "exact" and orders) or (config.solver.inner_iterations,))
            ],
            starts,
            losses,
        )
        for rotations, alpha, beta, (linear_solver, terms), init, loss in variants:
            solver = replace(config.solver, alpha=alpha, beta=beta, linear_solver=linear_solver, inner_iterations=terms)
            yield Job(seen, PIPELINE, formulation, init, loss, rotations, solver, upgrades, config.imports)


def _check_titles(config: SweepConfig) -> None:
    """Rows know a set by its title alone: one that is listed twice, with other methods, is the same set."""
    made: dict[str, str] = {}
    for one in config.sets:
        title, what = set_title(one), definition(generator_config(one, config.shuffle))
        if made.setdefault(title, what) != what:
            raise InputError(f"{config.name}: two sets are called {title!r}; give one of them another title")


def _check(config: SweepConfig) -> set[str]:
    """Refuse what the configuration's types cannot; the formulations that use rotations."""
    every = (config, *config.sets)
    solvers = {config.solver.linear_solver}.union(*(one.linear_solvers or () for one in every))
    for what, named, known in (
        ("init", {init for one in every for init in one.inits or ()}, (*INITIALIZATIONS, TRUTH)),
        ("loss", {loss for one in every for loss in one.losses or ()}, stage_1_losses()),
        ("linear solver", solvers, ("exact", *LINEAR_SOLVERS)),
        ("upgrade", set(config.upgrades), ("before", *(name for name in UPGRADES if name != "none"))),
    ):
        for name in sorted(named.difference(known)):
            raise InputError(f"{config.name}: unknown {what} {name!r}; expected some of {', '.join(known)}")
    named = {name for one in every for name in one.formulations or ()}
    made = {name: formulations.make(name, config.solver.alpha) for name in sorted(named)}
    if config.source == "bal":
        methods = {method for one in every for method in one.methods or ()}
        foreign = sorted(methods - {"auto", "oracle", "classical"})
        if foreign:
            raise InputError(f"{config.name}: {foreign[0]} is not run on BAL files, which have no intrinsics")
        if any(condition != Condition() for condition in config.conditions):
            raise InputError(f"{config.name}: conditions spoil generated sets; BAL files are used as they are")
    elif not config.sets:
        raise InputError(f"{config.name}: no sets; expected presets of the generator, such as set1")
    return {name for name, formulation in made.items() if formulation.uses_rotations}
