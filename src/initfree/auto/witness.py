"""The witness: a second start of another kind that finds the same cameras."""

from initfree.auto.calibration import recalibrated
from initfree.auto.ranking import OFTEN_COST, SAME_DEGREES, SAME_DEGREES_FREE, known_by, same_cameras, same_optimum
from initfree.auto.search import (
    Search,
    configured,
    given_after_all,
    given_intrinsics,
    guessed,
    outward,
    refined_with_rotations,
    voted,
    voted_with_rotations,
)
from initfree.auto.solution import Solution
from initfree.auto.start import run_start
from initfree.certificate.history import Witness

_ASKED = 2
"""other starts whose intrinsics are estimated too"""


def seconded(search: Search, solution: Solution) -> Solution | None:
    """A solution with refined intrinsics, its doubts settled; None unless a start of another kind, with these intrinsics,
    confirms it."""
    again = search.again(solution.problem)
    found = found_by_another(again, solution, solution.cost)
    search.started += again.started
    sure = solution.adding(confirmed=found)
    return sure if found and sure.accepted else None


def confirmed(search: Search, solution: Solution, free: bool) -> Solution:
    """Confirm a solution that finishing steps made doubtful by a second start; the search ended before the doubt.

    A start needs the same intrinsics to find the same cameras. With found intrinsics it counts only if the solution was
    accepted while they were `free`: a bent reconstruction and its lens fit each other, also in a second start. Otherwise
    a start confirms it whose own intrinsics, estimated in the same way, lead to the same cameras.
    """
    if solution.accepted or not (solution.doubtful and solution.problem.calibrated):
        return solution
    if solution.problem.observations is not search.problem.observations:
        found = (seconded(search, solution) if free else None) or solution
        return found if found.accepted or search.problem.calibrated else _found_freely(search, solution)
    found = found_by_another(search, solution, min(start.cost for start in search.started))
    return solution.adding(confirmed=found) if found else solution


def _found_freely(search: Search, solution: Solution) -> Solution:
    """Confirmed, where another start with unknown intrinsics ends at the same cameras once these are estimated."""
    before = next((attempt for attempt in search.attempts if attempt.start is solution.start), None)
    if before is None or before.problem.names != solution.problem.names:
        return solution
    near = [one for one in search.attempts if one is not before and one.cost <= OFTEN_COST * before.cost]
    for other in sorted(near, key=lambda one: one.cost)[:_ASKED]:
        found = recalibrated(other)
        if found is None or found.problem.names != solution.problem.names:
            continue
        if same_cameras(solution.reconstruction, found.reconstruction, SAME_DEGREES_FREE):
            return solution.adding(confirmed=known_by(other.start, solution.start))
    return solution


def found_by_another(search: Search, solution: Solution, cost: float) -> frozenset[Witness]:
    """What a new start of another kind that finds the same cameras could have known better; nothing where none does, or one
    finds different ones before at a lower cost than `cost`, or two find the same different ones."""
    nobody, others = frozenset[Witness](), list[Solution]()
    if solution.problem.names != search.problem.names:
        return nobody
    tried = {solution.start.name, *(outcome.start.name for outcome in search.outcomes)}
    free = () if search.problem.calibrated else (given_intrinsics, guessed, given_after_all)
    for starts in (*free, voted_with_rotations, refined_with_rotations, configured, voted, outward):
        for start in starts(search):
            if start.name in tried:
                continue
            outcome = run_start(search.problem, start.whole, lambda: search.baselines, search.on_progress)
            search.keep(outcome)
            if not isinstance(outcome, Solution):
                continue
            degrees = SAME_DEGREES if search.problem.calibrated else SAME_DEGREES_FREE
            if same_cameras(solution.reconstruction, outcome.reconstruction, degrees):
                return known_by(start, solution.start)
            if outcome.cost < cost or any(same_optimum(search.problem, outcome, other) for other in others):
                return nobody
            others.append(outcome)
    return nobody
