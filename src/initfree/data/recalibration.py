"""The same observations with other intrinsics: pycolmap computes new rays, for any camera model."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pycolmap

from initfree.data.observations import Observations
from initfree.data.problem import Problem, restricted
from initfree.data.tracks import Array, Index

_FARTHEST = 1e3
"""calibrated units: rays closer to the image plane than a thousandth are invalid"""


def keypoints_of(problem: Problem) -> Array:
    """Pixels (observations, 2) of every observation, as the input has them."""
    o = problem.observations
    return _pixels(problem, problem.images[problem.tracks.cam], problem.keypoint) if len(o.images) else np.empty((0, 2))


def _pixels(problem: Problem, image: Index, keypoint: Index) -> Array:
    images = problem.observations.images
    start = np.concatenate([[0], np.cumsum([len(one.keypoints) for one in images])])
    return np.concatenate([one.keypoints for one in images])[start[image] + keypoint]


def rays_of(pixels: Array, image: Index, observations: Observations) -> Array:
    """Calibrated coordinates (n, 2) of pixels in the input's images; NaN for pixels without a ray."""
    id_of = np.array([one.camera_id for one in observations.images])
    return _rays(pixels, id_of[image], observations.cameras)


def found_camera(problem: Problem, focal: Array, radial: Array, camera_id: int) -> pycolmap.Camera:
    """A RADIAL camera with the estimated focal length and distortion (medians over its images) and a central principal
    point.

    If intrinsics were given, to be refined: the given camera with the estimated focal length.

    `focal` (cameras,) and `radial` (cameras, 2) are those of a reconstruction in normalised units.
    """
    camera = problem.observations.cameras[camera_id]
    mine = np.flatnonzero(problem.camera_ids == camera_id)
    if problem.rays:
        params = np.array(camera.params)
        params[camera.focal_length_idxs()] *= float(np.median(focal[mine]))
        return pycolmap.Camera(
            camera_id=camera_id, model=camera.model, width=camera.width, height=camera.height, params=params.tolist()
        )
    scale = problem.observations.image_unit[problem.images[mine], 0]
    k1, k2 = np.median(radial[mine], axis=0)
    return pycolmap.Camera(
        camera_id=camera_id, model="RADIAL", width=camera.width, height=camera.height,
        params=[float(np.median(focal[mine] * scale)), camera.width / 2.0, camera.height / 2.0, k1, k2],
    )  # fmt: skip


def with_cameras(
    problem: Problem, cameras: Mapping[int, pycolmap.Camera], camera_ids: Index | None = None
) -> tuple[Problem, Index] | None:
    """The problem with the estimated `cameras` (by id) instead of its own, and the indices of the remaining landmarks.

    `camera_ids` (solved cameras,) assigns other cameras to the images. Observations without a ray are left out. None if too
    few of an image remain, or if the images are then disconnected.
    """
    o = problem.observations
    images, priors = list(o.images), o.focal_priors
    if camera_ids is not None:
        for k, camera_id in zip(problem.images, camera_ids, strict=True):
            images[k] = replace(images[k], camera_id=int(camera_id))
        if priors is not None:
            # An image's focal length has the prior that it had, whichever camera it has now.
            priors = priors | {one.camera_id: priors[old.camera_id] for one, old in zip(images, o.images, strict=True)}
    by_id = {**o.cameras, **cameras}
    id_of = np.array([one.camera_id for one in images])
    unit = np.array([[by_id[k].focal_length_x, by_id[k].focal_length_y] for k in id_of.tolist()])
    rays = _rays(_pixels(problem, o.image, o.keypoint), id_of[o.image], by_id)
    seen = np.isfinite(rays).all(axis=1)
    observations = replace(
        o, images=tuple(images), cameras=by_id, focal_priors=priors,
        image=o.image[seen], landmark_id=o.landmark_id[seen], keypoint=o.keypoint[seen], normalised=rays[seen],
        image_unit=unit, undistortable=o.undistortable + int(np.count_nonzero(~seen)),
        colour=None if o.colour is None else o.colour[seen],
    )  # fmt: skip
    m = _rays(keypoints_of(problem), id_of[problem.images[problem.tracks.cam]], by_id)
    usable = np.asarray(np.isfinite(m).all(axis=1))
    left = np.arange(problem.tracks.landmarks)
    units = unit[problem.images[problem.tracks.cam]]
    same = replace(problem, observations=observations, m=m, unit=units, intrinsics="found", rays=True)
    if usable.all():
        return same, left
    return restricted(same, usable, problem.min_obs)


def _rays(pixels: Array, camera_id: Index, cameras: Mapping[int, pycolmap.Camera]) -> Array:
    """Calibrated coordinates (n, 2); NaN for pixels without a ray."""
    result = np.full((len(pixels), 2), np.nan)
    for k in np.unique(camera_id):
        here = camera_id == k
        result[here] = cameras[int(k)].cam_from_img(pixels[here])
    result[~(np.abs(result) < _FARTHEST).all(axis=1)] = np.nan
    return result
