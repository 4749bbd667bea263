"""The end of a solve: `FINISH` lists the steps that follow the choice of the best solution, in order.

A step takes a solution and returns another one, or None if it has nothing to do. The result of a step for rejected solutions
counts only if it is accepted. The result of a step for accepted solutions always counts, with its verdict.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from initfree.auto.all_matches import on_all_matches
from initfree.auto.calibration import recalibrate, recalibrate_guess
from initfree.auto.completion import with_depths, without_outliers
from initfree.auto.consistent_part import consistent_part, with_belonging
from initfree.auto.dominant_motion import dominant_motion
from initfree.auto.mending import with_another_lens, with_other_joint, with_own_cameras
from initfree.auto.search import Search
from initfree.auto.solution import Solution
from initfree.certificate.checks import LEFT_OUT, NONE_BELONGS, ONE_JOINT


@dataclass(frozen=True)
class Step:
    """A finishing step."""

    name: str
    run: Callable[[Search, Solution], Solution | None]
    of: Literal["rejected", "accepted", "all"] = "accepted"
    """verdict of the solutions to which it applies"""
    anew: bool = False
    """whether what it returns goes through `FINISH` from the first step on"""


FINISH: tuple[Step, ...] = (
    Step("dominant motion", dominant_motion, "rejected"),
    Step("consistent part", consistent_part, "rejected"),
    Step("guessed intrinsics", recalibrate_guess, "all"),
    Step("outliers", without_outliers),
    Step("intrinsics", recalibrate, "all"),
    Step("consistent part with found intrinsics", consistent_part, "rejected"),
    Step("images taken back", with_belonging, "rejected"),
    Step("all matches", on_all_matches),
    Step("depths", with_depths),
)


MEND: tuple[Step, ...] = (
    Step("other joint", with_other_joint, "rejected", anew=True),
    Step("another lens", with_another_lens, "rejected"),
    Step("own cameras", with_own_cameras, "rejected"),
)
"""steps for a solution that the certificate rejects at the end, where it tries other models of the cameras too"""


def finished(search: Search, solution: Solution, steps: tuple[Step, ...] = FINISH) -> Solution:
    """The solution after all steps that are not switched off (`SolveConfig.skip`)."""
    every = (*FINISH, *MEND)
    for step in steps:
        if step.name in search.config.skip or (step.of != "all" and (step.of == "accepted") != solution.accepted):
            continue
        if search.on_progress is not None:
            search.on_progress(f"{step.name}, finishing step of {len(every)}", every.index(step), None)
        other = step.run(search, solution)
        if other is not None and step.anew:
            whole = finished(search, other).adding(searching=False)
            other = whole if whole.accepted and not whole.history.left_out else None
        if other is not None and (step.of != "rejected" or _mended(other)):
            solution = other
    return solution


def mended(search: Search, solution: Solution, steps: tuple[Step, ...] = MEND) -> Solution:
    """The solution as it is returned: judged by other models of the cameras too, and with one of these where they say so."""
    return finished(search, solution.adding(searching=False), steps)


def _mended(solution: Solution) -> bool:
    """Whether a rejected solution is accepted now, or only leaves out too much or what belongs to it, or contradicts itself
    without what else fails."""
    failed = {finding.check for finding in solution.certificate.findings if not (finding.passed or finding.doubt)}
    return solution.accepted or bool(failed and failed <= {LEFT_OUT, NONE_BELONGS, ONE_JOINT})
