"""New tracks from the verified matches of an input, with the cameras of a reconstruction.

The first tracks contain every match that agreed with some two-view geometry. A wrong match among them merges two
landmarks, and cutting such a track may lose observations. With known cameras, the distance of each match from its
epipolar lines decides whether it is right. Tracks of the agreeing matches have few conflicts, and tracks that a single
wrong match spoiled are whole.
"""

from dataclasses import replace

import numpy as np

from initfree.data.pairs import VerifiedPairs
from initfree.data.problem import Problem, build_problem
from initfree.data.recalibration import rays_of
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.two_view.geometry import sampson
from initfree.two_view.matches import tracks_from_matches


def tracks_of_agreeing_matches(
    problem: Problem, reconstruction: Reconstruction, pixels: float, least: int = 2
) -> Problem | None:
    """The solved images with tracks, of `least` observations or more, of all verified matches that agree with the cameras.

    A match agrees if its Sampson distance is at most `pixels`. None if the input has no verified pairs, the problem is not
    calibrated, or the tracks do not connect all its images.
    """
    o = problem.observations
    if o.pairs is None or not problem.calibrated:
        return None
    first = np.concatenate([[0], np.cumsum([len(image.keypoints) for image in o.images])])
    image_of = np.repeat(np.arange(len(o.images)), np.diff(first))
    rays = rays_of(np.concatenate([image.keypoints for image in o.images]), image_of, o)
    pair = np.repeat(np.arange(len(o.pairs.image)), np.diff(o.pairs.ptr))
    ends = first[o.pairs.image[pair]] + o.pairs.keypoint
    distance = sampson(_essential_matrices(problem, reconstruction, o.pairs)[pair], rays[ends[:, 0]], rays[ends[:, 1]])
    unit = o.image_unit.mean(axis=1)[o.pairs.image].mean(axis=1)
    # Not a number, of images that were not solved or points without a ray, is not smaller.
    agreeing = distance * unit[pair] <= pixels
    count = np.bincount(pair[agreeing], minlength=len(o.pairs.image))
    ptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    found = tracks_from_matches(
        [image.keypoints for image in o.images], o.pairs.image, ptr, o.pairs.keypoint[agreeing]
    )  # fmt: skip
    observations = replace(
        o, image=found.image, landmark_id=found.track + 1, keypoint=found.keypoint,
        normalised=rays[first[found.image] + found.keypoint], colour=None,
    )  # fmt: skip
    try:
        whole = build_problem(observations, least)
    except InputError:  # next to nothing agrees
        return None
    same = np.array_equal(whole.images, problem.images)
    return replace(whole, intrinsics=problem.intrinsics, rays=True) if same else None


def _essential_matrices(problem: Problem, reconstruction: Reconstruction, pairs: VerifiedPairs) -> Array:
    """(pairs, 3, 3): x_j' E x_i = 0; NaN if an image was not solved."""
    camera = np.full(len(problem.observations.images), -1)
    camera[problem.images] = np.arange(len(problem.images))
    i, j = camera[pairs.image].T
    R = reconstruction.R[j] @ reconstruction.R[i].transpose(0, 2, 1)
    t = reconstruction.t[j] - (R @ reconstruction.t[i][:, :, None])[:, :, 0]
    E = np.cross(t[:, :, None], R, axis=1)
    E[(i < 0) | (j < 0)] = np.nan
    return E
