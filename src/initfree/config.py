"""What a user may choose; the command line is made from this."""

import math
from dataclasses import dataclass
from typing import Literal

from initfree.errors import InputError
from initfree.upgrade import UpgradeName
from initfree.varpro import LossName

RotationSource = Literal["truth", "estimated"]


@dataclass(frozen=True)
class SolveConfig:
    """The stages of a solve, in order."""

    formulation: str = "pose"
    """Object-space error: pose, rose, rpose, expose, expose-printed, pose-rot, or a registered one."""
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
    """Where relative rotations come from (pose-rot): two-view geometry, or the model given by --truth."""
    refine: bool = True
    """Refine the projective reconstruction by its reprojection error."""
    refine_loss: Literal["none", "cauchy"] = "cauchy"
    """Loss of the refinement; cauchy is graduated from wide to --refine-scale."""
    refine_scale: float = 4.0
    """Final scale of the refinement's Cauchy loss, in pixels."""
    upgrade: UpgradeName = "calibrated"
    """Metric upgrade: none, linear1997 (the paper's), linear, calibrated, refined, selected."""
    adjust: bool = True
    """End with a robust Euclidean bundle adjustment; focal lengths and distortion are free where they are unknown."""
    seed: int = 0
    """Seed of all random numbers."""
    max_iterations: int = 300
    """Most attempted steps of a stage (of each scale, in graduated ones); starts of `auto` take at most 100."""
    tolerance: float = 1e-4
    """Stage 1 ends when a step lowers its cost by less than this share of it."""
    refine_tolerance: float = 1e-8
    """The same for the refinement and the adjustment."""

    def __post_init__(self) -> None:
        def positive(value: float) -> bool:
            return math.isfinite(value) and value >= 1e-6

        checks = {
            "beta": (positive(self.beta), "a positive number"),
            "refine_scale": (positive(self.refine_scale), "a positive number of pixels"),
            "seed": (0 <= self.seed < 2**30, "an integer from 0 to below 2^30"),
            "max_iterations": (self.max_iterations >= 1, "at least 1"),
            "tolerance": (0.0 <= self.tolerance < 1.0, "a number from 0 to below 1"),
            "refine_tolerance": (0.0 <= self.refine_tolerance < 1.0, "a number from 0 to below 1"),
            "loss_scale": (self.loss_scale is None or positive(self.loss_scale), "a positive number"),
            "alpha": (0.0 < self.alpha < 1.0, "a number between 0 and 1, both excluded"),
        }
        for field, (fine, expected) in checks.items():
            if not fine:
                flag = field.replace("_", "-")
                raise InputError(f"--{flag} is {getattr(self, field)}; expected {expected}")
