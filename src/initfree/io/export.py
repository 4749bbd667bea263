"""A metric reconstruction as a COLMAP model."""

import numpy as np
import pycolmap

from initfree.problem import Problem
from initfree.recalibration import found_camera
from initfree.reconstruction import Reconstruction


def to_colmap(problem: Problem, reconstruction: Reconstruction) -> pycolmap.Reconstruction:
    """Solved images with all their keypoints, landmarks with the observations that were used, ids as in the input.

    Where intrinsics were unknown, cameras are COLMAP's RADIAL with the focal length and distortion found, the median over
    their images, and the principal point in the middle.
    """
    o, tracks = problem.observations, problem.tracks
    model = pycolmap.Reconstruction()
    images = [o.images[k] for k in problem.images]
    for camera_id in sorted({image.camera_id for image in images}):
        camera = o.cameras[camera_id]
        if not problem.calibrated:
            camera = found_camera(problem, reconstruction.focal, reconstruction.radial, camera_id)
        model.add_camera_with_trivial_rig(camera)
    for k, image in enumerate(images):
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(reconstruction.R[k]), reconstruction.t[k])
        model.add_image_with_trivial_frame(
            pycolmap.Image(name=image.name, keypoints=image.keypoints, camera_id=image.camera_id, image_id=image.image_id),
            pose,
        )
    image_ids = np.array([image.image_id for image in images])[tracks.cam]
    finite = np.isfinite(reconstruction.xyz).all(axis=1)
    for j in np.flatnonzero(finite):
        span = range(tracks.ptr[j], tracks.ptr[j + 1])
        elements = [pycolmap.TrackElement(int(image_ids[a]), int(problem.keypoint[a])) for a in span]
        point = pycolmap.Point3D(xyz=reconstruction.xyz[j], track=pycolmap.Track(elements))
        model.add_point3D_with_id(int(problem.landmark_ids[j]), point)
    model.update_point_3d_errors()
    return model
