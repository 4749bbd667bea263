"""A generated dataset in memory: the truth, and what a solver is given."""

from dataclasses import dataclass

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.generator.adversity import given_cameras
from initfree.generator.config import Adversity, Config
from initfree.generator.projections import Projections
from initfree.generator.scenes import Surface
from initfree.generator.trajectories import Poses

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Dataset:
    """Image i is COLMAP image i + 1, landmark j is COLMAP point j + 1, in every file that is written.

    `observations` are exact; `noisy` holds the same keypoints, row by row, with pixel noise and wrong
    landmarks; it equals them without degradation.
    """

    config: Config
    seed: int
    names: list[str]
    cameras: list[pycolmap.Camera]
    camera_of_image: NDArray[np.int64]
    """Index into `cameras` for every image."""
    poses: Poses
    landmarks: Floats
    colors: NDArray[np.uint8]
    observations: Projections
    noisy: Projections
    initial_poses: Poses
    """Where classical bundle adjustment starts: the truth plus the rotation and translation noise."""
    initial_landmarks: Floats
    surface: Surface | None = None
    """The scene's triangles, for rendering; None for an existing COLMAP model."""

    @property
    def degraded(self) -> bool:
        """Whether anything but the density was degraded."""
        degradation = self.config.degradation
        spoilt = any(vars(degradation)[name] > 0 for name in degradation.__dataclass_fields__)
        return spoilt or self.config.adversity != Adversity()

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which noisy observations belong to another landmark than they claim."""
        return self.noisy.landmark != self.observations.landmark

    def to_colmap(self, noisy: bool = False) -> pycolmap.Reconstruction:
        """The truth as a COLMAP model, or the noisy observations with the initial values.

        Point2D k of an image is the same keypoint in both. Merged landmarks are absent from the noisy model.
        """
        observations = self.noisy if noisy else self.observations
        poses = self.initial_poses if noisy else self.poses
        landmarks = self.initial_landmarks if noisy else self.landmarks
        given = self.config.adversity.given if noisy else "true"
        cameras = given_cameras(self.cameras, self.camera_of_image, given)
        model = pycolmap.Reconstruction()
        for camera in {camera.camera_id: camera for camera in cameras}.values():
            model.add_camera_with_trivial_rig(camera)
        images = len(self.names)
        by_image = np.argsort(observations.image, kind="stable")
        starts = np.concatenate([[0], np.cumsum(observations.per_image(images))])
        for i, name in enumerate(self.names):
            image = pycolmap.Image(
                name=name,
                keypoints=observations.pixel[by_image[starts[i] : starts[i + 1]]],
                camera_id=cameras[i].camera_id,
                image_id=i + 1,
            )
            pose = np.column_stack([poses.rotations[i], poses.translations[i]])
            model.add_image_with_trivial_frame(image, pycolmap.Rigid3d(pose))
        self._add_points(model, observations, landmarks)
        return model

    def _add_points(self, model: pycolmap.Reconstruction, observations: Projections, landmarks: Floats) -> None:
        order = np.lexsort((observations.image, observations.landmark))
        starts = np.concatenate([[0], np.cumsum(observations.track_lengths(len(landmarks)))]).tolist()
        image_ids = (observations.image[order] + 1).tolist()
        keypoints = observations.keypoint(len(self.names))[order].tolist()
        for j in range(len(landmarks)):
            rows = range(starts[j], starts[j + 1])
            if not rows:
                continue
            point = pycolmap.Point3D()
            point.xyz, point.color = landmarks[j], self.colors[j]
            point.track = pycolmap.Track([pycolmap.TrackElement(image_ids[k], keypoints[k]) for k in rows])
            model.add_point3D_with_id(j + 1, point)
