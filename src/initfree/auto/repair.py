"""Resection of bad cameras from the landmarks of good ones."""

import numpy as np

from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust, resect, residuals, robust_cost
from initfree.stages.euclidean.residuals import INLIER_PIXELS

ROUNDS = 3
MIN_SHARE = 0.6
"""A camera with a smaller share of its observations within 4 px is resected."""
RELATIVE_SHARE = 0.75
"""Or, if wrong matches lower the shares of all cameras, one below this part of their median."""
MAX_BAD = 0.5
"""Beyond this share of bad cameras there are too few good ones."""


def camera_shares(problem: Problem, reconstruction: Reconstruction) -> Array:
    """Of every camera, the share of its observations within 4 px and in front of it."""
    tracks, fits = problem.tracks, residuals(problem, reconstruction).within(INLIER_PIXELS)
    return np.bincount(tracks.cam, weights=fits, minlength=tracks.cameras) / np.bincount(
        tracks.cam, minlength=tracks.cameras
    )


def repair(
    problem: Problem, reconstruction: Reconstruction, limits: AdjustConfig, seed: int = 0
) -> tuple[Reconstruction, int]:
    """Resect bad cameras from landmarks that good ones triangulate, adjust all, up to three rounds.

    A round counts only if the robust cost of all observations falls. Returns the reconstruction and the rounds kept.
    """
    tracks, cost = problem.tracks, robust_cost(problem, reconstruction)
    for done in range(ROUNDS):
        share = camera_shares(problem, reconstruction)
        bad = np.flatnonzero(share < min(MIN_SHARE, RELATIVE_SHARE * float(np.median(share))))
        if not 0 < len(bad) <= MAX_BAD * tracks.cameras:
            return reconstruction, done
        state, found = resect(problem, reconstruction, bad, seed=seed)
        if not found.any():
            return reconstruction, done
        trial, _ = adjust(problem, state, limits)
        trial_cost = robust_cost(problem, trial)
        if not trial_cost < cost:
            return reconstruction, done
        reconstruction, cost = trial, trial_cost
    return reconstruction, ROUNDS


def repair_limits(problem: Problem, max_iterations: int, tolerance: float) -> AdjustConfig:
    """Narrower than the first adjustment, because the good cameras are near their optimum."""
    free = FreeIntrinsics.of(problem)
    return AdjustConfig(free=free, scales=(10.0, 4.0), max_iterations=max_iterations, tolerance=tolerance)
