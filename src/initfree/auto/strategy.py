"""The strategy `auto`: several starts, until one reconstruction is accepted or all are tried.

No figure before the Euclidean adjustment predicts whether a start succeeds (a low object-space error does not). So each
start runs to its Euclidean end, bad cameras are resected, and starts are ranked by the robust Euclidean cost of ALL
observations, even if they used only some.

    rounds of starts (`search.ROUNDS`) -> the best solution (`ranking`) -> doubts on given intrinsics (`doubt`)
        -> finishing steps (`finish.FINISH`) -> late doubts (`witness`) -> parts that look alike (`confused`)
"""

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

from initfree.auto.calibration import moved_principal_points, recalibrated
from initfree.auto.confused import follows, joined_otherwise, only_contradicted, only_doubled, with_divided_tracks
from initfree.auto.doubt import doubt_intrinsics
from initfree.auto.finish import FINISH, MEND, finished, mended
from initfree.auto.ranking import found_often, found_twice, settled
from initfree.auto.search import ROUNDS, STATED, Round, Search, stated
from initfree.auto.solution import Solution, Start
from initfree.auto.start import run_start
from initfree.auto.witness import confirmed, seconded
from initfree.certificate.checks import CERTAIN_FOCAL_LENGTH, FOCAL_LENGTH, NONE_BELONGS, ONE_FOCAL_LENGTH, ONE_JOINT
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.engine.parallel import abandonable, beside, in_order
from initfree.errors import InputError
from initfree.result import Result
from initfree.stages.pipeline import OnProgress

FOCAL_LENGTHS = {FOCAL_LENGTH, ONE_FOCAL_LENGTH, CERTAIN_FOCAL_LENGTH}
"""checks that freed focal lengths pass no better"""
MOSTLY_NEAR = 0.8
"""share of observations within 4 px in a rejected start from which wrong intrinsics are the likely reason; 0.94 on South
Building with focal lengths 10% off"""


