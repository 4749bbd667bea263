"""The `auto` strategy: several ways to start, until one reconstruction is certified or all are used up.

A start is cheap on easy data and hopeless on some hard data, and nothing before the Euclidean adjustment tells which (a
low object-space error says nothing). So each start runs to its Euclidean end, cameras that nothing agrees with are
resected, and starts are ranked by the robust Euclidean cost of ALL observations, whatever subset they began from.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import numpy as np

from initfree import formulations
from initfree.auto.completion import complete
from initfree.auto.doubt import doubt_intrinsics
from initfree.auto.guesses import guessed_starts
from initfree.auto.ranking import best_attempt, confirmed, found_twice
from initfree.auto.start import Attempt, Start, run_start
from initfree.config import SolveConfig
from initfree.errors import InputError
from initfree.formulations.pose_rot import RelativeRotations
from initfree.parallel import abandonable, in_order
from initfree.pipeline import OnProgress, blas_threads, on_pairs
from initfree.problem import Problem, restricted
from initfree.result import Result, StageReport
from initfree.two_view.geometry import MIN_MATCHES, TwoView, relative_rotations, two_view_geometries
from initfree.two_view.rotations import rotations_of
from initfree.two_view.voting import vote

SEEDS = 4
"""random starts, last of all"""
TRIMMED = (0.15, 0.25)
"""shares of the observations that stage 1 suspects, see `trimming.trim`"""
SHORT = 100
"""attempted steps a stage of a start may take: those that succeed need fewer"""


def solve_auto(
    problem: Problem,
    config: SolveConfig = SolveConfig(),
    *,
    rotations: RelativeRotations | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """The best reconstruction of several starts; the first is the pipeline that `config` describes, or, where intrinsics
    are unknown, guesses them.

    Ends as soon as a start is certified and none has a lower cost, or when two starts found the best optimum, or when all
    were tried; after one where the observations themselves leave the reconstruction open. The number of starts is the
    budget, not the clock: the same problem and seed give the same result on every machine.
    """
    if not config.adjust:
        raise InputError("the auto strategy ranks starts by their Euclidean adjustment; --no-adjust needs --strategy single")
    with blas_threads(problem):
        attempts: list[Attempt] = []
        beforehand: list[StageReport] = []
        for batch in _batches(problem, config, rotations, attempts, beforehand, on_progress):
            if _settled(problem, batch, attempts, on_progress):
                break
        best = best_attempt(problem, attempts)
        if best.certificate.doubtful and confirmed(problem, best, attempts):
            reason = "the observations agree with every camera, and two starts found the same"
            best = replace(best, certificate=replace(best.certificate, accepted=True, doubtful=False, reason=reason))
        result = best.result(problem, [a.report() for a in attempts])
        result = complete(doubt_intrinsics(result, config, on_progress))
        return replace(result, config=config, start_config=result.config, stages=(*beforehand, *result.stages))


def _settled(problem: Problem, batch: list[Start], attempts: list[Attempt], on_progress: OnProgress | None) -> bool:
    """Run a batch, side by side, and add what it led to; True as soon as nothing more need be tried.

    What ran beside the start that settled it does not count: one core would not have come to it.
    """
    abandoned = Event()
    watched = abandonable(on_progress, abandoned)
    running = in_order(lambda start: run_start(problem, start, watched), batch, abandoned)
    try:
        for attempt in running:
            if attempt is not None:
                attempts.append(attempt)
                certified = best_attempt(problem, attempts).certificate.accepted
                if certified or problem.baselines.reasons or found_twice(problem, attempts):
                    return True
    finally:
        running.close()
    return False


def _batches(
    problem: Problem,
    config: SolveConfig,
    rotations: RelativeRotations | None,
    attempts: list[Attempt],
    beforehand: list[StageReport],
    on_progress: OnProgress | None,
) -> Iterator[list[Start]]:
    """Starts in the order in which they are worth their time; those of a batch do not wait for each other.

    `attempts` holds what the earlier batches led to; `beforehand` takes the reports of what serves several starts.
    """
    short = replace(config, max_iterations=min(config.max_iterations, SHORT))
    pairs: list[TwoView] | None = None
    on_pair = on_pairs(on_progress)
    if rotations is None and formulations.make(config.formulation, config.alpha).uses_rotations:
        if not problem.calibrated:
            raise InputError(f"{config.formulation} needs known intrinsics; this problem has none")
        began = time.perf_counter()
        pairs = two_view_geometries(problem, config.seed, on_pair=on_pair)
        rotations = rotations_of(problem, pairs)
        beforehand.append(StageReport("rotations", time.perf_counter() - began, iterations=len(rotations.pairs)))
    first = Start(config.init, short, rotations=rotations)
    if not problem.calibrated:
        for start in guessed_starts(problem, short, attempts, on_pair):
            yield [start]
    tried = len(attempts)
    yield [replace(first, patient=bool(problem.baselines.reasons))]
    put_off = len(attempts) == tried
    keep = None
    shared = np.tril(problem.tracks.covisibility, -1)
    if problem.calibrated and (shared >= MIN_MATCHES).any():
        began = time.perf_counter()
        pairs = two_view_geometries(problem, config.seed, on_pair=on_pair) if pairs is None else pairs
        keep = vote(problem.tracks, pairs)
        beforehand.append(StageReport("two-view vote", time.perf_counter() - began, iterations=len(pairs)))
        estimated = relative_rotations(pairs)
        if restricted(problem, keep) is None:
            keep = None
        elif estimated is None:
            yield [Start("vote", short, keep)]
        else:
            # No projective refinement: where few tracks join two parts, it bends them against each other.
            voted = replace(short, formulation="pose-rot", refine=False)
            tried = len(attempts)
            yield [Start("vote with rotations", voted, keep, estimated)]
            batch = [Start("vote with rotations, refined", replace(voted, refine=True), keep, estimated)]
            if len(attempts) > tried:
                # The optimum of the surrogate itself may not be a reconstruction: continue with less of its regulariser.
                less = replace(short, alpha=0.002)
                batch.append(Start("vote, continued at alpha 0.002", less, keep, cameras=attempts[-1].P))
            yield [*batch, Start("vote", short, keep)]
    plain = replace(short, formulation="pose")
    yield [Start(f"trimmed by {share:.0%}", plain, trimmed=share) for share in TRIMMED]
    outward = Start("spectral-outward", replace(short, init="spectral-outward"), keep)
    yield [first, outward] if put_off else [outward]
    if attempts:
        best = min(attempts, key=lambda attempt: attempt.cost)
        yield [Start("continued at alpha 0.002", replace(short, alpha=0.002), cameras=best.P)]
    yield [
        Start(f"normal-affine, seed {seed}", replace(short, init="normal-affine", seed=seed), keep)
        for seed in range(config.seed, config.seed + SEEDS)
    ]
