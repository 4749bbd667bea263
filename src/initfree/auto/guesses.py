"""Starts for unknown intrinsics: focal lengths guessed from image pairs, then as for calibrated images."""

from dataclasses import replace

from initfree.auto.solution import Start
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.thinning import thinned
from initfree.data.tracks import Array
from initfree.two_view.averaging import turned_cameras
from initfree.two_view.focal import guess_focals, with_focals
from initfree.two_view.geometry import OnPair, relative_rotations
from initfree.two_view.given import two_view_geometries_of

_NAME = "guessed focal lengths"
CONTINUED_ALPHA = 0.002
"""weight of the regulariser in a start that continues another: the optimum of the surrogate itself may not be a
reconstruction"""
_MATCHES = 70
"""of a pair, at most: with guessed focal lengths, more do not improve its rotation"""
_COARSE = 1e-3
"""tolerance of a refinement before the Euclidean adjustment"""


def guessed_start(problem: Problem, config: SolveConfig, on_pair: OnPair | None = None) -> Start | None:
    """pOSE with the pairs' rotations, whose cameras are metric already; None if the pairs give no focal lengths.

    A surrogate without rotations has many local optima where cameras see wide angles and move forward (BAL's
    ladybug-49: most starts end in one), and an upgrade from wrong ones bends the rest.
    """
    focal = guess_focals(problem, config.seed, on_pair)
    if focal is None:
        return None
    return start_with_focals(_NAME, problem, config, focal, on_pair)


def start_with_focals(
    name: str, problem: Problem, config: SolveConfig, focal: Array, on_pair: OnPair | None = None
) -> Start | None:
    """pOSE with the pairs' rotations for these focal lengths, whose cameras are metric already."""
    pairs = two_view_geometries_of(with_focals(problem, focal), config.seed, most=_MATCHES, on_pair=on_pair)
    rotations = relative_rotations(pairs)
    if rotations is None:
        return None
    keep = thinned(problem, config.seed)
    # The rotations make the cameras metric: neither a projective refinement nor an upgrade would improve them.
    held = replace(config, formulation="pose-rot", refine=False, upgrade="none")
    cameras = turned_cameras(rotations, problem.tracks.cameras)
    return Start(name, held, keep, rotations, cameras, focal=focal)


def refined_guess(problem: Problem, config: SolveConfig, P: Array) -> Start:
    """Continue with free projective cameras and new focal lengths: cheaper than another stage 1, and as good a witness; on
    other landmarks if there are many."""
    keep = thinned(problem, config.seed + 1)
    return Start(f"{_NAME}, refined", replace(config, refine_tolerance=_COARSE), keep, projective=P)


def continued_guess(config: SolveConfig, P: Array) -> Start:
    """Continue from the cameras of a guess, without the rotations."""
    less = replace(config, alpha=CONTINUED_ALPHA)
    return Start(f"{_NAME}, continued at alpha {CONTINUED_ALPHA}", less, cameras=P)
