"""Robust losses on squared residuals s: cost 1/2 sum ρ(s), weights ρ'(s)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from initfree.data.tracks import Array

MEDIAN_TO_SIGMA = 1.4826
CONSISTENT = "-consistent"
"""suffix of a stage 1's loss whose weights go into the elimination of the landmarks, too"""


class RobustLoss(Protocol):
    """A loss of some scale, in the unit of the residuals."""

    @property
    def scale(self) -> float: ...

    def total(self, squared: Array) -> float:
        """1/2 sum ρ(s)."""
        ...

    def weights(self, squared: Array) -> Array:
        """ρ'(s) of every observation."""
        ...


@dataclass(frozen=True)
class LeastSquares:
    """ρ(s) = s."""

    def total(self, squared: Array) -> float:
        return 0.5 * float(np.sum(squared))


@dataclass(frozen=True)
class Cauchy:
    """ρ(s) = c² log(1 + s/c²); its weight ρ'(s) = 1/(1 + s/c²) halves at a residual of c."""

    scale: float

    def total(self, squared: Array) -> float:
        c2 = self.scale**2
        return 0.5 * c2 * float(np.sum(np.log1p(squared / c2)))

    def weights(self, squared: Array) -> Array:
        return 1.0 / (1.0 + squared / self.scale**2)


@dataclass(frozen=True)
class SoftL1:
    """ρ(s) = 2c² (√(1 + s/c²) - 1), as in Ceres: quadratic near zero, linear in the residual beyond c."""

    scale: float

    def total(self, squared: Array) -> float:
        c2 = self.scale**2
        return c2 * float(np.sum(np.sqrt(1.0 + squared / c2) - 1.0))

    def weights(self, squared: Array) -> Array:
        return 1.0 / np.sqrt(1.0 + squared / self.scale**2)


@dataclass(frozen=True)
class Huber:
    """ρ(s) = s up to c², 2c √s - c² beyond."""

    scale: float

    def total(self, squared: Array) -> float:
        c = self.scale
        return 0.5 * float(np.sum(np.where(squared <= c * c, squared, 2.0 * c * np.sqrt(squared) - c * c)))

    def weights(self, squared: Array) -> Array:
        return self.scale / np.sqrt(np.maximum(squared, self.scale**2))


Loss = LeastSquares | RobustLoss
LOSSES: dict[str, Callable[[float], RobustLoss]] = {"cauchy": Cauchy, "soft-l1": SoftL1, "huber": Huber}
"""by name, from the scale: those of stage 1, of `initfree adjust`, and any that a program adds"""


def stage_1_losses() -> tuple[str, ...]:
    """What `SolveConfig.loss` may be."""
    return ("none", *LOSSES, *(f"{name}{CONSISTENT}" for name in LOSSES))


def scale_from_median(squared: Array, multiple: float, floor: float) -> float:
    """Scale rule: `multiple` robust standard deviations (1.4826 medians) of the residuals, at least `floor`."""
    return max(multiple * MEDIAN_TO_SIGMA * float(np.sqrt(max(np.median(squared), 0.0))), floor)
