"""What a sweep is made of; the TOML presets have exactly these fields."""

from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from initfree.config import SeriesStop

Method = Literal["auto", "oracle", "classical", "colmap-incremental", "colmap-global"]
"""What else can make a reconstruction of the same observations, besides the paper's pipeline ("initfree"). classical:
bundle adjustment of the reprojection error from random cameras, which the paper's Figure 2a shows to collapse."""
UPGRADES = ("before", "linear1997", "refined1997", "selected", "linear", "refined", "selected-linear", "calibrated")
"""of a row by default: those of the paper and ours, without its authors' public code"""
Protocol = Literal["rays", "paper"]
"""What formulations are given. rays: calibrated rays, all of them. paper: those that use relative rotations get calibrated
rays, all others pixels rescaled to about [-1, 1], distortion left in."""
Densification = Literal["filter", "generate"]
Rotations = Literal["truth", "estimated", "truth-as-estimated"]

Share = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
MinObs = Annotated[int, Field(ge=2)]
Seed = Annotated[int, Field(ge=0)]

_strict = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_strict)
class SetConfig:
    """One dataset of the sweep: a preset of the generator or its TOML file, or a BAL problem (`source = "bal"`).

    What is None is as the sweep has it, or as the generator has it.
    """

    name: str
    title: Annotated[str, Field(pattern=r"^\w[\w .+-]*$")] | None = None
    """What rows and reports call it; by default the name of the preset or the file."""
    optional: bool = False
    """Leave the set out where its data is not on this machine."""
    min_obs: tuple[MinObs, ...] | None = None
    densification: Densification = "filter"
    """What a higher min-obs means. filter: landmarks with fewer observations go (the paper). generate: the generator's
    own minimum, for sets whose tracks are all about equally short; its mean rises by as much."""
    seeds: tuple[Seed, ...] | None = None
    formulations: tuple[str, ...] | None = None
    inits: tuple[str, ...] | None = None
    losses: tuple[str, ...] | None = None
    rotations: tuple[Rotations, ...] | None = None
    linear_solvers: tuple[str, ...] | None = None
    inner_iterations: tuple[Count, ...] | None = None
    methods: tuple[Method, ...] | None = None
    cameras: Annotated[int, Field(ge=2)] | None = None
    points: Annotated[int, Field(ge=8)] | None = None
    density: Annotated[float, Field(ge=2)] | None = None
    """Mean of observations a landmark."""
    visibility: Literal["surface", "frustum"] | None = None
    """Who sees a landmark: cameras that no surface hides it from, or all that have it in their image."""
    track_angle: Annotated[float, Field(gt=0, le=180)] | None = None
    """Widest change of view that a track survives, degrees: it keeps cameras that are far apart from sharing landmarks."""


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


@dataclass(frozen=True, config=_strict)
class Condition:
    """How the observations are spoilt, as in `initfree generate`."""

    noise: Annotated[float, Field(ge=0)] = 0.0
    outliers: Share = 0.0
    merged: Share = 0.0
    k1: float | None = None
    """radial distortion of the cameras; None: as the set has it"""


@dataclass(frozen=True, config=_strict)
class SolverConfig:
    """Settings that all runs of the paper's pipeline share; names and meanings of `SolveConfig`."""

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    beta: Annotated[float, Field(gt=0)] = 1.0
    refine_loss: Literal["none", "cauchy"] = "none"
    max_iterations: Annotated[int, Field(ge=1)] = 300
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-8
    """Tight: a study of stage 1 needs it to converge. At 1e-4, enough for `auto`, many runs end on a plateau."""
    refine_tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-8
    linear_solver: str = "exact"
    inner_iterations: Annotated[int, Field(ge=1)] = 20
    inner_tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-2
    inner_stop: SeriesStop = "term"
    column_scaling: bool = False


@dataclass(frozen=True, config=_strict)
class SweepConfig:
    """sets x min-obs x conditions x seeds x protocols x formulations x rotations x alphas x betas x linear solvers x
    inits x losses, each with every upgrade."""

    name: str
    sets: tuple[Annotated[SetConfig, BeforeValidator(_named)], ...] = ()
    description: str = ""
    source: Literal["generated", "bal"] = "generated"
    """bal: the sets are BAL files under --data; none named, all of them."""
    formulations: tuple[str, ...] = ("pose",)
    inits: tuple[str, ...] = ("normal",)
    """Those of `SolveConfig.init`, and "truth": stage 1 starts at the true cameras."""
    losses: tuple[str, ...] = ("none",)
    """Those of `SolveConfig.loss`, or what `imports` registers"""
    min_obs: tuple[MinObs, ...] = (3,)
    upgrades: Annotated[tuple[str, ...], Field(min_length=1)] = UPGRADES
    """before: as if the projective reconstruction were metric; else as in `SolveConfig`, or what `imports` registers"""
    adjust: bool = False
    """One more row a run: the calibrated upgrade after Euclidean bundle adjustment."""
    rotations: tuple[Rotations, ...] = ("truth",)
    """Where the relative rotations of formulations that use them come from. truth: all covisible pairs; estimated: pairs of
    neighbours with enough matches; truth-as-estimated: the true rotations of these very pairs, with their weights."""
    intrinsics: Annotated[tuple[Protocol, ...], Field(min_length=1)] = ("rays",)
    """What is known of the cameras of generated sets. On BAL it is always "paper": the file's intrinsics, for
    formulations that use rotations, and rescaled pixels."""
    alphas: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = ()
    """Weights of the regulariser; none: the solver's."""
    betas: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """Weights of the relative rotations, for formulations that use them; none: the solver's."""
    linear_solvers: tuple[str, ...] = ()
    """How steps of stage 1 and the refinement are solved for: as in `SolveConfig`, or what `imports` registers; none: as
    the solver's settings say."""
    inner_iterations: tuple[Count, ...] = ()
    """Most terms of the power series, or steps of conjugate gradients; none: the solver's."""
    seeds: tuple[Seed, ...] = (0,)
    methods: tuple[Method, ...] = ()
    conditions: Annotated[tuple[Condition, ...], Field(min_length=1)] = (Condition(),)
    shuffle: bool = False
    """List the cameras of generated sets in random order; init unit-circle reads the order."""
    trial: bool = False
    """Too small to say anything of the paper: the report says so above all else."""
    imports: tuple[str, ...] = ()
    """Modules that register parts of one's own, installed or beside the configuration; workers import them too."""
    solver: SolverConfig = field(default_factory=SolverConfig)
