"""What Blender's panel shows of a configuration before anything is written: cameras, covisibility, figures."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import triu

from initfree.generator.dataset import Dataset
from initfree.generator.statistics import statistics


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
