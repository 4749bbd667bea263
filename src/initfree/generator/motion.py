"""Things that move while the images are taken: a second motion, which no camera has."""

import numpy as np
import pycolmap
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

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
    if not isinstance(scene, config.Parts) or not any(_moving(part) for part in scene.parts):
        return observations
    owner = np.full(len(landmarks), -1)
    for number, part in enumerate(scene.parts):
        if _moving(part):
            owner[(np.abs(landmarks - part.centre) <= 0.5 * np.array(part.size)).all(axis=1)] = number
    image, pixel = observations.image, observations.pixel.copy()
    for k, camera in enumerate(cameras):
        for number in np.unique(owner[owner >= 0]):
            rows = np.flatnonzero((image == k) & (owner[observations.landmark] == number))
            place = _at(scene.parts[number], landmarks[observations.landmark[rows]], moment[k])
            seen, visible = project(camera, place @ poses.rotations[k].T + poses.translations[k])
            pixel[rows[visible]] = seen[visible]
    return Projections(image, observations.landmark, pixel)


def _moving(part: config.Cluster) -> bool:
    return bool(np.any(part.moves)) or part.turns != 0.0


def _at(part: config.Cluster, places: Floats, moment: float) -> Floats:
    """Landmarks of a part at a moment."""
    turn = Rotation.from_euler("z", moment * part.turns, degrees=True)
    return turn.apply(places - part.centre) + part.centre + moment * np.array(part.moves)
