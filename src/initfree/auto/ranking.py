"""Which of several attempts is the best, and whether another one found the same."""

from dataclasses import replace

from initfree.auto.start import Attempt
from initfree.certificate import judge
from initfree.problem import Problem

SAME_OPTIMUM = 1e-4
"""Relative difference of costs up to which two starts have found the same optimum; with a pixel² for as many observations
as its inverse, below which costs are rounding."""
SAME_OPTIMUM_FREE = 1e-3
"""The same where intrinsics are unknown: distortion that little depends on moves for long after the cameras stand still."""


def settled(problem: Problem, attempts: list[Attempt]) -> Attempt:
    """The best attempt, its doubts settled where another one found the same."""
    best = best_attempt(problem, attempts)
    if best.certificate.doubtful and confirmed(problem, best, attempts):
        return replace(best, certificate=judge(replace(best.certificate.evidence, confirmed=True)))
    return best


def best_attempt(problem: Problem, attempts: list[Attempt]) -> Attempt:
    """Of the attempts in the best optimum a certified one, then a doubtful one.

    A certified reconstruction in another optimum is not the best that the observations allow: it is as wrong as any other.
    """
    least = min(attempt.cost for attempt in attempts)
    near = [attempt for attempt in attempts if attempt.cost <= least + _tolerance(problem, least)]
    return min(near, key=lambda a: (not a.certificate.accepted, not a.certificate.doubtful, a.cost))


def found_twice(problem: Problem, attempts: list[Attempt]) -> bool:
    """Whether the best two attempts ended in the same optimum: what the certificate says of it will not change."""
    return confirmed(problem, min(attempts, key=lambda attempt: attempt.cost), attempts)


def confirmed(problem: Problem, attempt: Attempt, attempts: list[Attempt]) -> bool:
    """Whether another attempt ended in the same optimum, and none in a better one."""
    tolerance = _tolerance(problem, attempt.cost)
    others = [other.cost - attempt.cost for other in attempts if other is not attempt]
    return any(abs(more) <= tolerance for more in others) and min(others) >= -tolerance


def _tolerance(problem: Problem, cost: float) -> float:
    """Difference of costs up to which two optima are the same."""
    same = SAME_OPTIMUM if problem.calibrated else SAME_OPTIMUM_FREE
    return same * (cost + SAME_OPTIMUM * problem.tracks.observations)