def solve_auto(
    problem: Problem,
    config: SolveConfig,
    *,
    truth: Reconstruction | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """The best reconstruction of several starts. The first is the configured pipeline, or guesses unknown intrinsics.

    The search ends when a start is accepted and none has a lower cost, when two starts found the best optimum, when all are
    tried, or after one start if the observations do not determine a reconstruction. The budget is a number of starts, not a
    time, so that the same problem and seed give the same result on every machine.
    """
    if not config.adjust:
        raise InputError("the strategy auto ranks starts by their Euclidean adjustment; adjust=False needs strategy single")
    _check_skipped(config.skip)
    search = Search(problem, config, truth, on_progress)
    solution = _as_stated(search) or _ended(search, _searched(search))
    return solution.result(config, tuple(search.started), tuple(search.reports))


def _ended(search: Search, solution: Solution) -> Solution:
    """The solution after everything that follows a search."""
    free = solution.accepted and not solution.problem.calibrated
    solution = confirmed(search, mended(search, finished(search, solution)), free)
    alike = only_doubled(solution.certificate) or joined_otherwise(solution.certificate) is not None
    return _undone(search, solution) if alike else solution


def _as_stated(search: Search) -> Solution | None:
    """The solution with the focal lengths that EXIF states for every image, held until a model stands; None if it is not
    accepted for another reason than that the images do not determine them.

    What moves, and wrong matches, bend freed focal lengths by far more than a camera's statement is usually wrong.
    """
    if not (search.by_default and stated(search.problem)):
        return None
    held = search.again(replace(search.problem, intrinsics="found"))
    solution = _ended(held, _searched(held, STATED))
    search.started += held.started
    open_ = {finding.check for finding in solution.certificate.findings if not (finding.passed or finding.doubt)}
    # Matches that contradict each other still do, whatever the focal lengths.
    decided = any(open_ and open_ <= those for those in (FOCAL_LENGTHS, {ONE_JOINT, NONE_BELONGS}))
    return solution if solution.accepted or decided else None


def _check_skipped(names: tuple[str, ...]) -> None:
    known = {one.name for one in (*ROUNDS, *FINISH, *MEND)}
    for name in names:
        if name not in known:
            raise InputError(f"skip is {name!r}; expected one of {', '.join(sorted(known))}")


def _searched(search: Search, rounds: Sequence[Round] = ROUNDS) -> Solution:
    """The best solution of the starts, with settled doubts if possible, and with intrinsics that fit."""
    freed = False
    for starts, _ in search.rounds(rounds):
        if _run(search, starts(search)):
            break
        if len(search.attempts) == 1 and not freed:
            freed = True
            solution = _with_other_intrinsics(search)
            if solution is not None:
                return solution
    solution = settled(search.problem, search.attempts)
    if only_contradicted(solution.certificate):
        return solution
    solution = doubt_intrinsics(search, solution)
    return (seconded(search, solution) if _only_refined(solution, search.problem) else None) or solution


def _with_other_intrinsics(search: Search) -> Solution | None:
    """The first solution with freed intrinsics, if it is then accepted: cheaper than another start with wrong intrinsics.

    A doubtful solution must be accepted. One that stays doubtful, or was rejected though nearly all observations are near
    it, also needs a start of another kind, with the refined intrinsics, that confirms it.
    """
    problem, first = search.problem, search.attempts[0]
    if not problem.calibrated or not (first.doubtful or first.evidence.inlier_share >= MOSTLY_NEAR):
        return None
    freed = recalibrated(first)
    if freed is None or moved_principal_points(problem, freed.problem):
        return None
    if first.doubtful and freed.accepted:
        return freed
    return seconded(search, freed) if freed.accepted or freed.doubtful else None


def _only_refined(solution: Solution, given: Problem) -> bool:
    """Whether a solution with refined intrinsics is doubtful, and its principal points have not moved (rotations would
    compensate for them in any start)."""
    refined = solution.problem.intrinsics == "found"
    return refined and solution.doubtful and not moved_principal_points(given, solution.problem)


def _undone(search: Search, solution: Solution) -> Solution:
    """Solve a doubled or contradicted reconstruction's problem again, with the tracks divided that doubled it.

    What counts is the verdict on the new one: that other tracks join the parts, and that these agree. Another start would
    say nothing of the division, which it has in common with the first.
    """
    problem = with_divided_tracks(solution.problem, solution.reconstruction, solution.certificate)
    if problem is None:
        return solution.noting("without the landmarks that both groups see, nothing joins them")
    again = search.again(problem)
    apart = _searched(again)
    free = apart.accepted and not apart.problem.calibrated
    apart = confirmed(again, mended(again, finished(again, apart)), free)
    search.started += again.started
    otherwise = joined_otherwise(solution.certificate) is not None
    if not apart.accepted or (otherwise and not follows(apart.reconstruction, apart.problem.names, solution.certificate)):
        return solution
    note = "parts that look alike had been taken for one: the tracks that both share were divided, and all solved again"
    if otherwise:
        note += "; two joints of two parts fitted, and the order of the photographs decides"
    return apart.noting(note)


def _run(search: Search, starts: list[Start]) -> bool:
    """Run starts in parallel and keep their outcomes; True as soon as no other start is needed.

    Starts after the decisive one do not count, because one core would not have run them.
    """
    if not starts:
        return False
    abandoned = Event()
    watched = abandonable(search.on_progress, abandoned)
    problem = search.problem
    earlier = tuple(search.attempts)
    with beside(lambda: search.baselines) as baselines:
        running = in_order(
            lambda start: run_start(problem, start, baselines, watched, earlier=earlier), starts, abandoned
        )  # fmt: skip
        try:
            for outcome in running:
                search.keep(outcome)
                if not search.attempts:
                    continue
                certified = settled(problem, search.attempts).accepted
                doubled = only_doubled(search.attempts[-1].certificate)
                often = found_twice(problem, search.attempts) or found_often(problem, search.attempts)
                contradicted = sum(only_contradicted(one.certificate) for one in search.attempts) > 1
                contradicted |= joined_otherwise(search.attempts[-1].certificate) is not None
                if certified or doubled or contradicted or often or baselines().reasons():
                    return True
        finally:
            running.close()
    return False
