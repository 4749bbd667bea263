"""Things that move while the images are taken: a second motion, which no camera has."""

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.generator import config
from initfree.generator.cameras import project
from initfree.generator.projections import Projections
from initfree.generator.trajectories import Poses

Floats = NDArray[np.float64]


def in_motion(
    scene: config.Scene,
    observations: Projections,
    landmarks: Floats,
    poses: Poses,
    cameras: list[pycolmap.Camera],
    moment: Floats,
) -> Projections:
    """The observations, those of parts that move where they are at the `moment` of each image (0 the first, 1 the last).

    What has left an image by then stays where that image would have seen it at first.
    """
    if not isinstance(scene, config.Parts) or not any(np.any(part.moves) for part in scene.parts):
        return observations
    way = np.zeros_like(landmarks)
    for part in scene.parts:
        if np.any(part.moves):
            inside = (np.abs(landmarks - part.centre) <= 0.5 * np.array(part.size)).all(axis=1)
            way[inside] = part.moves
    image, pixel = observations.image, observations.pixel.copy()
    for k, camera in enumerate(cameras):
        rows = np.flatnonzero((image == k) & way[observations.landmark].any(axis=1))
        place = landmarks[observations.landmark[rows]] + moment[k] * way[observations.landmark[rows]]
        seen, visible = project(camera, place @ poses.rotations[k].T + poses.translations[k])
        pixel[rows[visible]] = seen[visible]
    return Projections(image, observations.landmark, pixel)
