"""What a user may choose; the command line is made from this. Nothing here loads a kernel."""

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from initfree.errors import InputError

LossName = Literal["none", "cauchy", "cauchy-consistent"]
RefineLossName = Literal["none", "cauchy"]
RotationSource = Literal["truth", "estimated"]
LinearSolverName = Literal["exact", "power", "pcg"]
UpgradeName = Literal["none", "linear1997", "linear", "calibrated", "refined", "refined1997", "selected", "selected-linear"]
Strategy = Literal["auto", "single"]


@dataclass(frozen=True)
class SolveConfig:
    """The stages of a solve, in order."""

    formulation: str = "pose"
    """Object-space error: pose, rose, rpose, expose, expose-printed, pose-rot, pose-rot-published, or a registered one."""
    init: str = "spectral"
    """Initial cameras: spectral, spectral-outward, unit-circle, unit-circle-shuffled, unit-circle-spectral, normal,
    normal-affine, uniform."""
    loss: LossName = "none"
    """Loss of stage 1: cauchy reweights projected residuals (the paper), cauchy-consistent the elimination too."""
    loss_scale: float | None = None
    """Scale of the Cauchy loss in normalised units; by default three robust deviations of the residuals."""
    alpha: float = 0.05
    """Weight of the regulariser."""
    beta: float = 1.0
    """Weight of the relative rotations (pose-rot)."""
    rotations: RotationSource = "estimated"
    """Where relative rotations come from (pose-rot): two-view geometry, or the truth that is given."""
    refine: bool = True
    """Refine the projective reconstruction by its reprojection error."""
    refine_loss: RefineLossName = "cauchy"
    """Loss of the refinement; cauchy is graduated from wide to the scale below."""
    refine_scale: float = 4.0
    """Final scale of the refinement's Cauchy loss, in pixels."""
    upgrade: UpgradeName = "calibrated"
    """Metric upgrade: none; linear1997, refined1997 and the better of the two, selected (the paper's); linear, refined
    and the better of these, selected-linear; calibrated."""
    adjust: bool = True
    """End with a robust Euclidean bundle adjustment; focal lengths and distortion are free where they are unknown."""
    seed: int = 0
    """Seed of all random numbers."""
    max_iterations: int = 300
    """Most attempted steps of a stage (of each scale, in graduated ones); starts of `auto` take at most 100."""
    tolerance: float = 1e-4
    """Stage 1 ends when a step lowers its cost by less than this share of it."""
    refine_tolerance: float = 1e-8
    """The same for the refinement; starts of `auto` take at least 1e-4, because their adjustment takes over."""
    adjust_tolerance: float = 1e-8
    """The same for the adjustment."""
    linear_solver: LinearSolverName = "exact"
    """How stage 1 and the refinement solve for a step: Cholesky, the power series (the paper's), conjugate gradients."""
    inner_iterations: int = 20
    """Most terms of the power series, or steps of conjugate gradients, for one step of a stage."""
    inner_tolerance: float = 1e-2
    """The series ends with a term of less than this share of the sum, conjugate gradients at this share of the residual."""
    skip: tuple[str, ...] = ()
    """Finishing steps and rounds of starts of the strategy auto that are left out, by name (docs/solver.md lists them)."""

    def __post_init__(self) -> None:
        for name, expected in _choices(self).items():
            value = getattr(self, name)
            if value not in expected:
                raise InputError(f"{name} is {value!r}; expected one of {', '.join(expected)}")
        ranges = {
            "beta": (_positive(self.beta), "a positive number"),
            "refine_scale": (_positive(self.refine_scale), "a positive number of pixels"),
            "seed": (_whole(self.seed) and 0 <= self.seed < 2**30, "a whole number from 0 to below 2^30"),
            "max_iterations": (_whole(self.max_iterations) and self.max_iterations >= 1, "a whole number, at least 1"),
            "tolerance": (_between(self.tolerance, 0.0, 1.0), "a number from 0 to below 1"),
            "inner_iterations": (_whole(self.inner_iterations) and self.inner_iterations >= 1, "a whole number, at least 1"),
            "inner_tolerance": (_between(self.inner_tolerance, 0.0, 1.0), "a number from 0 to below 1"),
            "refine_tolerance": (_between(self.refine_tolerance, 0.0, 1.0), "a number from 0 to below 1"),
            "adjust_tolerance": (_between(self.adjust_tolerance, 0.0, 1.0), "a number from 0 to below 1"),
            "loss_scale": (self.loss_scale is None or _positive(self.loss_scale), "a positive number"),
            "alpha": (
                _between(self.alpha, 0.0, 1.0) and self.alpha > 0.0,
                "a number between 0 and 1, both excluded",
            ),
            "refine": (isinstance(self.refine, bool), "True or False"),
            "adjust": (isinstance(self.adjust, bool), "True or False"),
        }
        for name, (fine, expected) in ranges.items():
            if not fine:
                raise InputError(f"{name} is {getattr(self, name)!r}; expected {expected}")


def _choices(config: SolveConfig) -> dict[str, tuple[str, ...]]:
    """What the fields that name something may hold."""
    # Formulations are found by importing them, kernels and all: not before a configuration is made.
    from initfree import formulations
    from initfree.stages.initialization import INITIALIZATIONS

    hints = get_type_hints(type(config))
    literals = {f.name: get_args(hints[f.name]) for f in fields(config) if _is_literal(hints[f.name])}
    one = config.formulation
    return {
        "formulation": (one,) if formulations.known(one) else tuple(formulations.names()),
        "init": tuple(INITIALIZATIONS),
        **literals,
    }


def _is_literal(hint: Any) -> bool:
    return getattr(hint, "__origin__", None) is Literal


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _positive(value: float) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 1e-6


def _between(value: float, least: float, most: float) -> bool:
    return isinstance(value, int | float) and least <= value < most
