"""Levenberg-Marquardt, for any stage that can linearise itself and try a damped step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import numpy as np

from initfree.data.tracks import Array
from initfree.engine.compilation import clock

_DAMPING_FLOOR = 1e-15
_DAMPING_CEILING = 1e15
NEAR = 1e-7
"""first damping of a stage that begins near its optimum: with more, its first steps go where the damping lets them"""
STATIONARY = 1e-4
"""gradient cosine up to which a stage that no longer gains has converged; where it is larger it is on a plateau"""


@dataclass(frozen=True)
class Iteration:
    """One attempted step, accepted or not."""

    cost: float
    """1/2 of the (robust) sum of squared residuals at the current state, after this attempt"""
    damping: float
    """λ of the attempt"""
    step: float
    """norm of the camera step; NaN where the system could not be factorised"""
    gain_ratio: float
    """actual over predicted decrease"""
    accepted: bool
    seconds: float
    """since the stage began"""


@dataclass
class Convergence:
    """How a stage went."""

    history: list[Iteration] = field(default_factory=list)
    initial_cost: float = np.nan
    reason: str = "not started"
    """converged: no more gain, and the gradient is small; plateau: no more gain, but the gradient is not small; limit:
    out of steps; zero cost"""
    gradient: float = np.nan
    """`gradient_cosine` at the end; NaN at zero cost, where it says nothing, and where nobody asked"""

    @property
    def cost(self) -> float:
        return self.history[-1].cost if self.history else self.initial_cost

    @property
    def seconds(self) -> float:
        return self.history[-1].seconds if self.history else 0.0

    @property
    def accepted(self) -> int:
        return sum(iteration.accepted for iteration in self.history)


@dataclass(frozen=True)
class LMConfig:
    """When to stop, and where the damping starts."""

    max_iterations: int = 300
    tolerance: float = 1e-10
    damping: float = 1e-4
    floor: float = 0.0
    """cost: the tolerance is a share of what lies above it"""
    check_plateau: bool = True
    """whether the end distinguishes a plateau from convergence, which takes one more linear system"""


class Trial(Protocol):
    """Where a damped step leads."""

    @property
    def cost(self) -> float: ...
    @property
    def predicted(self) -> float: ...
    @property
    def step(self) -> float: ...


TrialT = TypeVar("TrialT", bound=Trial)


class Stage(Protocol, Generic[TrialT]):
    """A minimisation that the loop below drives."""

    def linearise(self) -> float:
        """Build the quadratic at the current state; return the state's cost under it."""
        ...

    def attempt(self, damping: float) -> TrialT | None:
        """The state after the damped step, or None if the damped system is singular."""
        ...

    def accept(self, trial: TrialT) -> None: ...

    def gradient_cosine(self) -> float:
        """`gradient_cosine` at the current state."""
        ...


def gradient_cosine(gradient: Array, diagonal: Array, cost: float, landmark_gain: float = 0.0) -> float:
    """max_i |g_i| / sqrt(H_ii 2 cost): the largest cosine between the residuals and a column of their Jacobian.

    The gradient without units (MINPACK's gtol): its square is the share of the cost that a Gauss-Newton step in one
    parameter alone promises to remove. `landmark_gain` is what a step in the landmarks alone promises.
    """
    if not cost > 0.0:
        return 0.0
    sloped = np.abs(gradient) / np.sqrt(np.maximum(diagonal, 1e-300) * 2.0 * cost)
    return max(float(np.max(sloped, initial=0.0, where=diagonal > 0.0)), float(np.sqrt(max(landmark_gain, 0.0) / cost)))


OnIteration = Callable[[int, Iteration], None]


def minimise(
    stage: Stage[TrialT], config: LMConfig, on_iteration: OnIteration | None = None, zero_cost: float = 0.0
) -> Convergence:
    """Nielsen's damping: λ times max(1/3, 1 - (2ρ - 1)^3) after a good step, times ν = 2, 4, 8 ... after bad ones.

    Ends when an accepted step lowers the cost by less than `tolerance` of itself, when the cost is at or below
    `zero_cost` (rounding), when no damping gives a decrease, or after `max_iterations` attempts. The first and the third
    are "converged" only where the gradient is small; a valley so flat or so crooked that steps gain little is a "plateau".
    """
    began = clock()
    result = Convergence()
    damping, growth = config.damping, 2.0
    cost = result.initial_cost = stage.linearise()
    result.reason = "limit"
    for index in range(config.max_iterations):
        if cost <= zero_cost:
            result.reason = "zero cost"
            return result
        trial = stage.attempt(damping)
        ratio, decrease, step = -1.0, 0.0, np.nan
        if trial is not None:
            step = trial.step
            decrease = cost - trial.cost if np.isfinite(trial.cost) else -np.inf
            ratio = decrease / trial.predicted if trial.predicted > 0.0 else -1.0
        accepted = trial is not None and decrease > 0.0 and ratio > 0.0
        used = damping
        before = cost
        if accepted and trial is not None:
            stage.accept(trial)
            cost = stage.linearise()
            damping = max(damping * max(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3), _DAMPING_FLOOR)
            growth = 2.0
        else:
            damping *= growth
            growth *= 2.0
        iteration = Iteration(cost, used, step, ratio, accepted, clock() - began)
        result.history.append(iteration)
        if on_iteration is not None:
            on_iteration(index, iteration)
        if (accepted and decrease <= config.tolerance * (before - config.floor)) or damping > _DAMPING_CEILING:
            result.reason = "plateau"
            break
    if not config.check_plateau:
        return result
    result.gradient = stage.gradient_cosine()
    if result.reason == "plateau" and result.gradient <= STATIONARY:
        result.reason = "converged"
    return result


def coarse(config: LMConfig) -> LMConfig:
    """For the scales on the way: a narrower one follows."""
    return LMConfig(min(config.max_iterations, 30), max(config.tolerance, 1e-3), check_plateau=False)


def joined(parts: Sequence[Convergence]) -> Convergence:
    """One history of several runs, seconds added up."""
    result = Convergence()
    for part in parts:
        before = result.seconds
        if not result.history:
            result.initial_cost = part.initial_cost
        result.history += [replace(step, seconds=step.seconds + before) for step in part.history]
        result.reason, result.gradient = part.reason, part.gradient
    return result
