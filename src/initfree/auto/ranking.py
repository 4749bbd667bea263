"""Which of several attempts is the best, and whether another one found the same."""

from dataclasses import replace

from initfree.auto.start import Attempt
from initfree.certificate import judge
from initfree.certificate.closeness import closeness
from initfree.problem import Problem

SAME_OPTIMUM = 1e-4
"""Relative difference of costs up to which two starts have found the same optimum; with a pixel² for as many observations
as its inverse, below which costs are rounding."""
SAME_OPTIMUM_FREE = 1e-3
"""The same where intrinsics are unknown: distortion that little depends on moves for long after the cameras stand still."""

NEARLY_SAME_COST = 0.02
SAME_DEGREES, SAME_CAMERAS = 5.0, 95.0
"""Two starts with costs within 2% have found the same cameras where the AUC@5 of one against the other is above 95 percent:
a quarter of a degree in the mean, over all pairs."""


def settled(problem: Problem, attempts: list[Attempt]) -> Attempt:
    """The best attempt, its doubts settled where another one found the same."""
    best = best_attempt(problem, attempts)
    if best.certificate.doubtful and confirmed(problem, best, attempts, cameras=True):
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


def confirmed(problem: Problem, attempt: Attempt, attempts: list[Attempt], cameras: bool = False) -> bool:
    """Whether another attempt ended in the same optimum, and none in a better one.

    With `cameras`, in the same cameras: costs also differ by where wrong matches have come to lie, which nobody asks about.
    """
    tolerance = _tolerance(problem, attempt.cost)
    found = False
    for other in attempts:
        if other is attempt:
            continue
        more = other.cost - attempt.cost
        same = abs(more) <= tolerance or (cameras and _same_cameras(attempt, other))
        if not same and more < 0.0:
            return False
        found |= same
    return found


def _same_cameras(one: Attempt, other: Attempt) -> bool:
    if abs(other.cost - one.cost) > NEARLY_SAME_COST * one.cost:
        return False
    a, b = one.reconstruction, other.reconstruction
    return min(closeness(a.R, a.centres, b.R, b.centres, SAME_DEGREES)) > SAME_CAMERAS


def _tolerance(problem: Problem, cost: float) -> float:
    """Difference of costs up to which two optima are the same."""
    same = SAME_OPTIMUM if problem.calibrated else SAME_OPTIMUM_FREE
    return same * (cost + SAME_OPTIMUM * problem.tracks.observations)
