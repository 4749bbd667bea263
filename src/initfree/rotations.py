"""Relative rotations between cameras, for pOSE+rot: from the truth, or from two-view geometry."""

import numpy as np
import pycolmap

from initfree.errors import InputError
from initfree.formulations.pose_rot import RelativeRotations
from initfree.model import MetricModel
from initfree.problem import Problem

NEIGHBOURS = 8
MIN_MATCHES = 12
MAX_ERROR = 2.0
"""pixels, for an inlier of the essential matrix"""


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


def estimate_rotations(problem: Problem, seed: int) -> RelativeRotations:
    """Essential matrices (pycolmap, LO-RANSAC at 2 px) between each camera and those it shares most landmarks with.

    Weights are inlier counts; pairs with fewer than twelve shared landmarks or inliers say nothing.
    """
    if not problem.calibrated:
        raise InputError("estimated rotations need known intrinsics; this problem has none")
    tracks = problem.tracks
    focal = float(np.median(problem.pixels))
    camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=1, height=1, params=[focal, 0.0, 0.0])
    options = pycolmap.RANSACOptions(
        max_error=MAX_ERROR, random_seed=seed, min_num_trials=100, max_num_trials=5000, confidence=0.9999
    )
    by_camera = [np.flatnonzero(tracks.cam == k) for k in range(tracks.cameras)]
    pairs, rotations, weights = [], [], []
    for k, l in _neighbour_pairs(tracks.covisibility):
        _, a, b = np.intersect1d(
            tracks.landmark[by_camera[k]],
            tracks.landmark[by_camera[l]],
            return_indices=True,
            assume_unique=True,
        )
        xk, xl = problem.m[by_camera[k][a]] * focal, problem.m[by_camera[l][b]] * focal
        found = pycolmap.estimate_essential_matrix(xl, xk, camera, camera, options)
        if found is not None and found["num_inliers"] >= MIN_MATCHES:
            pairs.append((k, l))
            rotations.append(found["cam2_from_cam1"].rotation.matrix())
            weights.append(float(found["num_inliers"]))
    if not pairs:
        raise InputError(
            f"{problem.observations.source}: no image pair has {MIN_MATCHES} matches that agree with one essential matrix; "
            "rotations cannot be estimated, choose another formulation"
        )
    return RelativeRotations(np.array(pairs), np.array(rotations), np.array(weights))


def _neighbour_pairs(shared: np.ndarray) -> list[tuple[int, int]]:
    """(k, l), k > l: every camera with its most covisible others."""
    shared = shared.copy()
    np.fill_diagonal(shared, 0)
    pairs = set()
    for k in range(len(shared)):
        for l in np.argsort(-shared[k], kind="stable")[:NEIGHBOURS]:
            if shared[k, l] >= MIN_MATCHES:
                pairs.add((max(k, int(l)), min(k, int(l))))
    return sorted(pairs)
