"""A second start of another kind, as a witness: whether it finds the same cameras."""

from initfree.auto.ranking import same_cameras
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


def seconded(search: Search, solution: Solution) -> Solution | None:
    """A solution with other intrinsics than the search has, its doubts settled; None unless a start of another kind, with
    these intrinsics, finds it too."""
    again = search.again(solution.problem)
    found = found_by_another(again, solution, solution.cost)
    search.started += again.started
    sure = solution.adding(confirmed=True)
    return sure if found and sure.accepted else None


def confirmed(search: Search, solution: Solution, free: bool) -> Solution:
    """A solution that came to be doubtful when wrong matches were left out or its camera was found, where a second start
    finds the same cameras: the first had settled the search before there was a doubt.

    With other intrinsics than given no start would find them, one with those that were found would; `free`: only where
    nothing was in doubt while they were free. A bent reconstruction and its lens belong together, and a second start with
    that lens bends too.
    """
    if solution.accepted or not (solution.doubtful and solution.problem.calibrated):
        return solution
    if solution.problem.observations is not search.problem.observations:
        return (seconded(search, solution) if free else None) or solution
    found = found_by_another(search, solution, min(start.cost for start in search.started))
    return solution.adding(confirmed=True) if found else solution


def found_by_another(search: Search, solution: Solution, cost: float) -> bool:
    """Whether a start of another kind than the one that won, not tried before, finds the cameras of a solution, and none of
    those tried first finds others at a lower cost than `cost`."""
    if solution.problem.names != search.problem.names:
        return False
    tried = {solution.start.name, *(outcome.start.name for outcome in search.outcomes)}
    for starts in (voted_with_rotations, refined_with_rotations, configured, voted, outward):
        for start in starts(search):
            if start.name in tried:
                continue
            outcome = run_start(search.problem, start.whole, lambda: search.moving, search.on_progress)
            search.keep(outcome)
            if not isinstance(outcome, Solution):
                continue
            if same_cameras(solution.reconstruction, outcome.reconstruction):
                return True
            if outcome.cost < cost:
                return False
    return False
