"""The `auto` strategy: several ways to start, until one reconstruction is certified or all are used up.

A start is cheap on easy data and hopeless on some hard data, and nothing before the Euclidean adjustment tells which (a
low object-space error says nothing). So each start runs to its Euclidean end, cameras that nothing agrees with are
resected, and starts are ranked by the robust Euclidean cost of ALL observations, whatever subset they began from.
"""

from dataclasses import replace
from functools import partial
from threading import Event
from typing import NamedTuple

from initfree.auto.all_matches import on_all_matches
from initfree.auto.calibration import moved_principal_points, recalibrate
from initfree.auto.completion import with_depths, without_outliers
from initfree.auto.confused import only_doubled, without_confused_tracks
from initfree.auto.consistent_part import consistent_part
from initfree.auto.dominant_motion import dominant_motion
from initfree.auto.doubt import doubt_intrinsics
from initfree.auto.ranking import best_attempt, found_twice, same_cameras, settled
from initfree.auto.search import (
    ROUNDS,
    Search,
    configured,
    outward,
    refined_with_rotations,
    voted,
    voted_with_rotations,
)
from initfree.auto.start import Attempt, Start, run_start
from initfree.certificate import judge
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.engine.parallel import abandonable, beside, in_order
from initfree.engine.threads import threads
from initfree.errors import InputError
from initfree.result import Result, StartReport
from initfree.stages.euclidean import robust_cost
from initfree.stages.pipeline import OnProgress

NEARLY_ALL = 0.8
"""share of observations within 4 px of a rejected start: wrong intrinsics bend a reconstruction, and most of what it is made
of still fits; 0.94 on South Building with focal lengths 10% off"""


