"""Synthetic scenes as COLMAP models and BAL files."""

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation
from synthetic import Scene

CAMERA_PARAMS: dict[str, list[float]] = {
    "SIMPLE_PINHOLE": [420.0, 320.0, 240.0],
    "PINHOLE": [420.0, 430.0, 320.0, 240.0],
    "SIMPLE_RADIAL": [420.0, 320.0, 240.0, -0.05],
    "RADIAL": [420.0, 320.0, 240.0, -0.05, 0.01],
    "OPENCV": [420.0, 425.0, 320.0, 240.0, -0.05, 0.01, 0.001, -0.001],
    "OPENCV_FISHEYE": [420.0, 425.0, 320.0, 240.0, 0.01, 0.002, 0.0, 0.0],
    "FULL_OPENCV": [420.0, 425.0, 320.0, 240.0, -0.05, 0.01, 0.001, -0.001, 0.0, 0.0, 0.0, 0.0],
    "SIMPLE_RADIAL_FISHEYE": [420.0, 320.0, 240.0, 0.01],
    "RADIAL_FISHEYE": [420.0, 320.0, 240.0, 0.01, 0.002],
    "THIN_PRISM_FISHEYE": [420.0, 425.0, 320.0, 240.0, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
}


def to_reconstruction(
    scene: Scene, camera_model: str = "SIMPLE_RADIAL", extra_keypoints: int = 2, first_id: int = 7
) -> pycolmap.Reconstruction:
    """The scene as a model; every image has keypoints without landmark in front, and ids do not begin at one."""
    model = pycolmap.Reconstruction()
    camera = pycolmap.Camera(camera_id=3, model=camera_model, width=640, height=480, params=CAMERA_PARAMS[camera_model])
    model.add_camera_with_trivial_rig(camera)
    rank = np.empty(scene.tracks.observations, dtype=np.int64)
    for k in range(scene.tracks.cameras):
        here = np.flatnonzero(scene.tracks.cam == k)
        rank[here] = extra_keypoints + np.arange(len(here))
        rays = np.column_stack([scene.m[here], np.ones(len(here))])
        unit = np.array([camera.img_from_cam(ray) for ray in rays])
        keypoints = np.concatenate([np.full((extra_keypoints, 2), 5.5), unit])
        translation = -scene.R[k] @ scene.centres[k]
        model.add_image_with_trivial_frame(
            pycolmap.Image(name=f"image{k:03d}.jpg", keypoints=keypoints, camera_id=3, image_id=first_id + k),
            pycolmap.Rigid3d(pycolmap.Rotation3d(scene.R[k]), translation),
        )
    for j in range(scene.tracks.landmarks):
        track = [
            pycolmap.TrackElement(first_id + int(scene.tracks.cam[a]), int(rank[a]))
            for a in range(scene.tracks.ptr[j], scene.tracks.ptr[j + 1])
        ]
        model.add_point3D_with_id(100 + 2 * j, pycolmap.Point3D(xyz=scene.landmarks[j], track=pycolmap.Track(track)))
    return model


def to_bal(scene: Scene, focal: float = 500.0) -> str:
    """The scene as a BAL file: cameras that look down -z, y up, no distortion."""
    turn = np.diag([1.0, -1.0, -1.0])
    lines = [f"{scene.tracks.cameras} {scene.tracks.landmarks} {scene.tracks.observations}"]
    for a in range(scene.tracks.observations):
        u, v = focal * scene.m[a]
        lines.append(f"{scene.tracks.cam[a]} {scene.tracks.landmark[a]} {u:.17g} {-v:.17g}")
    for k in range(scene.tracks.cameras):
        R = turn @ scene.R[k]
        values = [*Rotation.from_matrix(R).as_rotvec(), *(-R @ scene.centres[k]), focal, 0.0, 0.0]
        lines += [f"{value:.17g}" for value in values]
    lines += [f"{value:.17g}" for value in scene.landmarks.reshape(-1)]
    return "\n".join(lines) + "\n"
