"""The last adjustment of a reconstruction whose input has verified matches: on all that agree, not on long tracks alone.

Tracks of two observations made reconstructions worse when they were used early; at the end, under cameras that are right
and with a narrow loss, they are a third more equations. On South Building's database this is the difference to COLMAP's
mapper, which uses them too.
"""

from dataclasses import replace

import numpy as np

from initfree.engine.losses import scale_from_median
from initfree.euclidean import AdjustConfig, adjust, residuals
from initfree.euclidean.residuals import INLIER_PIXELS
from initfree.euclidean.triangulation import triangulate
from initfree.io.points import widest_angles
from initfree.problem import MIN_CAMERA_OBSERVATIONS, Problem
from initfree.reconstruction import Reconstruction
from initfree.two_view.agreeing_matches import tracks_of_agreeing_matches

LEAST_ANGLE = 1.5
"""degrees between the widest rays of a landmark: below, it tells cameras next to nothing but how they turn"""
NARROWEST = 1.0
"""pixels: scale of the Cauchy loss; wider where the errors are, up to the 4 px of every adjustment before"""
_TOLERANCE = 1e-6


def adjusted_on_all_matches(problem: Problem, reconstruction: Reconstruction) -> Reconstruction | None:
    """The reconstruction with its cameras adjusted on all matches that agree, and its landmarks triangulated by them.

    Intrinsics stay. None where there are no verified matches, or they do not hold the images together.
    """
    whole = tracks_of_agreeing_matches(problem, reconstruction, INLIER_PIXELS)
    if whole is None:
        return None
    tracks = whole.tracks
    xyz, _ = triangulate(tracks, whole.m, whole.unit, *reconstruction.cameras, scale=INLIER_PIXELS)
    state = replace(reconstruction, xyz=xyz, ids=whole.landmark_ids)
    found = residuals(whole, state)
    used = found.within(INLIER_PIXELS)
    used &= (widest_angles(tracks, state.centres, xyz, used) >= LEAST_ANGLE)[tracks.landmark]
    if np.bincount(tracks.cam[used], minlength=tracks.cameras).min() < MIN_CAMERA_OBSERVATIONS:
        return None
    scale = min(scale_from_median(found.error[used] ** 2, 2.0, NARROWEST), INLIER_PIXELS)
    limits = AdjustConfig(scales=(scale,), tolerance=_TOLERANCE)
    moved, _ = adjust(tracks, whole.m, whole.unit, state, limits, weight=used.astype(np.float64))
    own, _ = triangulate(
        problem.tracks, problem.m, problem.unit, *moved.cameras, reconstruction.xyz, scale=INLIER_PIXELS
    )  # fmt: skip
    return replace(reconstruction, R=moved.R, t=moved.t, xyz=own)
