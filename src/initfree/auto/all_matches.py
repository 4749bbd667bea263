"""The last adjustment of a reconstruction from verified matches: on all that agree with the cameras.

Tracks of two observations harm a reconstruction if they are used early. At the end, with right cameras and a narrow loss,
they add a third more equations, which COLMAP's mapper uses too.
"""

from dataclasses import dataclass, replace

import numpy as np

from initfree.auto.intrinsics import QUICK, note, other_notes
from initfree.auto.search import Search
from initfree.auto.solution import Solution
from initfree.data.problem import MIN_CAMERA_OBSERVATIONS, Problem
from initfree.data.recalibration import keypoints_of, with_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.engine.compilation import clock
from initfree.engine.losses import scale_from_median
from initfree.io.points import widest_angles
from initfree.stages.euclidean import AdjustConfig, adjust, residuals
from initfree.stages.euclidean.intrinsics import WEAK, View, refine
from initfree.stages.euclidean.lenses import Lenses
from initfree.stages.euclidean.residuals import INLIER_PIXELS
from initfree.stages.euclidean.triangulation import triangulate
from initfree.two_view.agreeing_matches import tracks_of_agreeing_matches

LEAST_ANGLE = 1.5
"""degrees between the widest rays of a landmark: below, it constrains little but the rotations of its cameras"""
NARROWEST = 1.0
"""pixels: scale of the Cauchy loss; it follows the errors up to the 4 px of all earlier adjustments"""
_TOLERANCE = 1e-6


def on_all_matches(search: Search, solution: Solution) -> Solution | None:
    """Adjust the cameras on all verified matches that agree with them, and triangulate the landmarks of these matches.

    None if the input has no verified matches, or if they do not connect the images. Found intrinsics move too, because the
    earlier tracks were selected with less accurate ones. Only for accepted solutions: matches that agree with wrong cameras
    would hide their errors.
    """
    began = clock()
    problem, notes = solution.problem, solution.notes
    found = _matched(problem, solution.reconstruction)
    if found is None:
        return None
    left = np.arange(problem.tracks.landmarks)
    if not problem.exact:
        refined = _with_refined_cameras(problem, found)
        if refined is not None:
            problem, left, found = refined
            notes = _with_note(problem, search.problem, notes)
    adjusted = _adjusted(problem, solution.reconstruction.subset(slice(None), left), found)
    part = solution.part(problem, adjusted, landmarks=left)
    return replace(part, notes=notes).reporting("all matches", began)


def _with_note(problem: Problem, given: Problem, notes: tuple[str, ...]) -> tuple[str, ...]:
    """The notes with the new description of the cameras."""
    if given.rays:
        return *other_notes(notes), note(problem, "refined", given)
    return tuple(note(problem, "found") if one.startswith("intrinsics found") else one for one in notes)


def _with_refined_cameras(problem: Problem, found: "_Matched") -> tuple[Problem, Index, "_Matched"] | None:
    """Problem, remaining landmarks and matches, with focal lengths and distortion adjusted on all matches.

    The loss is wide: observations near the edge of the image, where the model of a lens fits worst, determine it most.
    """
    r, tracks, ids = found.state, found.problem.tracks, problem.camera_ids
    lenses = Lenses.of(problem.observations.cameras, ids, principal_point=False, shared=True)
    stage, _ = refine(
        tracks, keypoints_of(found.problem), View(r.R, r.t, r.xyz, lenses), scales=(INLIER_PIXELS,),
        prior=lenses.prior(WEAK, focal=problem.focal_priors), weight=found.weight, limits=QUICK,
    )  # fmt: skip
    cameras = stage.view.lenses.by_id(ids)
    own, everything = (with_cameras(one, cameras) for one in (problem, found.problem))
    if own is None or everything is None or everything[0].tracks.observations < tracks.observations:
        return None
    state = replace(r, R=stage.view.R, t=stage.view.t, xyz=stage.view.xyz)
    return *own, replace(found, problem=everything[0], state=state)


@dataclass(frozen=True)
class _Matched:
    """The tracks of all matches that agree, and their reconstruction."""

    problem: Problem
    state: Reconstruction
    weight: Array
    """(observations,): one if the landmark has some parallax and fits, else zero"""
    scale: float
    """pixels, of the loss"""


def _matched(problem: Problem, reconstruction: Reconstruction) -> _Matched | None:
    whole = tracks_of_agreeing_matches(problem, reconstruction, INLIER_PIXELS)
    if whole is None:
        return None
    tracks = whole.tracks
    xyz, _ = triangulate(whole, reconstruction, scale=INLIER_PIXELS)
    state = replace(reconstruction, xyz=xyz, ids=whole.landmark_ids)
    found = residuals(whole, state)
    used = found.within(INLIER_PIXELS)
    used &= (widest_angles(tracks, state.centres, xyz, used) >= LEAST_ANGLE)[tracks.landmark]
    if np.bincount(tracks.cam[used], minlength=tracks.cameras).min() < MIN_CAMERA_OBSERVATIONS:
        return None
    scale = min(scale_from_median(found.error[used] ** 2, 2.0, NARROWEST), INLIER_PIXELS)
    return _Matched(whole, state, used.astype(np.float64), scale)


def _adjusted(problem: Problem, reconstruction: Reconstruction, found: _Matched) -> Reconstruction:
    whole, limits = found.problem, AdjustConfig(scales=(found.scale,), tolerance=_TOLERANCE)
    moved, _ = adjust(whole, found.state, limits, weight=found.weight)
    xyz, _ = triangulate(problem, moved, reconstruction.xyz, scale=INLIER_PIXELS)
    return replace(reconstruction, R=moved.R, t=moved.t, xyz=xyz)
