"""The witness: a second start of another kind that finds the same cameras."""

from initfree.auto.ranking import known_by, same_cameras
from initfree.auto.search import (
    Search,
    configured,
    outward,
    refined_with_rotations,
    voted,
    voted_with_rotations,
)
from initfree.auto.solution import Solution
from initfree.auto.start import run_start
from initfree.certificate.history import Witness


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
    accepted while they were `free`: a bent reconstruction and its lens fit each other, also in a second start.
    """
    if solution.accepted or not (solution.doubtful and solution.problem.calibrated):
        return solution
    if solution.problem.observations is not search.problem.observations:
        return (seconded(search, solution) if free else None) or solution
    found = found_by_another(search, solution, min(start.cost for start in search.started))
    return solution.adding(confirmed=found) if found else solution


def found_by_another(search: Search, solution: Solution, cost: float) -> frozenset[Witness]:
    """What a new start of another kind that finds the same cameras could have known better; nothing where none does, or one
    finds different ones before at a lower cost than `cost`."""
    nobody = frozenset[Witness]()
    if solution.problem.names != search.problem.names:
        return nobody
    tried = {solution.start.name, *(outcome.start.name for outcome in search.outcomes)}
    for starts in (voted_with_rotations, refined_with_rotations, configured, voted, outward):
        for start in starts(search):
            if start.name in tried:
                continue
            outcome = run_start(search.problem, start.whole, lambda: search.baselines, search.on_progress)
            search.keep(outcome)
            if not isinstance(outcome, Solution):
                continue
            if same_cameras(solution.reconstruction, outcome.reconstruction):
                return known_by(start, solution.start)
            if outcome.cost < cost:
                return nobody
    return nobody
