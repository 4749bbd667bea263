"""Which starts are tried, in the order in which they are worth their time.

`ROUNDS` is the list: a round is a function from the search so far to starts, which run side by side. A round that has
nothing to add returns none.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from initfree.auto.guesses import CONTINUED_ALPHA, continued_guess, guessed_start, refined_guess, start_with_focals
from initfree.auto.solution import Deferred, Outcome, Solution, Start
from initfree.certificate.baseline import Baselines, baselines
from initfree.config import SolveConfig
from initfree.data.camera_graph import without_diagonal
from initfree.data.problem import Problem, restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.thinning import thinned
from initfree.data.tracks import Array
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.factorisation import multiply_adds
from initfree.formulations import make
from initfree.formulations.pose_rot import RelativeRotations
from initfree.result import StageReport, StartReport
from initfree.stages.pipeline import OnProgress, on_pairs
from initfree.two_view.averaging import turned_cameras
from initfree.two_view.focal import guess_focals, has_fundamental_matrices
from initfree.two_view.geometry import MIN_MATCHES, TwoView, relative_rotations
from initfree.two_view.given import two_view_geometries_of
from initfree.two_view.rotations import rotations_for, rotations_of
from initfree.two_view.voting import vote

SEEDS = 4
"""random starts, last of all"""
TRIMMED = (0.15, 0.25)
"""shares of the observations that stage 1 suspects, see `trimming.trim`"""
SHORT = 100
"""attempted steps a stage of a start may take: those that succeed need fewer"""
COARSE = 1e-4
"""tolerance of a start's projective refinement where intrinsics are known: the Euclidean adjustment takes over, and most of
what a finer one finds are cameras that no lens could make"""
UNFINISHED = 1e-5
"""the same of its adjustment where intrinsics are unknown: that of the cameras found for them ends it"""
MANY_OBSERVATIONS = 60_000
"""from so many on, two-view geometries take less time than a projective refinement"""
CONTRADICTED = 0.2
"""of the logarithm of a focal length, by which pairs of images must contradict a guess of it to come first: with one 44% too
long, a start is wasted"""
LARGE_SURVEY, MOST_MULTIPLY_ADDS = 1500, 3e11
"""cameras from which on it is asked, and multiply-adds up to which stage 1 of a start with rotations factorises its system:
some 20 seconds of one core"""
VOTED = "vote with rotations"
VOTED_REFINED = "vote with rotations, refined"


@dataclass
class Search:
    """What the rounds know: the problem, what was tried, and what several starts share, found when first asked for."""

    problem: Problem
    config: SolveConfig
    truth: Reconstruction | None = None
    on_progress: OnProgress | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    reports: list[StageReport] = field(default_factory=list)
    """of what serves several starts"""
    started: list[StartReport] = field(default_factory=list)
    """of every start that led to a solution, those of other searches among them"""

    @property
    def attempts(self) -> list[Solution]:
        return [outcome for outcome in self.outcomes if isinstance(outcome, Solution)]

    def keep(self, outcome: Outcome) -> None:
        """Add what a start led to."""
        self.outcomes.append(outcome)
        if isinstance(outcome, Solution):
            self.started.append(outcome.report())

    def again(self, problem: Problem) -> "Search":
        """A new search for another problem, asked for in the same way."""
        return Search(problem, self.config, self.truth, self.on_progress)

    def rounds(self, rounds: "Sequence[Round]") -> "list[Round]":
        """Those that are not switched off (`SolveConfig.skip`)."""
        return [one for one in rounds if one.name not in self.config.skip]

    @property
    def by_default(self) -> bool:
        """Whether nobody asked for a start of another kind."""
        return self.config.formulation == "pose" and self.config.init == "spectral"

    @property
    def verified(self) -> bool:
        """Whether the input has verified its pairs of images."""
        return self.problem.observations.pairs is not None

    @cached_property
    def moving(self) -> Baselines:
        """Whether the observations need cameras that move at all."""
        return baselines(self.problem)

    @cached_property
    def short(self) -> SolveConfig:
        known, config = self.problem.calibrated, self.config
        return replace(
            config,
            max_iterations=min(config.max_iterations, SHORT),
            refine_tolerance=max(config.refine_tolerance, COARSE if known else 0.0),
            adjust_tolerance=max(config.adjust_tolerance, 0.0 if known else UNFINISHED),
        )

    @cached_property
    def affordable(self) -> SolveConfig:
        """For starts whose cameras are turned and placed already: where an exact step of stage 1 costs too much, one by
        conjugate gradients ends as low (`MOST_MULTIPLY_ADDS`)."""
        tracks, config = self.problem.tracks, self.short
        if config.linear_solver != "exact" or tracks.cameras < LARGE_SURVEY:
            return config
        work = multiply_adds(CameraPairs.covisible(tracks), 12)
        return replace(config, linear_solver="pcg") if work > MOST_MULTIPLY_ADDS else config

    @cached_property
    def pairs(self) -> list[TwoView]:
        """Two-view geometries, estimated once."""
        return two_view_geometries_of(self.problem, self.config.seed, on_pair=on_pairs(self.on_progress))

    @cached_property
    def rotations(self) -> RelativeRotations | None:
        """Those that the configured formulation uses, if it does."""
        if not make(self.config.formulation, self.config.alpha).uses_rotations:
            return None
        began = time.perf_counter()
        if self.config.rotations == "estimated" and self.problem.calibrated:
            rotations = rotations_of(self.problem, self.pairs)
        else:
            rotations = rotations_for(self.problem, self.config, self.truth)
        self.reports.append(StageReport("rotations", time.perf_counter() - began, iterations=len(rotations.pairs)))
        return rotations

    @property
    def holding(self) -> RelativeRotations | None:
        """Rotations that hold the cameras of a start: those of the configured formulation, or else of the pairs."""
        return relative_rotations(self.pairs) if self.rotations is None else self.rotations

    def start(self, name: str, keep: NDArray[np.bool_] | None = None, cameras: Array | None = None, **changes: Any) -> Start:
        """A start as configured, but for `changes` of the configuration, with the rotations that its formulation uses."""
        return Start(name, replace(self.short, **changes), keep, self.rotations, cameras)

    @cached_property
    def contradicted(self) -> bool:
        """Whether given intrinsics are a guess that the input's own fundamental matrices contradict."""
        if not _guess(self.problem) or not has_fundamental_matrices(self.problem):
            return False
        focal = guess_focals(self.problem, self.config.seed)
        return focal is not None and float(np.median(np.abs(np.log(focal)))) > CONTRADICTED

    @cached_property
    def voted(self) -> NDArray[np.bool_] | None:
        """Observations that survive the vote of two-view geometries; None where there is none, or too little survives."""
        shared = without_diagonal(self.problem.tracks.covisible)
        if not self.problem.calibrated or not (shared.data >= MIN_MATCHES).any():
            return None
        began = time.perf_counter()
        keep = vote(self.problem.tracks, self.pairs)
        self.reports.append(StageReport("two-view vote", time.perf_counter() - began, iterations=len(self.pairs)))
        return None if restricted(self.problem, keep) is None else keep


