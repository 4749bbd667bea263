"""Relative rotations for formulations that use them: from the truth, or from two-view geometry."""

from dataclasses import replace

import numpy as np
from scipy.sparse import tril

from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.formulations import make
from initfree.formulations.pose_rot import RelativeRotations
from initfree.two_view.geometry import MIN_INLIERS, OnPair, TwoView, relative_rotations, two_view_geometries


def rotations_for(
    problem: Problem, config: SolveConfig, truth: Reconstruction | None = None, on_pair: OnPair | None = None
) -> RelativeRotations:
    """Relative rotations from the source that the configuration names: the given truth, or an estimate."""
    check_rotations(problem, config, truth)
    if truth is not None and config.rotations == "truth":
        return rotations_from_truth(problem, truth)
    return rotations_of(problem, two_view_geometries(problem, config.seed, on_pair=on_pair))


def check_rotations(problem: Problem, config: SolveConfig, truth: Reconstruction | None) -> None:
    """Refuse, before the solve, a source of rotations that is unused or missing."""
    uses = make(config.formulation, config.alpha).uses_rotations
    if config.rotations == "truth" and not uses:
        raise InputError(
            f"rotations is 'truth', but the formulation {config.formulation!r} uses no rotations; "
            "expected one that does, such as pose-rot, or rotations 'estimated'"
        )
    if uses and not problem.calibrated:
        raise InputError(
            f"{config.formulation} uses relative rotations, which need known intrinsics; "
            f"{problem.observations.source} has none"
        )
    if config.rotations == "truth" and truth is None:
        raise InputError("rotations is 'truth', but no truth was given; expected the model to take them from")


def rotations_from_truth(problem: Problem, truth: Reconstruction) -> RelativeRotations:
    """R_k R_l' of the truth for all covisible pairs, weighted by the landmarks they share."""
    R = _true_rotations(problem, truth)
    shared = tril(problem.tracks.covisible, -1, format="coo")
    k, l = (np.asarray(end, dtype=np.int64) for end in shared.coords)
    return RelativeRotations(np.stack([k, l], axis=1), R[k] @ R[l].transpose(0, 2, 1), shared.data.astype(float))


def truth_in_place_of(estimated: RelativeRotations, problem: Problem, truth: Reconstruction) -> RelativeRotations:
    """The true rotations of the estimated pairs, with the same weights: the difference in the results is the cost of
    estimation."""
    R = _true_rotations(problem, truth)
    k, l = estimated.pairs.T
    return replace(estimated, R=R[k] @ R[l].transpose(0, 2, 1))


def _true_rotations(problem: Problem, truth: Reconstruction) -> Array:
    """Of the problem's images."""
    index = {name: k for k, name in enumerate(truth.names)}
    missing = [name for name in problem.names if name not in index]
    if missing:
        raise InputError(f"the truth has no pose for image {missing[0]!r}; rotations from the truth need all of them")
    return truth.R[[index[name] for name in problem.names]]


def rotations_of(problem: Problem, pairs: list[TwoView]) -> RelativeRotations:
    """The rotations of the pairs, or an error that says why there are none."""
    rotations = relative_rotations(pairs)
    if rotations is None:
        raise InputError(
            f"{problem.observations.source}: no image pair has {MIN_INLIERS} matches that agree with one essential matrix; "
            "rotations cannot be estimated, choose another formulation"
        )
    return rotations
