"""Depth reversal: a distant object looks the same with reversed depths and mirrored rotations (Necker).

Parallel projection cannot distinguish the two; perspective can, if it exceeds the noise. The wrong one fits nearly as
well, with the figures of a right one.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from initfree.certificate.closeness import closeness
from initfree.certificate.thresholds import DIFFERENT_AUC20, LEAST_NOISE, SIGNIFICANT
from initfree.data.problem import Problem, without_cameras
from initfree.data.reconstruction import Reconstruction, nearest_rotation
from initfree.data.tracks import Index
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.stages.euclidean.residuals import INLIER_PIXELS, robust_cost

WEAK_PERSPECTIVE = 0.1
"""deviation of a camera's depths over their median, for the median camera, below which the reversal is tried"""
_STEPS = 20
NEIGHBOURHOOD = 60
"""cameras of a large problem that are tested first"""
_LARGE, _NEIGHBOURHOODS = 1000, 8
"""cameras of a problem that is not tested as a whole if so many evenly spaced neighbourhoods all return"""


def reversal_rise(problem: Problem, reconstruction: Reconstruction) -> float | None:
    """Rise of the cost of the reversed reconstruction after an adjustment: 2 (E' - E)/σ² with σ² = E/observations, as in
    `focal.focal_rise`; negative if it fits better. None if perspective excludes a reversal, or if the adjustment returns
    to the given reconstruction (as for a plane).

    Neighbourhoods of cameras of a large problem are tested first. The reversed whole costs at least as much as its parts,
    each adjusted alone, so one part that excludes a reversal suffices. If every reversed part returns, the whole would
    too.
    """
    if _perspective(problem, reconstruction) > WEAK_PERSPECTIVE:
        return None
    asked = back = 0
    for part, cameras, landmarks in _neighbourhoods(problem):
        rise = _rise(part, reconstruction.subset(cameras, landmarks))
        if rise is not None and rise >= SIGNIFICANT:
            return rise
        asked, back = asked + 1, back + (rise is None)
    return None if asked == back >= _NEIGHBOURHOODS // 2 else _rise(problem, reconstruction)


def _rise(problem: Problem, reconstruction: Reconstruction) -> float | None:
    limits = AdjustConfig(free=FreeIntrinsics.of(problem), scales=(INLIER_PIXELS,), max_iterations=_STEPS, tolerance=1e-6)
    start = reversed_depths(reconstruction)
    other, _ = adjust(problem, start, limits)
    if min(closeness(reconstruction.R, reconstruction.centres, other.R, other.centres, 20.0)) >= DIFFERENT_AUC20:
        return None
    cost = robust_cost(problem, reconstruction)
    variance = max(cost / problem.tracks.observations, LEAST_NOISE**2)
    return 2.0 * (robust_cost(problem, other) - cost) / variance


def _neighbourhoods(problem: Problem) -> Iterator[tuple[Problem, Index, Index]]:
    """The cameras that share most landmarks with the one that sees most; for many cameras, also the neighbourhoods of
    others, evenly spaced by their distance from it in the graph."""
    shared, n = problem.tracks.covisible, problem.tracks.cameras
    if n <= 2 * NEIGHBOURHOOD:
        return
    outwards = breadth_first_order(shared, int(np.argmax(shared.diagonal())), directed=False)[0]
    middles = outwards[np.linspace(0, len(outwards) - 1, 1 if n < _LARGE else _NEIGHBOURHOODS).astype(np.int64)]
    for middle in middles:
        nearest = breadth_first_order(shared, int(middle), directed=False)[0][:NEIGHBOURHOOD]
        found = without_cameras(problem, np.setdiff1d(np.arange(n), nearest))
        if found is not None:
            yield found


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