def given_intrinsics(search: Search) -> list[Start]:
    """Intrinsics that are a guess: taken at their word until the adjustment, which frees them."""
    return [] if search.contradicted else _given_intrinsics(search)


def given_after_all(search: Search) -> list[Start]:
    """The same after others, where fundamental matrices of the input contradict the guess."""
    return _given_intrinsics(search) if search.contradicted else []


def _guess(problem: Problem) -> bool:
    """Whether the intrinsics are a guess that the solve refines."""
    return problem.rays and not problem.calibrated


def _given_intrinsics(search: Search) -> list[Start]:
    if not _guess(search.problem):
        return []
    focal = np.ones(search.problem.tracks.cameras)
    on_pair = on_pairs(search.on_progress)
    start = start_with_focals("given intrinsics", search.problem, search.short, focal, on_pair)
    return [] if start is None else [start]


def guessed(search: Search) -> list[Start]:
    """Unknown intrinsics: focal lengths guessed from pairs, and what calibrated images allow from there."""
    if search.problem.calibrated:
        return []
    start = guessed_start(search.problem, search.short, on_pairs(search.on_progress))
    return [] if start is None else [start]


def guessed_refined(search: Search) -> list[Start]:
    """On from there where it is only doubtful: a second start that finds the same settles that."""
    if search.problem.calibrated:
        return []
    doubtful = [attempt for attempt in search.attempts[-1:] if attempt.doubtful]
    return [refined_guess(search.problem, search.short, attempt.intermediate.P) for attempt in doubtful]


def guessed_continued(search: Search) -> list[Start]:
    """On from there without the rotations."""
    guesses = [attempt for attempt in search.attempts if attempt.start.projective is None]
    return [continued_guess(search.short, attempt.intermediate.P) for attempt in guesses[-1:]]


def rotations_first(search: Search) -> list[Start]:
    """`voted_with_rotations` before all else, where pairs cost nothing or a start without them costs much."""
    wanted = search.by_default and (search.verified or search.problem.tracks.observations >= MANY_OBSERVATIONS)
    return voted_with_rotations(search) if wanted and not search.moving.reasons() else []


