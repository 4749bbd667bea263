"""Cameras anew, from landmarks that the others agree on."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.stages.euclidean.triangulation import Status, triangulate

MIN_INLIERS = 8
"""Four points leave the pose of a calibrated camera unique; as many again that agree make it believable."""
_MAX_ERROR = 4.0
"""pixels"""


def resect(
    problem: Problem,
    state: Reconstruction,
    cameras: Index | Sequence[int],
    *,
    min_inliers: int = MIN_INLIERS,
    seed: int = 0,
) -> tuple[Reconstruction, NDArray[np.bool_]]:
    """New poses for `cameras` (pycolmap's P3P in LO-RANSAC at 4 pixels, refined); the rest stays.

    Landmarks are first triangulated from the other cameras alone. Returns the state with new poses and landmarks, and
    for each of `cameras` whether it got a pose: at least `min_inliers` landmarks agree with it.
    """
    tracks, m, unit = problem.tracks, problem.m, problem.unit
    trusted = np.where(np.isin(tracks.cam, cameras), 0.0, 1.0)
    xyz, status = triangulate(problem, state, state.xyz, weight=trusted, scale=_MAX_ERROR)
    R, t = state.R.copy(), state.t.copy()
    found = np.zeros(len(cameras), dtype=bool)
    usable = (status == Status.FOUND)[tracks.landmark]
    for n, k in enumerate(cameras):
        seen = tracks.seen_by(int(k))
        seen = seen[usable[seen]]
        if len(seen) < min_inliers:
            continue
        # COLMAP's RADIAL is f π (1 + k1 n + k2 n²) too; its unit is the pixel, so that _MAX_ERROR is one as well.
        focal = float(unit[seen].mean())
        camera = pycolmap.Camera(
            model="RADIAL", width=1, height=1, params=[focal * state.focal[k], 0.0, 0.0, *state.radial[k]]
        )
        options = pycolmap.AbsolutePoseEstimationOptions()
        options.ransac.max_error = _MAX_ERROR
        options.ransac.random_seed = seed
        pose = pycolmap.estimate_and_refine_absolute_pose(focal * m[seen], xyz[tracks.landmark[seen]], camera, options)
        if pose is not None and pose["num_inliers"] >= min_inliers:
            matrix = pose["cam_from_world"].matrix()
            R[k], t[k] = matrix[:, :3], matrix[:, 3]
            found[n] = True
    return replace(state, R=R, t=t, xyz=xyz), found
