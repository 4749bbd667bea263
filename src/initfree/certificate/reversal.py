"""Is there another? A thing seen from afar looks the same turned inside out: depths reversed, rotations mirrored (Necker).

Under parallel projection the two cannot be told apart; perspective tells, as far as it exceeds the noise. A reconstruction
that is the wrong one of the two fits nearly as well, and every share of it is that of a right one.
"""

from dataclasses import replace

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from initfree.certificate.closeness import closeness
from initfree.certificate.thresholds import DIFFERENT_AUC20, SIGNIFICANT
from initfree.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.euclidean.residuals import INLIER_PIXELS, robust_cost
from initfree.problem import Problem, without_cameras
from initfree.reconstruction import Reconstruction, nearest_rotation
from initfree.tracks import Index

WEAK_PERSPECTIVE = 0.1
"""deviation of a camera's depths over their median, for the median camera, below which the reversal is tried"""
_LEAST_NOISE = 0.1
"""pixels: a perfect fit must not make every difference significant"""
_STEPS = 20
NEIGHBOURHOOD = 60
"""cameras of a large problem that are asked first"""


def reversal_rise(problem: Problem, reconstruction: Reconstruction) -> float | None:
    """How much worse the reversed reconstruction fits, adjusted: 2 (E' - E)/σ² with σ² = E/observations, as in
    `focal.focal_rise`; negative where it fits better, None where perspective tells the two apart anyway, or where
    the way leads back (from a plane turned inside out, say).

    Of a large problem a neighbourhood of cameras is asked first. What the whole, reversed, costs is at least what its parts
    do, each adjusted alone: where one part tells the two apart, the whole does.
    """
    if _perspective(problem, reconstruction) > WEAK_PERSPECTIVE:
        return None
    if problem.tracks.cameras > 2 * NEIGHBOURHOOD:
        found = _neighbourhood(problem)
        if found is not None:
            part, cameras, landmarks = found
            rise = _rise(part, reconstruction.subset(cameras, landmarks))
            if rise is not None and rise >= SIGNIFICANT:
                return rise
    return _rise(problem, reconstruction)


def _rise(problem: Problem, reconstruction: Reconstruction) -> float | None:
    limits = AdjustConfig(
        free=FreeIntrinsics.unless(problem.calibrated), scales=(INLIER_PIXELS,), max_iterations=_STEPS, tolerance=1e-6
    )
    start = reversed_depths(reconstruction)
    other, _ = adjust(problem.tracks, problem.m, problem.unit, start, limits, groups=problem.camera_ids)
    if min(closeness(reconstruction.R, reconstruction.centres, other.R, other.centres, 20.0)) >= DIFFERENT_AUC20:
        return None
    cost = robust_cost(problem, reconstruction)
    variance = max(cost / problem.tracks.observations, _LEAST_NOISE**2)
    return 2.0 * (robust_cost(problem, other) - cost) / variance


def _neighbourhood(problem: Problem) -> tuple[Problem, Index, Index] | None:
    """The cameras nearest, in landmarks shared, to the one that sees most, with their landmarks."""
    shared = problem.tracks.covisible
    nearest = breadth_first_order(shared, int(np.argmax(shared.diagonal())), directed=False)[0][:NEIGHBOURHOOD]
    return without_cameras(problem, np.setdiff1d(np.arange(problem.tracks.cameras), nearest))


def reversed_depths(reconstruction: Reconstruction) -> Reconstruction:
    """The other reading of the same images under parallel projection.

    In the frame of the mean camera, D = diag(1, 1, -1): X -> D X and R -> D R D leave the first two coordinates of R X and
    turn the third one round, about the depth of the landmarks' middle.
    """
    r = reconstruction
    mean = nearest_rotation(r.R.sum(axis=0))
    middle = np.median(r.xyz, axis=0)
    D = np.diag([1.0, 1.0, -1.0])
    R = D @ (r.R @ mean.T) @ D
    return replace(r, R=np.ascontiguousarray(R), t=r.t + r.R @ middle, xyz=(r.xyz - middle) @ mean.T @ D)


def _perspective(problem: Problem, reconstruction: Reconstruction) -> float:
    depth, tracks = reconstruction.depths(problem.tracks), problem.tracks
    count = np.maximum(np.bincount(tracks.cam, minlength=tracks.cameras), 1)
    mean = np.bincount(tracks.cam, weights=depth, minlength=tracks.cameras) / count
    spread = np.bincount(tracks.cam, weights=(depth - mean[tracks.cam]) ** 2, minlength=tracks.cameras) / count
    return float(np.median(np.sqrt(spread) / np.maximum(np.abs(mean), 1e-300)))