def configured(search: Search) -> list[Start]:
    """The pipeline as configured; put off where stage 1 looks like wrong matches. On some of the landmarks where it is asked
    only whether it finds what a doubtful start did."""
    witness = any(attempt.doubtful for attempt in search.attempts[-1:])
    keep = thinned(search.problem, search.config.seed) if witness else None
    return [replace(search.start(search.config.init, keep), deferrable=not search.moving.reasons())]


def voted_with_rotations(search: Search) -> list[Start]:
    """What the pairs agree on, held by their rotations, from cameras that are turned as these say.

    No projective refinement: where few tracks join two parts, it bends them against each other.
    """
    rotations = None if search.voted is None else search.holding
    if rotations is None or any(outcome.start.name == VOTED for outcome in search.outcomes):
        return []
    config = replace(search.affordable, formulation="pose-rot", refine=False)
    cameras = turned_cameras(rotations, search.problem.tracks.cameras)
    return [Start(VOTED, config, search.voted, rotations, cameras)]


def refined_with_rotations(search: Search) -> list[Start]:
    """Held by the pairs' rotations too, but from other cameras and with a projective refinement: the witness that costs
    least where the input has verified pairs. Without them, starts that share less with the first come before it."""
    return _refined_with_rotations(search) if search.by_default and search.verified else []


def _refined_with_rotations(search: Search) -> list[Start]:
    rotations = None if search.voted is None else search.holding
    if rotations is None or any(outcome.start.name == VOTED_REFINED for outcome in search.outcomes):
        return []
    return [Start(VOTED_REFINED, replace(search.short, formulation="pose-rot"), search.voted, rotations)]


def voted(search: Search) -> list[Start]:
    """The same refined, continued with less of the regulariser, and without rotations."""
    if search.voted is None:
        return []
    starts = _refined_with_rotations(search)
    before = next((a for a in search.attempts if a.start.name == VOTED), None)
    if before is not None:
        name = f"vote, continued at alpha {CONTINUED_ALPHA}"
        starts.append(search.start(name, search.voted, before.intermediate.P, alpha=CONTINUED_ALPHA))
    return [*starts, search.start("vote", search.voted)]


def trimmed(search: Search) -> list[Start]:
    """Wrong matches found by stage 1 itself."""
    plain = replace(search.short, formulation="pose")
    return [Start(f"trimmed by {share:.0%}", plain, trimmed=share) for share in TRIMMED]


def outward(search: Search) -> list[Start]:
    """Cameras that look away from the middle; and the configured start, if it was put off."""
    put_off = [o.start.whole for o in search.outcomes if isinstance(o, Deferred)]
    return [*put_off, search.start("spectral-outward", search.voted, init="spectral-outward")]


def continued(search: Search) -> list[Start]:
    """On from the best so far, with less of the regulariser."""
    if not search.attempts:
        return []
    best = min(search.attempts, key=lambda attempt: attempt.cost)
    return [search.start(f"continued at alpha {CONTINUED_ALPHA}", cameras=best.intermediate.P, alpha=CONTINUED_ALPHA)]


def random(search: Search) -> list[Start]:
    """Random affine cameras."""
    seeds = range(search.config.seed, search.config.seed + SEEDS)
    return [search.start(f"normal-affine, seed {seed}", search.voted, init="normal-affine", seed=seed) for seed in seeds]


class Round(NamedTuple):
    """Starts that run side by side, and how many they can be."""

    starts: Callable[[Search], list[Start]]
    most: int

    @property
    def name(self) -> str:
        return self.starts.__name__.replace("_", " ")


WITH_GUESSES = (
    Round(given_intrinsics, 1),
    Round(guessed, 1),
    Round(given_after_all, 0),  # the first round's, later
    Round(guessed_refined, 1),
    Round(guessed_continued, 1),
)
"""where intrinsics are not known"""
ROUNDS = (
    *WITH_GUESSES,
    Round(rotations_first, 0),  # `voted_with_rotations`, earlier
    Round(refined_with_rotations, 0),  # one of `voted`, earlier
    Round(configured, 1),
    Round(voted_with_rotations, 1),
    Round(voted, 3),
    Round(trimmed, len(TRIMMED)),
    Round(outward, 1),
    Round(continued, 1),
    Round(random, SEEDS),
)


def most_starts(problem: Problem) -> int:
    """How many starts a problem may get; most need one or two."""
    return sum(round.most for round in (ROUNDS[len(WITH_GUESSES) :] if problem.calibrated else ROUNDS))
