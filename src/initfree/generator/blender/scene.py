"""Scenes and trajectories out of a `.blend` file."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.blender.client import run, scratch
from initfree.generator.scenes import Candidates, Surface
from initfree.generator.scenes.mesh import with_vertices
from initfree.generator.scenes.pointcloud import estimated_normals
from initfree.generator.trajectories import Poses, resample

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Contents:
    """What the worker read from a file."""

    meshes: dict[str, NDArray[Any]]
    """`worker_scene.evaluated_meshes`"""
    curves: dict[str, Floats]
    """name -> polyline (n, 3) in world coordinates; a closed one ends where it begins"""
    settings: str
    """TOML that the panel saved; empty where it saved none"""

    def chosen(self, objects: tuple[str, ...], owner: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of `owner` belong to these objects, or to instances that they make; all where none is named."""
        if not objects:
            return np.ones(len(owner), bool)
        names = self.meshes["names"].tolist()
        absent = next((name for name in objects if name not in names), None)
        if absent is not None:
            raise InputError(f"no object is named {absent}; expected one of {', '.join(names)}")
        return np.isin(owner, [names.index(name) for name in objects]).max(axis=1)


def contents(path: Path) -> Contents:
    """Everything that Blender can say about a file, read once as long as the file stays the same."""
    if not path.is_file():
        raise InputError(f"no file {path}; expected a .blend file")
    return _contents(path.resolve(), path.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _contents(path: Path, modified: int) -> Contents:
    with scratch() as folder:
        run({"kind": "read", "blend": str(path)}, folder)
        with np.load(folder / "scene.npz", allow_pickle=False) as meshes, np.load(folder / "curves.npz") as curves:
            return Contents(dict(meshes), dict(curves), (folder / "settings.toml").read_text(encoding="utf-8"))


def settings_of(path: Path) -> str:
    """The TOML that the panel saved in a file."""
    found = contents(path).settings
    if not found:
        raise InputError(
            f"{path} was not saved with the panel initfree; expected a file that was, or a TOML file whose scene.path is it"
        )
    return found


def blend(scene: config.Blend) -> Surface:
    """Blender's evaluated meshes at the file's current frame, in world coordinates, with their colours.

    Landmarks lie on the chosen objects. Points without faces are the landmarks where they were chosen by name, or where
    the scene has nothing else: lines that guide a modeller are no scene.
    """
    found = contents(scene.path)
    meshes = found.meshes
    surface = Surface(meshes["vertices"], meshes["faces"], meshes["colors"], two_sided=scene.two_sided)
    faces = found.chosen(scene.objects, meshes["owner"])
    points = found.chosen(scene.objects, meshes["point_owner"])
    if points.any() and (scene.objects or not len(surface.faces)):
        places = meshes["points"][points]
        landmarks = Candidates(places, estimated_normals(places), meshes["point_colors"][points])
        return replace(surface, fixed=landmarks, two_sided=True)
    if not faces.any():
        raise InputError(f"{scene.path} has no mesh that renders; expected a scene with surfaces")
    if scene.sampling == "vertices":
        some = replace(surface, faces=surface.faces[faces], colors=surface.colors[faces])
        return replace(surface, fixed=with_vertices(some).fixed)
    return surface if faces.all() else replace(surface, sampled=faces)


def path_of(scene: config.Scene, trajectory: config.BlenderPath) -> Poses | tuple[Floats, Floats]:
    """Poses of an animated camera, or positions and directions of travel along a curve."""
    if not isinstance(scene, config.Blend):
        raise InputError(f"trajectory.kind = blender needs a scene of kind blend; this one is a {scene.kind}")
    line = contents(scene.path).curves.get(trajectory.object)
    if line is not None:
        if len(line) < 2:
            raise InputError(f"the curve {trajectory.object} of {scene.path} has no length")
        return resample(line, trajectory.cameras, bool((line[0] == line[-1]).all()))
    with scratch() as folder:
        job = {"object": trajectory.object, "cameras": trajectory.cameras, "blend": str(scene.path.resolve())}
        run({"kind": "flight", **job}, folder)
        matrices = np.load(folder / "matrices.npy", allow_pickle=False) @ np.diag([1.0, -1.0, -1.0, 1.0])
    # Cameras may carry the scale of a parent.
    rotations = matrices[:, :3, :3] / np.linalg.norm(matrices[:, :3, :3], axis=1, keepdims=True)
    rotations = np.swapaxes(rotations, 1, 2)
    return Poses(rotations, -np.einsum("nij,nj->ni", rotations, matrices[:, :3, 3]))
