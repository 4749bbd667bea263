"""A reconstruction as arrays, for programs that draw it themselves: Blender's panel."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from initfree.drawing.palette import coloured
from initfree.drawing.scene import SOURCE, Model
from initfree.viewer.reading import aligned, read_model_of, read_scene


def scene_arrays(directory: Path, truth: Path | None, most: int) -> dict[str, NDArray[Any]]:
    """Arrays for `numpy.savez`, in the world of the truth where one is given.

    Of each image its name, camera to world matrix and half width and height over the focal length, whether it fails the
    certificate; of each landmark its place and its colour, by height where it has none of its own; the verdict.
    """
    scene = read_scene(directory, most=most)
    model: Model = scene.model if truth is None else aligned(scene.model, read_model_of(truth))
    world = np.tile(np.eye(4), (len(model.images), 1, 1))
    world[:, :3, :3], world[:, :3, 3] = np.swapaxes(model.R, 1, 2), model.centres
    failing = np.zeros(len(model.images), bool)
    failing[scene.failing] = True
    colours = {one.name: one.rgb for one in scene.colourings}
    height = model.xyz[:, 2]
    low, high = np.quantile(height, (0.02, 0.98)) if len(height) else (0.0, 1.0)
    return {
        "names": np.array(model.images),
        "camera_to_world": world,
        "shape": scene.shape,
        "failing": failing,
        "xyz": model.xyz,
        "rgb": colours[SOURCE] if SOURCE in colours else coloured(height, low, high),
        "accepted": np.array({True: 1, False: 0, None: -1}[scene.accepted]),
        "verdict": np.array(scene.verdict),
    }
