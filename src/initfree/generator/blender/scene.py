"""Scenes and trajectories out of a `.blend` file."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.blender.client import run, scratch
from initfree.generator.scenes import Surface
from initfree.generator.scenes.mesh import with_vertices
from initfree.generator.trajectories import Poses, resample

Floats = NDArray[np.float64]


def blend(path: Path, sampling: str, two_sided: bool) -> Surface:
    """Blender's evaluated meshes at the file's current frame, in world coordinates, with their colours."""
    with scratch() as folder:
        run({"kind": "read", "blend": str(_file(path)), "object": None, "cameras": 0}, folder)
        with np.load(folder / "scene.npz") as arrays:
            surface = Surface(arrays["vertices"], arrays["faces"], arrays["colors"], two_sided=two_sided)
    if not len(surface.faces):
        raise InputError(f"{path} has no mesh that renders; expected a scene with surfaces")
    return with_vertices(surface) if sampling == "vertices" else surface


def path_of(scene: config.Scene, trajectory: config.BlenderPath) -> Poses | tuple[Floats, Floats]:
    """Poses of an animated camera, or positions and directions of travel along a curve."""
    if not isinstance(scene, config.Blend):
        raise InputError(f"trajectory.kind = blender needs a scene of kind blend; this one is a {scene.kind}")
    with scratch() as folder:
        job = {"object": trajectory.object, "cameras": trajectory.cameras}
        run({"kind": "read", "blend": str(_file(scene.path)), **job}, folder)
        with np.load(folder / "path.npz") as arrays:
            if "line" in arrays:
                line, closed = arrays["line"], bool(arrays["closed"])
                return resample(np.concatenate([line, line[:1]]) if closed else line, trajectory.cameras, closed)
            matrices = arrays["matrices"] @ np.diag([1.0, -1.0, -1.0, 1.0])
    # Cameras may carry the scale of a parent.
    rotations = matrices[:, :3, :3] / np.linalg.norm(matrices[:, :3, :3], axis=1, keepdims=True)
    rotations = np.swapaxes(rotations, 1, 2)
    return Poses(rotations, -np.einsum("nij,nj->ni", rotations, matrices[:, :3, 3]))


def _file(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"no file {path}; expected a .blend file")
    return path.resolve()
