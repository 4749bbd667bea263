"""The `auto` strategy: several ways to start, until one reconstruction is certified or all are used up.

A start is cheap on easy data and hopeless on some hard data, and nothing before the Euclidean adjustment tells which (a
low object-space error says nothing). So each start runs to its Euclidean end, cameras that nothing agrees with are
resected, and starts are ranked by the robust Euclidean cost of ALL observations, whatever subset they began from.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from initfree.config import SolveConfig
from initfree.errors import InputError
from initfree.formulations.pose_rot import RelativeRotations
from initfree.pipeline import OnProgress, blas_threads
from initfree.problem import Problem
from initfree.refinement import Reprojection
from initfree.result import Result
from initfree.start import Attempt, Start, run_start
from initfree.two_view import relative_rotations, two_view_geometries
from initfree.varpro import kernels
from initfree.voting import vote

SAME_OPTIMUM = 1e-3
"""Relative difference of costs up to which two starts have found the same optimum."""
MIN_MATCHES = 10
MIN_INLIERS = 12
SEEDS = 4
"""random starts, last of all"""
TRIMMING_ROUNDS = 3
TRIMMED_PIXELS = 4.0
TRIMMED_SHARE = 0.15
"""most observations that a round of trimming leaves out"""
SHORT = 100
"""attempted steps a stage of a start may take: those that succeed need fewer"""


def solve_auto(
    problem: Problem,
    config: SolveConfig = SolveConfig(),
    *,
    rotations: RelativeRotations | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """The best reconstruction of several starts; the first is the pipeline that `config` describes.

    Ends as soon as a start is certified, or when two starts found the best optimum, or when all were tried. The number of
    starts is the budget, not the clock: the same problem and seed give the same result on every machine.
    """
    if not config.adjust:
        raise InputError("the auto strategy ranks starts by their Euclidean adjustment; --no-adjust needs --strategy single")
    with blas_threads(problem):
        attempts: list[Attempt] = []
        for start in _starts(problem, config, rotations, attempts):
            attempt = run_start(problem, start, on_progress)
            if attempt is None:
                continue
            attempts.append(attempt)
            if attempt.certificate.accepted:
                break
        best = min(attempts, key=lambda a: (not a.certificate.accepted, a.cost))
        return best.result(problem, [a.report() for a in attempts])


def _starts(
    problem: Problem, config: SolveConfig, rotations: RelativeRotations | None, attempts: list[Attempt]
) -> Iterator[Start]:
    """Starts in the order in which they are worth their time; `attempts` holds what the earlier ones led to."""
    short = replace(config, max_iterations=min(config.max_iterations, SHORT))
    if config.formulation == "pose-rot" and rotations is None:
        pairs = two_view_geometries(problem, config.seed, MIN_MATCHES)
        rotations = relative_rotations(pairs, MIN_INLIERS)
    yield Start(config.init, short, rotations=rotations)
    keep = None
    if problem.calibrated:
        pairs = two_view_geometries(problem, config.seed, MIN_MATCHES)
        keep = vote(problem.tracks, pairs)
        estimated = relative_rotations([pair for pair in pairs], MIN_INLIERS)
        if estimated is not None:
            yield Start("vote, rotations", replace(short, formulation="pose-rot"), keep, estimated)
            yield Start("vote, rotations, small alpha", replace(short, formulation="pose-rot", alpha=0.005), keep, estimated)
        yield Start("vote", short, keep)
    yield from _trimming(problem, short, keep, attempts)
    yield Start("spectral-outward", replace(short, init="spectral-outward"), keep)
    for seed in range(SEEDS):
        yield Start(f"normal-affine {seed}", replace(short, init="normal-affine", seed=config.seed + seed), keep)


def _trimming(problem: Problem, config: SolveConfig, keep, attempts: list[Attempt]) -> Iterator[Start]:
    """Leave out what fits the best attempt so far worst, and start anew; again."""
    for _ in range(TRIMMING_ROUNDS):
        last = attempts[-1]
        y = np.empty((problem.tracks.observations, 3))
        kernels.project(problem.tracks.ptr, problem.tracks.cam, last.P, last.X, y)
        error = np.sqrt(Reprojection(problem.m, problem.pixels).squared_residuals(y))
        limit = max(TRIMMED_PIXELS, float(np.quantile(error, 1.0 - TRIMMED_SHARE)))
        yield Start("trimmed", config, error <= limit)
