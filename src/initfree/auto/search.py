"""The starts of the strategy `auto`, in the order of their expected gain for their time.

`ROUNDS` is the list: a round is a function from the search so far to starts, which run in parallel. It may return none.
"""

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
from initfree.data.observations import EXIF
from initfree.data.problem import Problem, restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.thinning import thinned
from initfree.data.tracks import Array
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.compilation import clock
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
"""random starts in the last round"""
TRIMMED = (0.15, 0.25)
"""shares of the observations that stage 1 suspects, see `trimming.trim`"""
SHORT = 100
"""most attempted steps of a stage in a start; successful ones need fewer"""
COARSE = 1e-4
"""tolerance of a start's projective refinement if intrinsics are known: the Euclidean adjustment follows, and a finer one
mostly moves towards cameras that no lens could make"""
UNFINISHED = 1e-5
"""the same of its adjustment if intrinsics are unknown: another adjustment with the estimated cameras follows"""
MANY_OBSERVATIONS = 60_000
"""number of observations from which two-view geometries take less time than a projective refinement"""
CONTRADICTED = 0.2
"""difference in the logarithm of the focal length between the image pairs and a guess, from which starts without the
guess come first"""
LARGE_SURVEY, MOST_MULTIPLY_ADDS = 1500, 3e11
"""number of cameras, and multiply-adds of a factorisation (some 20 seconds of one core), beyond which stage 1 of a start
with rotations uses conjugate gradients"""
VOTED = "vote with rotations"
VOTED_REFINED = "vote with rotations, refined"


@dataclass
class Search:
    """The state of a search: the problem, the starts so far, and values that several starts share, computed at their
    first use."""

    problem: Problem
    config: SolveConfig
    truth: Reconstruction | None = None
    on_progress: OnProgress | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    reports: list[StageReport] = field(default_factory=list)
    """of computations that serve several starts"""
    started: list[StartReport] = field(default_factory=list)
    """of every start that led to a solution, including those of other searches"""

    @property
    def attempts(self) -> list[Solution]:
        return [outcome for outcome in self.outcomes if isinstance(outcome, Solution)]

    def keep(self, outcome: Outcome) -> None:
        """Add the outcome of a start."""
        self.outcomes.append(outcome)
        if isinstance(outcome, Solution):
            self.started.append(outcome.report())

    def again(self, problem: Problem) -> "Search":
        """A new search for another problem with the same options."""
        return Search(problem, self.config, self.truth, self.on_progress)

    def rounds(self, rounds: "Sequence[Round]") -> "list[Round]":
        """The rounds that `SolveConfig.skip` does not name."""
        return [one for one in rounds if one.name not in self.config.skip]

    @property
    def by_default(self) -> bool:
        """Whether formulation and initialisation are the defaults."""
        return self.config.formulation == "pose" and self.config.init == "spectral"

    @property
    def verified(self) -> bool:
        """Whether the input has verified its pairs of images."""
        return self.problem.observations.pairs is not None

    @cached_property
    def baselines(self) -> Baselines:
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
        """For starts from averaged rotations: if an exact step of stage 1 is too expensive, conjugate gradients end as low
        (`MOST_MULTIPLY_ADDS`)."""
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
        """Relative rotations of the configured formulation, if it uses any."""
        if not make(self.config.formulation, self.config.alpha).uses_rotations:
            return None
        began = clock()
        if self.config.rotations == "estimated" and self.problem.calibrated:
            rotations = rotations_of(self.problem, self.pairs)
        else:
            rotations = rotations_for(self.problem, self.config, self.truth)
        self.reports.append(StageReport("rotations", clock() - began, iterations=len(rotations.pairs)))
        return rotations

    @property
    def holding(self) -> RelativeRotations | None:
        """Relative rotations for a start: those of the configured formulation, else of the pairs."""
        return relative_rotations(self.pairs) if self.rotations is None else self.rotations

    def start(self, name: str, keep: NDArray[np.bool_] | None = None, cameras: Array | None = None, **changes: Any) -> Start:
        """A start as configured, with `changes`, and with the rotations that its formulation uses."""
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
        """Observations that survive the vote of the two-view geometries; None without a vote, or if too few survive."""
        shared = without_diagonal(self.problem.tracks.covisible)
        if not self.problem.calibrated or not (shared.data >= MIN_MATCHES).any():
            return None
        began = clock()
        keep = vote(self.problem.tracks, self.pairs)
        self.reports.append(StageReport("two-view vote", clock() - began, iterations=len(self.pairs)))
        return None if restricted(self.problem, keep) is None else keep


def given_intrinsics(search: Search) -> list[Start]:
    """Guessed intrinsics, kept until the adjustment frees them."""
    return [] if search.contradicted else _given_intrinsics(search)


def given_after_all(search: Search) -> list[Start]:
    """The same after other starts, if fundamental matrices of the input contradict the guess."""
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
    """Unknown intrinsics: focal lengths guessed from pairs, then as for calibrated images."""
    if search.problem.calibrated:
        return []
    start = guessed_start(search.problem, search.short, on_pairs(search.on_progress))
    return [] if start is None else [start]


def guessed_refined(search: Search) -> list[Start]:
    """Continued from there if that is doubtful: a second start with the same result settles the doubt."""
    if search.problem.calibrated:
        return []
    doubtful = [attempt for attempt in search.attempts[-1:] if attempt.doubtful]
    return [refined_guess(search.problem, search.short, attempt.intermediate.P) for attempt in doubtful]


def guessed_continued(search: Search) -> list[Start]:
    """Continued from there without the rotations."""
    guesses = [attempt for attempt in search.attempts if attempt.start.projective is None]
    return [continued_guess(search.short, attempt.intermediate.P) for attempt in guesses[-1:]]


