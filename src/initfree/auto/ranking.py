"""The best of several solutions, and whether another start confirms it."""

from dataclasses import replace

from initfree.auto.solution import Solution, Start
from initfree.certificate.closeness import closeness
from initfree.certificate.history import Witness
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction

SAME_COST = 1e-4
"""Relative difference of costs up to which two starts are in the same optimum. Costs below this many pixel² an
observation are rounding."""
SAME_COST_FREE = 1e-3
"""The same for free intrinsics: weakly determined distortion converges long after the cameras."""
NEAR_COST = 0.02
"""The same if the cameras are the same: landmarks of wrong matches have different costs."""
SAME_DEGREES_FREE = 20.0
"""The same where each has intrinsics of its own, estimated from the images: a mean error of a degree."""
OFTEN, OFTEN_COST, OFTEN_AUC20 = 3, 1.1, 50.0
"""starts, ratio of costs, and percent of rotations, from which more starts with unknown intrinsics do not pay"""
SAME_DEGREES, SAME_CAMERAS = 5.0, 95.0
"""Cameras are the same if the AUC@5 of one start against the other is above 95 percent: a mean error of a quarter of a
degree over all pairs."""
STAYED_DEGREES, STAYED = 5.0, 99.5
"""the same for cameras that did not move: a mean error of a fortieth of a degree"""


def settled(problem: Problem, attempts: list[Solution]) -> Solution:
    """The best solution; its doubts are settled if another start confirms it, unless a third found a different one as
    good."""
    best = best_attempt(problem, attempts)
    if not (best.accepted or best.doubtful):
        return best
    evidence = best.evidence.beside([one.reconstruction for one in attempts if one is not best])
    confirming = witnesses(problem, best, attempts) if best.doubtful else frozenset()
    other = evidence.alternative if evidence.asked("alternative") else None
    ambiguous = other is not None and other.margin < 0.0
    if not (confirming or ambiguous):
        return best
    return replace(best, evidence=evidence.adding(confirmed=confirming))


def best_attempt(problem: Problem, attempts: list[Solution]) -> Solution:
    """Of the solutions in the best optimum an accepted one, else a doubtful one; of equals the one with the lowest cost,
    or the first if intrinsics are free and costs are the same.

    An accepted reconstruction in another optimum is not the best that the observations allow, and thus wrong.
    """
    best = min(attempts, key=lambda attempt: attempt.cost)
    near = [attempt for attempt in attempts if same_optimum(problem, attempt, best)]
    same = best.cost if problem.calibrated else (1.0 + SAME_COST_FREE) * best.cost
    return min(near, key=lambda a: (not a.accepted, not a.doubtful, max(a.cost, same)))


def found_twice(problem: Problem, attempts: list[Solution]) -> bool:
    """Whether another start found the optimum of the best solution, so that its verdict will not change."""
    return bool(witnesses(problem, min(attempts, key=lambda attempt: attempt.cost), attempts))


def found_often(problem: Problem, attempts: list[Solution]) -> bool:
    """Whether so many starts ended near the best optimum that another one will hardly end below it.

    For unknown intrinsics: their optimum is flat, and starts stop at different places of it.
    """
    if problem.calibrated or not attempts:
        return False
    best = min(attempts, key=lambda attempt: attempt.cost)
    return sum(_near(attempt, best) for attempt in attempts) >= OFTEN


def _near(a: Solution, b: Solution) -> bool:
    """Whether a solution costs hardly more and its rotations, but for those of a few images, are similar."""
    if a.cost > OFTEN_COST * b.cost:
        return False
    one, other = a.reconstruction, b.reconstruction
    return a is b or closeness(one.R, one.centres, other.R, other.centres, 20.0)[0] > OFTEN_AUC20


def witnesses(problem: Problem, attempt: Solution, attempts: list[Solution]) -> frozenset[Witness]:
    """What other attempts that ended in the same optimum could have known better; nothing where one ended lower."""
    others = [other for other in attempts if other is not attempt]
    same = [same_optimum(problem, attempt, other) for other in others]
    if any(other.cost < attempt.cost and not alike for other, alike in zip(others, same, strict=True)):
        return frozenset()
    found = [known_by(other.start, attempt.start) for other, alike in zip(others, same, strict=True) if alike]
    return frozenset[Witness]().union(*found)


def known_by(witness: Start, start: Start) -> frozenset[Witness]:
    """What one start knows that another does not: where it began, and, if it chose its matches otherwise, these."""
    chosen = [(one.keep is None, one.trimmed) for one in (witness, start)]
    return frozenset[Witness](("start", "matches") if chosen[0] != chosen[1] else ("start",))


def same_optimum(problem: Problem, a: Solution, b: Solution) -> bool:
    """Whether two solutions have the same cost, or the same cameras at nearly the same cost."""
    least, most = sorted((a.cost, b.cost))
    rounding = SAME_COST * problem.tracks.observations
    if most - least <= (SAME_COST if problem.calibrated else SAME_COST_FREE) * (least + rounding):
        return True
    return most - least <= NEAR_COST * (least + rounding) and same_cameras(a.reconstruction, b.reconstruction)


def same_cameras(a: Reconstruction, b: Reconstruction, degrees: float = SAME_DEGREES) -> bool:
    """Whether the poses are the same up to a similarity."""
    return min(closeness(a.R, a.centres, b.R, b.centres, degrees)) > SAME_CAMERAS


def stayed(a: Reconstruction, b: Reconstruction) -> bool:
    """Whether the cameras did not move but for rounding."""
    return min(closeness(a.R, a.centres, b.R, b.centres, STAYED_DEGREES)) > STAYED
