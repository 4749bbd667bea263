"""Options of a solve, from which the command line is made. Importing this module loads no kernel."""

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from initfree.errors import InputError

RefineLossName = Literal["none", "cauchy"]
RotationSource = Literal["truth", "estimated"]
LinearSolverName = Literal["exact", "power", "pcg"]
SeriesStop = Literal["term", "counted"]
UpgradeName = Literal[
    "none", "linear1997", "linear1997-public", "linear2004", "linear", "calibrated",
    "refined", "refined1997", "selected", "selected-linear",
]  # fmt: skip
Strategy = Literal["auto", "single"]


@dataclass(frozen=True)
class SolveConfig:
    """Options of a solve, in the order of its stages.

    Attributes:
        formulation: Object-space error: pose, rose, rpose, expose, expose-printed, pose-rot, pose-rot-published, or a
            registered one.
        init: Initial cameras: spectral, spectral-outward, unit-circle, unit-circle-shuffled, unit-circle-spectral, normal,
            normal-affine, uniform.
        loss: Loss of stage 1: none, cauchy, soft-l1, huber. cauchy weights the projected residuals (the paper),
            cauchy-consistent the elimination too; the others have both forms as well.
        loss_scale: Scale of the loss of stage 1 in normalised units; by default three robust deviations of the residuals.
        alpha: Weight of the regulariser.
        beta: Weight of the relative rotations (pose-rot).
        rotations: Source of the relative rotations (pose-rot): two-view geometry, or the given truth.
        refine: Refine the projective reconstruction by its reprojection error.
        refine_loss: Loss of the refinement; cauchy narrows in steps to refine_scale.
        refine_scale: Final scale of the refinement's Cauchy loss, in pixels.
        upgrade: Metric upgrade: none; linear1997, refined1997 and the better of the two, selected (the paper's);
            linear1997-public and linear2004, as in its authors' public code; linear, refined and the better of these,
            selected-linear; calibrated.
        adjust: End with a robust Euclidean bundle adjustment, which also estimates unknown focal lengths and distortion.
        seed: Seed of all random numbers.
        max_iterations: Most attempted steps of a stage, or of each scale of a graduated one; starts of the strategy auto
            take at most 100.
        tolerance: Stage 1 ends when a step lowers its cost by less than this share of it.
        refine_tolerance: The same for the refinement; starts of the strategy auto take at least 1e-4, because the
            adjustment continues from there.
        adjust_tolerance: The same for the adjustment.
        linear_solver: Solver of the normal equations of stage 1 and of the refinement: exact (Cholesky), power (the paper's
            power series) or pcg (conjugate gradients).
        inner_iterations: Most terms of the power series, or steps of conjugate gradients, in one step of a stage.
        inner_tolerance: The power series ends with a term below this share of the sum, conjugate gradients at this share of
            the residual.
        inner_stop: Size of a term that the power series compares with it: |term| / |sum|, or, counted, i |term_i| / |sum|,
            which is PoVar's rule.
        column_scaling: Damp the cameras of stage 1 in units of the columns of their Jacobian (PoVar's jacobi_scaling), not
            all alike.
        skip: Names of rounds of starts and of finishing steps that the strategy auto leaves out (docs/solver.md lists them).
    """

    formulation: str = "pose"
    init: str = "spectral"
    loss: str = "none"
    loss_scale: float | None = None
    alpha: float = 0.05
    beta: float = 1.0
    rotations: RotationSource = "estimated"
    refine: bool = True
    refine_loss: RefineLossName = "cauchy"
    refine_scale: float = 4.0
    upgrade: UpgradeName = "calibrated"
    adjust: bool = True
    seed: int = 0
    max_iterations: int = 300
    tolerance: float = 1e-4
    refine_tolerance: float = 1e-8
    adjust_tolerance: float = 1e-8
    linear_solver: LinearSolverName = "exact"
    inner_iterations: int = 20
    inner_tolerance: float = 1e-2
    inner_stop: SeriesStop = "term"
    column_scaling: bool = False
    skip: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, expected in _choices(self).items():
            value = getattr(self, name)
            if value not in expected:
                own = " or FILE.py:NAME, which the file registers" if name == "formulation" else ""
                raise InputError(f"{name} is {value!r}; expected one of {', '.join(expected)}{own}")
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
            "column_scaling": (isinstance(self.column_scaling, bool), "True or False"),
        }
        for name, (fine, expected) in ranges.items():
            if not fine:
                raise InputError(f"{name} is {getattr(self, name)!r}; expected {expected}")


def _choices(config: SolveConfig) -> dict[str, tuple[str, ...]]:
    """Allowed values of the fields that hold a name."""
    # Formulations are found by importing them, kernels and all: not before a configuration is made.
    from initfree import formulations
    from initfree.engine.losses import stage_1_losses
    from initfree.stages.initialization import INITIALIZATIONS

    hints = get_type_hints(type(config))
    literals = {f.name: get_args(hints[f.name]) for f in fields(config) if _is_literal(hints[f.name])}
    one = config.formulation
    if config.upgrade not in literals["upgrade"]:
        from initfree.stages.upgrade import UPGRADES

        literals["upgrade"] = tuple(UPGRADES)
    if config.linear_solver not in literals["linear_solver"]:
        from initfree.engine.linear_solver import LINEAR_SOLVERS

        literals["linear_solver"] = ("exact", *LINEAR_SOLVERS)
    return {
        "formulation": (one,) if formulations.known(one) else tuple(formulations.names()),
        "init": tuple(INITIALIZATIONS),
        "loss": stage_1_losses(),
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
