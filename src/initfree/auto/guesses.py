"""Starts for unknown intrinsics: focal lengths guessed from pairs of images, and what calibrated images allow from there."""

from collections.abc import Iterator
from dataclasses import replace

from initfree.auto.start import Attempt, Start
from initfree.config import SolveConfig
from initfree.problem import Problem
from initfree.two_view.focal import guess_focals, with_focals
from initfree.two_view.geometry import MOST_MATCHES, OnPair, relative_rotations, two_view_geometries


def guessed_starts(
    problem: Problem, config: SolveConfig, attempts: list[Attempt], on_pair: OnPair | None = None
) -> Iterator[Start]:
    """pOSE with the pairs' rotations, whose cameras are metric as they are; then on from there without the rotations.

    A surrogate without rotations has many local optima where cameras see wide angles and move forward (BAL's
    ladybug-49: most starts end in one), and an upgrade from wrong ones bends the rest.
    """
    focal = guess_focals(problem, config.seed, on_pair)
    if focal is None:
        return
    pairs = two_view_geometries(with_focals(problem, focal), config.seed, most=MOST_MATCHES, on_pair=on_pair)
    rotations = relative_rotations(pairs)
    if rotations is None:
        return
    name = "guessed focal lengths"
    # The rotations hold the cameras: neither a projective refinement nor an upgrade would bring them closer to metric ones.
    held = replace(config, formulation="pose-rot", refine=False, upgrade="none")
    yield Start(name, held, rotations=rotations, focal=focal)
    if attempts:
        yield Start(f"{name}, continued at alpha 0.002", replace(config, alpha=0.002), cameras=attempts[-1].P)
