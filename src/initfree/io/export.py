"""A metric reconstruction as a COLMAP model."""

import numpy as np
import pycolmap

from initfree.problem import Problem
from initfree.upgrade.metric import Metric


def to_colmap(problem: Problem, metric: Metric) -> pycolmap.Reconstruction:
    """Solved images with all their keypoints, landmarks with the observations that were used, ids as in the input.

    Where intrinsics were unknown, a camera's focal length is the median over its images of those found.
    """
    o, tracks = problem.observations, problem.tracks
    reconstruction = pycolmap.Reconstruction()
    images = [o.images[k] for k in problem.images]
    for camera_id in sorted({image.camera_id for image in images}):
        camera = pycolmap.Camera(o.cameras[camera_id].todict())
        if not problem.calibrated:
            _set_focal(camera, problem, metric, camera_id)
        reconstruction.add_camera_with_trivial_rig(camera)
    for k, image in enumerate(images):
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(metric.R[k]), metric.t[k])
        reconstruction.add_image_with_trivial_frame(
            pycolmap.Image(name=image.name, keypoints=image.keypoints, camera_id=image.camera_id, image_id=image.image_id),
            pose,
        )
    image_ids = np.array([image.image_id for image in images])[tracks.cam]
    finite = np.isfinite(metric.xyz).all(axis=1)
    for j in np.flatnonzero(finite):
        span = range(tracks.ptr[j], tracks.ptr[j + 1])
        elements = [pycolmap.TrackElement(int(image_ids[a]), int(problem.keypoint[a])) for a in span]
        point = pycolmap.Point3D(xyz=metric.xyz[j], track=pycolmap.Track(elements))
        reconstruction.add_point3D_with_id(int(problem.landmark_ids[j]), point)
    reconstruction.update_point_3d_errors()
    return reconstruction


def _set_focal(camera: pycolmap.Camera, problem: Problem, metric: Metric, camera_id: int) -> None:
    """Write the focal length found; the distortion, never estimated here, becomes zero."""
    o = problem.observations
    mine = [k for k, image in enumerate(problem.images) if o.images[image].camera_id == camera_id]
    focal = float(np.median([metric.focal[k] * o.pixels[problem.images[k], 0] for k in mine]))
    params = np.zeros(len(camera.params))
    params[camera.focal_length_idxs()] = focal
    params[camera.principal_point_idxs()] = camera.width / 2.0, camera.height / 2.0
    camera.params = params.tolist()