def rotations_first(search: Search) -> list[Start]:
    """`voted_with_rotations` first, if pairs are verified already or a start without them is expensive."""
    wanted = search.by_default and (search.verified or search.problem.tracks.observations >= MANY_OBSERVATIONS)
    return voted_with_rotations(search) if wanted and not search.baselines.reasons() else []


def configured(search: Search) -> list[Start]:
    """The pipeline as configured; deferred if stage 1 indicates wrong matches. As the witness of a doubtful start it uses
    some of the landmarks."""
    witness = any(attempt.doubtful for attempt in search.attempts[-1:])
    keep = thinned(search.problem, search.config.seed) if witness else None
    return [replace(search.start(search.config.init, keep), deferrable=not search.baselines.reasons())]


def voted_with_rotations(search: Search) -> list[Start]:
    """The observations that survive the vote, with relative rotations, from averaged rotations.

    Without a projective refinement, which bends parts against each other if few tracks connect them.
    """
    rotations = None if search.voted is None else search.holding
    if rotations is None or any(outcome.start.name == VOTED for outcome in search.outcomes):
        return []
    config = replace(search.affordable, formulation="pose-rot", refine=False)
    cameras = turned_cameras(rotations, search.problem.tracks.cameras)
    return [Start(VOTED, config, search.voted, rotations, cameras)]


def refined_with_rotations(search: Search) -> list[Start]:
    """With the pairs' rotations too, but from other cameras and with a projective refinement: the cheapest witness if the
    input has verified pairs. Without them, starts that have less in common with the first come before it."""
    return _refined_with_rotations(search) if search.by_default and search.verified else []


def _refined_with_rotations(search: Search) -> list[Start]:
    rotations = None if search.voted is None else search.holding
    if rotations is None or any(outcome.start.name == VOTED_REFINED for outcome in search.outcomes):
        return []
    return [Start(VOTED_REFINED, replace(search.short, formulation="pose-rot"), search.voted, rotations)]


def voted(search: Search) -> list[Start]:
    """The surviving observations with a refinement, with a weaker regulariser, and without rotations."""
    if search.voted is None:
        return []
    starts = _refined_with_rotations(search)
    before = next((a for a in search.attempts if a.start.name == VOTED), None)
    if before is not None:
        name = f"vote, continued at alpha {CONTINUED_ALPHA}"
        starts.append(search.start(name, search.voted, before.intermediate.P, alpha=CONTINUED_ALPHA))
    return [*starts, search.start("vote", search.voted)]


def trimmed(search: Search) -> list[Start]:
    """Without observations that stage 1 itself suspects."""
    plain = replace(search.short, formulation="pose")
    return [Start(f"trimmed by {share:.0%}", plain, trimmed=share) for share in TRIMMED]


def configured_after_all(search: Search) -> list[Start]:
    """The configured start, if it was deferred and no other led to a solution."""
    return [] if search.attempts else _deferred(search)


def outward(search: Search) -> list[Start]:
    """Cameras that look outward; and the configured start, if it was deferred."""
    return [*_deferred(search), search.start("spectral-outward", search.voted, init="spectral-outward")]


def _deferred(search: Search) -> list[Start]:
    return [outcome.start.whole for outcome in search.outcomes if isinstance(outcome, Deferred)]


def continued(search: Search) -> list[Start]:
    """Continued from the best solution so far, with a weaker regulariser."""
    if not search.attempts:
        return []
    best = min(search.attempts, key=lambda attempt: attempt.cost)
    return [search.start(f"continued at alpha {CONTINUED_ALPHA}", cameras=best.intermediate.P, alpha=CONTINUED_ALPHA)]


def random(search: Search) -> list[Start]:
    """Random affine cameras."""
    seeds = range(search.config.seed, search.config.seed + SEEDS)
    return [search.start(f"normal-affine, seed {seed}", search.voted, init="normal-affine", seed=seed) for seed in seeds]


class Round(NamedTuple):
    """Starts that run in parallel, and their largest number."""

    starts: Callable[[Search], list[Start]]
    most: int

    @property
    def name(self) -> str:
        return self.starts.__name__.replace("_", " ")


WITH_GUESSES = (
    Round(given_intrinsics, 1),
    Round(guessed, 1),
    Round(given_after_all, 0),  # the same start as in the first round
    Round(guessed_refined, 1),
    Round(guessed_continued, 1),
)
"""if intrinsics are not known"""
ROUNDS = (
    *WITH_GUESSES,
    Round(rotations_first, 0),  # the start of `voted_with_rotations`
    Round(refined_with_rotations, 0),  # a start of `voted`
    Round(configured, 1),
    Round(voted_with_rotations, 1),
    Round(voted, 3),
    Round(trimmed, len(TRIMMED)),
    Round(outward, 1),
    Round(continued, 1),
    Round(random, SEEDS),
)
STATED = (
    Round(rotations_first, 1),
    Round(refined_with_rotations, 1),
    Round(configured, 1),
    Round(configured_after_all, 0),  # the same start
)
"""with the focal lengths of EXIF"""


def stated(problem: Problem) -> bool:
    """Whether the input states a focal length for every image, as EXIF does, that is to be refined."""
    priors = problem.focal_priors
    return not problem.calibrated and priors is not None and all(one.deviation <= EXIF for one in priors)


def most_starts(problem: Problem) -> int:
    """The largest number of starts of a problem; most need one or two."""
    rounds = ROUNDS[len(WITH_GUESSES) :] if problem.calibrated else ROUNDS
    return sum(round.most for round in (*(STATED if stated(problem) else ()), *rounds))
