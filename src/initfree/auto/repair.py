"""Cameras that nothing agrees with, found again from the landmarks of those that agree with each other."""

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.verdict import INLIER_PIXELS, metric_residuals
from initfree.engine.losses import Cauchy
from initfree.euclidean import AdjustConfig, FreeIntrinsics, MetricState, adjust, resect
from initfree.euclidean.system import squared_residuals
from initfree.problem import Problem
from initfree.tracks import Array
from initfree.upgrade.metric import Metric

ROUNDS = 3
MIN_SHARE = 0.6
"""A camera with a smaller share of its observations within 4 px is resected."""
RELATIVE_SHARE = 0.75
"""Or, where wrong matches lower the share of all cameras, one below this part of their median."""
MAX_BAD = 0.5
"""Beyond this share of bad cameras nothing is left to resect them from."""


def robust_cost(problem: Problem, metric: Metric) -> float:
    """1/2 sum ρ(|r|²) over all observations, Cauchy at 4 px: what starts are compared by, wherever they come from."""
    cameras = (metric.R, metric.t, metric.focal, metric.radial)
    squared = squared_residuals(problem.tracks, cameras, metric.xyz, (problem.m, problem.unit, True))
    return Cauchy(INLIER_PIXELS).total(squared)


def camera_shares(problem: Problem, metric: Metric) -> Array:
    """Of every camera, the share of its observations within 4 px and in front of it."""
    tracks = problem.tracks
    error, depth = metric_residuals(tracks, problem.m, problem.unit, metric)
    fits = (error <= INLIER_PIXELS) & (depth > 0.0)
    return np.bincount(tracks.cam, weights=fits, minlength=tracks.cameras) / np.bincount(
        tracks.cam, minlength=tracks.cameras
    )


def consensus(problem: Problem, metric: Metric, least: int = 3) -> NDArray[np.bool_]:
    """Observations within 4 px, in front, of landmarks that at least `least` such observations agree on."""
    error, depth = metric_residuals(problem.tracks, problem.m, problem.unit, metric)
    fits = (error <= INLIER_PIXELS) & (depth > 0.0)
    return fits & (np.bincount(problem.tracks.landmark, weights=fits) >= least)[problem.tracks.landmark]


def repair(problem: Problem, metric: Metric, limits: AdjustConfig, seed: int = 0) -> tuple[Metric, int]:
    """Resect bad cameras from landmarks that good ones triangulate, adjust all, up to three rounds.

    A round counts only if the robust cost of all observations falls. Returns the reconstruction and the rounds kept.
    """
    tracks, cost = problem.tracks, robust_cost(problem, metric)
    for done in range(ROUNDS):
        share = camera_shares(problem, metric)
        bad = np.flatnonzero(share < min(MIN_SHARE, RELATIVE_SHARE * float(np.median(share))))
        if not 0 < len(bad) <= MAX_BAD * tracks.cameras:
            return metric, done
        state, found = resect(tracks, problem.m, problem.unit, MetricState.from_metric(metric), bad, seed=seed)
        if not found.any():
            return metric, done
        trial, _ = adjust(
            tracks, problem.m, problem.unit, state.to_metric(metric, tracks), limits, groups=problem.camera_ids
        )
        trial_cost = robust_cost(problem, trial)
        if not trial_cost < cost:
            return metric, done
        metric, cost = trial, trial_cost
    return metric, ROUNDS


def repair_limits(problem: Problem, max_iterations: int, tolerance: float) -> AdjustConfig:
    """Narrower than the first adjustment: the good cameras are near their optimum already."""
    free = FreeIntrinsics.unless(problem.calibrated)
    return AdjustConfig(free=free, scales=(10.0, 4.0), max_iterations=max_iterations, tolerance=tolerance)
