"""Relative rotations between cameras, for pOSE+rot: from the truth, or from two-view geometry."""

import numpy as np

from initfree.errors import InputError
from initfree.formulations.pose_rot import RelativeRotations
from initfree.model import MetricModel
from initfree.problem import Problem
from initfree.two_view.geometry import MIN_INLIERS, OnPair, TwoView, relative_rotations, two_view_geometries


def rotations_from_truth(problem: Problem, truth: MetricModel) -> RelativeRotations:
    """R_k R_l' of the truth for all covisible pairs, weighted by the landmarks they share."""
    index = {name: k for k, name in enumerate(truth.names)}
    missing = [name for name in problem.names if name not in index]
    if missing:
        raise InputError(f"the truth has no pose for image {missing[0]!r}; rotations from the truth need all of them")
    R = truth.R[[index[name] for name in problem.names]]
    shared = problem.tracks.covisibility
    k, l = np.nonzero(np.tril(shared, -1))
    return RelativeRotations(np.stack([k, l], axis=1), R[k] @ R[l].transpose(0, 2, 1), shared[k, l].astype(float))


def estimate_rotations(problem: Problem, seed: int, on_pair: OnPair | None = None) -> RelativeRotations:
    """Rotations of the essential matrices between each camera and those it shares most landmarks with.

    Weights are inlier counts; pairs with fewer than twelve say nothing.
    """
    if not problem.calibrated:
        raise InputError("estimated rotations need known intrinsics; this problem has none")
    return rotations_of(problem, two_view_geometries(problem, seed, on_pair=on_pair))


def rotations_of(problem: Problem, pairs: list[TwoView]) -> RelativeRotations:
    """The rotations of the pairs, or why there are none."""
    rotations = relative_rotations(pairs)
    if rotations is None:
        raise InputError(
            f"{problem.observations.source}: no image pair has {MIN_INLIERS} matches that agree with one essential matrix; "
            "rotations cannot be estimated, choose another formulation"
        )
    return rotations
