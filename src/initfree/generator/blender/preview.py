"""What Blender's panel shows of a configuration before anything is written: cameras, covisibility, figures, the scene."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import triu

from initfree.errors import InputError
from initfree.generator import scenes
from initfree.generator.config import ColmapModel, Config
from initfree.generator.dataset import Dataset
from initfree.generator.statistics import statistics
from initfree.generator.streams import stream


def preview(dataset: Dataset) -> dict[str, NDArray[Any]]:
    """Arrays for `numpy.savez`: of each image its name, camera to world matrix, (fx, fy, cx, cy) and size; pairs of images
    with the landmarks they share; the figures of dataset.json as JSON."""
    poses, cameras = dataset.poses, [dataset.cameras[k] for k in dataset.camera_of_image]
    world = np.tile(np.eye(4), (len(poses), 1, 1))
    world[:, :3, :3], world[:, :3, 3] = np.swapaxes(poses.rotations, 1, 2), poses.centres
    shared = triu(dataset.observations.covisibility(len(poses), len(dataset.landmarks)), k=1).tocoo()
    return {
        "names": np.array(dataset.names),
        "camera_to_world": world,
        "intrinsics": np.array([
            (c.focal_length_x, c.focal_length_y, c.principal_point_x, c.principal_point_y) for c in cameras
        ]),
        "size": np.array([(c.width, c.height) for c in cameras]),
        "pairs": np.stack([*shared.coords, shared.data], axis=1).astype(np.int64),
        "figures": np.array(json.dumps(statistics(dataset))),
    }  # fmt: skip


def surface(config: Config, seed: int) -> dict[str, NDArray[Any]]:
    """Arrays for `numpy.savez`: the scene's triangles with a colour for every corner, or, where it has none, its points."""
    if isinstance(config.scene, ColmapModel):
        raise InputError(f"{config.name} is an existing COLMAP model, which has no surface")
    found = scenes.build(config.scene, stream(seed, "scene"))
    arrays = {"vertices": found.vertices, "faces": found.faces, "colors": found.colors}
    if len(found.faces) or found.fixed is None:
        return arrays
    return {**arrays, "vertices": found.fixed.positions, "colors": found.fixed.colors}
