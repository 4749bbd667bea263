"""Tracks once more from the verified matches of an input, now that the cameras are known.

The first tracks were made of all matches that agreed with some geometry of two images. A wrong one among them joins two
landmarks: such a track is cut at a guess, or loses an end to the consensus. With the cameras of a reconstruction every
match can be asked by itself how far it is off its epipolar lines; tracks of those that agree have few conflicts left, and
tracks that a single wrong match had spoiled are whole again.
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
    """The solved images with the tracks, of `least` observations or more, of all verified matches that agree with them.

    A match agrees if Sampson's distance to its epipolar lines is at most `pixels`. None where the input has no verified
    pairs, the problem is not calibrated, or such tracks do not hold all its images together.
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
    """(pairs, 3, 3): x_j' E x_i = 0; not a number where an image was not solved."""
    camera = np.full(len(problem.observations.images), -1)
    camera[problem.images] = np.arange(len(problem.images))
    i, j = camera[pairs.image].T
    R = reconstruction.R[j] @ reconstruction.R[i].transpose(0, 2, 1)
    t = reconstruction.t[j] - (R @ reconstruction.t[i][:, :, None])[:, :, 0]
    E = np.cross(t[:, :, None], R, axis=1)
    E[(i < 0) | (j < 0)] = np.nan
    return E