def solve_auto(
    problem: Problem,
    config: SolveConfig,
    *,
    truth: Reconstruction | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """The best reconstruction of several starts; the first is the pipeline that `config` describes, or, where intrinsics
    are unknown, guesses them.

    Ends as soon as a start is certified and none has a lower cost, or when two starts found the best optimum, or when all
    were tried; after one where the observations themselves leave the reconstruction open. The number of starts is the
    budget, not the clock: the same problem and seed give the same result on every machine.
    """
    if not config.adjust:
        raise InputError("the strategy auto ranks starts by their Euclidean adjustment; adjust=False needs strategy single")
    search = Search(problem, config, truth, on_progress)
    result: Result | None = None
    ahead: _Ahead | None = None
    freed = False
    for starts, _ in ROUNDS:
        over, ahead = _run_beside(search, starts(search), ahead)
        if over:
            break
        if len(search.attempts) == 1 and not freed:
            freed = True
            result = _with_other_intrinsics(search)
            if result is not None:
                break
    if result is None:
        result = settled(problem, search.attempts).result(problem, [attempt.report() for attempt in search.attempts])
        result = doubt_intrinsics(result, config, on_progress)
        result = (_seconded(search, result) if _only_refined(result, problem) else None) or result
    free = result.accepted and not result.problem.calibrated
    known = ahead is not None and ahead.came_true(result)
    end = replace(ahead.end, starts=result.starts) if ahead is not None and known else _end(result, problem)
    result = confirmed(search, end, free)
    result = replace(result, config=config, start_config=result.config, stages=(*search.reports, *result.stages))
    return _undone(result, config, truth, on_progress) if only_doubled(result.certificate) else result


class _Ahead(NamedTuple):
    """A doubtful reconstruction as if another start had found it too, and how it ends then."""

    begin: Result
    end: Result

    def of(self, result: Result) -> bool:
        """Whether it is of the same reconstruction: a result has another one, with the same numbers."""
        return self.begin.reconstruction.xyz is result.reconstruction.xyz

    def came_true(self, result: Result) -> bool:
        """Whether that is what became of it. Of a third start that found another reconstruction, which does not fit, the
        evidence on the cameras that were found knows nothing."""
        before, now = self.begin.certificate.evidence, result.certificate.evidence
        same = before.alternative is now.alternative or self.end.problem.calibrated
        return self.of(result) and now.confirmed and result.accepted and same


def _run_beside(search: Search, starts: list[Start], ahead: _Ahead | None) -> tuple[bool, _Ahead | None]:
    """`_run`; beside it, on another core, the end of a doubtful reconstruction whose camera is to be found: as long as the
    start that confirms it, and the same where it does."""
    doubted = _if_confirmed(search) if starts and threads() > 1 else None
    if doubted is None or (ahead is not None and ahead.of(doubted)):
        return _run(search, starts), ahead
    with beside(partial(_run, search, starts)) as running:
        try:
            ahead = _Ahead(doubted, _end(doubted, search.problem))
        except Exception:  # told where it is asked for, as on one thread
            ahead = None
    return running(), ahead


def _if_confirmed(search: Search) -> Result | None:
    """The best attempt so far as if another had found it too, if that settles its doubts and nothing else is known of the
    cameras."""
    problem = search.problem
    if problem.calibrated or not search.attempts:
        return None
    best = best_attempt(problem, search.attempts)
    if not best.certificate.doubtful:
        return None
    certificate = judge(replace(best.certificate.evidence, confirmed=True))
    return replace(best, certificate=certificate).result(problem, []) if certificate.accepted else None


def _end(result: Result, given: Problem) -> Result:
    """Cameras and landmarks that agree, to the end."""
    return ended(consistent_part(dominant_motion(result)), given)


def ended(result: Result, given: Problem) -> Result:
    """Wrong matches left out, intrinsics as the images have them, and no landmark without a depth."""
    return with_depths(_cleaned(result, given))


def _cleaned(result: Result, given: Problem) -> Result:
    """Wrong matches left out and intrinsics as the images have them; guesses first, because with a wrong lens much of
    what is right does not fit; unless verified matches end it (`all_matches`), which are more than the tracks."""
    o = result.problem.observations
    if o.intrinsics == "refine" and o.pairs is None:
        return without_outliers(recalibrate(result, given), free=True)
    result = without_outliers(result)
    if result.problem.calibrated and not result.certificate.accepted:
        return result
    return on_all_matches(recalibrate(result, given), given)


def _with_other_intrinsics(search: Search) -> Result | None:
    """The first start with its intrinsics freed, if that settles it: cheaper than the next start with the given ones, which
    would end as bent.

    A doubtful start is settled if it is accepted so. One that stays doubtful, and one that was rejected though nearly all
    observations are near it, is believed where a start of another kind, with the refined intrinsics, finds it too.
    """
    problem, attempt = search.problem, search.attempts[0]
    before = attempt.certificate
    if not problem.calibrated or not (before.doubtful or before.evidence.inlier_share >= NEARLY_ALL):
        return None
    freed = recalibrate(attempt.result(problem, [attempt.report()]))
    after = freed.certificate
    if freed.problem is problem or moved_principal_points(problem, freed.problem):
        return None
    if before.doubtful and after.accepted:
        return freed
    return _seconded(search, freed) if after.accepted or after.doubtful else None


def _only_refined(result: Result, given: Problem) -> bool:
    """Whether a result is doubtful with other intrinsics than the given ones, principal points aside: cameras turn with
    those, a second start as well as the first."""
    other = result.problem.calibrated and result.problem.observations is not given.observations
    return other and result.certificate.doubtful and not moved_principal_points(given, result.problem)


def _seconded(search: Search, freed: Result) -> Result | None:
    """A result with other intrinsics than the search has, its doubts settled; None unless a start of another kind, with
    these intrinsics, finds it too."""
    again = Search(freed.problem, search.config, search.truth, search.on_progress)
    found, reports = found_by_another(again, freed, robust_cost(freed.problem, freed.reconstruction))
    certificate = judge(replace(freed.certificate.evidence, confirmed=True))
    return (
        replace(freed, certificate=certificate, starts=(*freed.starts, *reports)) if found and certificate.accepted else None
    )


def _undone(result: Result, config: SolveConfig, truth: Reconstruction | None, on_progress: OnProgress | None) -> Result:
    """What is left of a doubled reconstruction's problem without the tracks that doubled it, solved, if that is accepted.

    The tracks that were cut are those that a wrong reconstruction chose: an accepted one is believed only where a start of
    another kind finds it too.
    """
    problem = without_confused_tracks(result.problem, result.reconstruction, result.certificate)
    if problem is None:
        return replace(result, notes=(*result.notes, "without the landmarks that both groups see, nothing joins them"))
    apart = solve_auto(problem, config, truth=truth, on_progress=on_progress)
    if not apart.accepted:
        return result
    cut = result.problem.tracks.observations - problem.tracks.observations
    note = f"parts that look alike had been taken for one: {cut} observations were cut and the rest solved again"
    lowest = min(start.cost for start in apart.starts)
    found, reports = found_by_another(Search(problem, config, truth, on_progress), apart, lowest)
    if not found:
        why = f"{note}, but no second start found the same"
        return replace(result, starts=(*result.starts, *apart.starts, *reports), notes=(*result.notes, why))
    return replace(apart, starts=(*result.starts, *apart.starts, *reports), notes=(*apart.notes, note))


def confirmed(search: Search, result: Result, free: bool) -> Result:
    """A result that came to be doubtful when wrong matches were left out or its camera was found, where a second start
    finds the same cameras: the first had settled the search before there was a doubt.

    With other intrinsics than given no start would find them, one with those that were found would; `free`: only where
    nothing was in doubt while they were free. A bent reconstruction and its lens belong together, and a second start with
    that lens bends too.
    """
    if result.accepted or not (result.certificate.doubtful and result.problem.calibrated):
        return result
    if result.problem.observations is not search.problem.observations:
        return (_seconded(search, result) if free else None) or result
    found, reports = found_by_another(search, result, min(start.cost for start in result.starts))
    certificate = judge(replace(result.certificate.evidence, confirmed=True)) if found else result.certificate
    return replace(result, certificate=certificate, starts=(*result.starts, *reports[len(result.starts) :]))


def found_by_another(search: Search, result: Result, cost: float) -> tuple[bool, list[StartReport]]:
    """Whether a start of another kind than the one that won, not tried before, finds the cameras of a reconstruction, and
    none of those tried first others at a lower cost than its own; and what was tried."""
    if result.problem.names != search.problem.names:
        return False, []
    tried = {result.winner, *(outcome.start.name for outcome in search.outcomes)}
    for starts in (voted_with_rotations, refined_with_rotations, configured, voted, outward):
        for start in starts(search):
            if start.name in tried:
                continue
            whole = replace(start, deferrable=False)
            outcome = run_start(search.problem, whole, lambda: search.moving, search.on_progress)
            search.outcomes.append(outcome)
            if not isinstance(outcome, Attempt):
                continue
            reports = [attempt.report() for attempt in search.attempts]
            if same_cameras(result.reconstruction, outcome.reconstruction):
                return True, reports
            if outcome.cost < cost:
                return False, reports
    return False, [attempt.report() for attempt in search.attempts]


def _run(search: Search, starts: list[Start]) -> bool:
    """Run starts side by side and keep what they led to; True as soon as nothing more need be tried.

    What ran beside the start that settled it does not count: one core would not have come to it.
    """
    if not starts:
        return False
    abandoned = Event()
    watched = abandonable(search.on_progress, abandoned)
    problem = search.problem
    earlier = tuple(search.attempts)
    with beside(lambda: search.moving) as moving:
        running = in_order(
            lambda start: run_start(problem, start, moving, watched, earlier=earlier), starts, abandoned
        )  # fmt: skip
        try:
            for outcome in running:
                search.outcomes.append(outcome)
                if not search.attempts:
                    continue
                certified = settled(problem, search.attempts).certificate.accepted
                doubled = only_doubled(search.attempts[-1].certificate)
                if certified or doubled or moving().reasons() or found_twice(problem, search.attempts):
                    return True
        finally:
            running.close()
    return False
