"""Any mesh file that trimesh reads, as a surface."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

from initfree.errors import InputError
from initfree.generator.scenes.surface import Candidates, Surface


def mesh(path: Path, sampling: str, two_sided: bool, spread: float | None) -> Surface:
    """The triangles of all geometries in the file, in world coordinates, with their colours."""
    loaded = read_geometry(path)
    geometries = [loaded] if not isinstance(loaded, trimesh.Scene) else loaded.dump(concatenate=False)
    meshes = [part for part in geometries if isinstance(part, trimesh.Trimesh) and len(part.faces)]
    if not meshes:
        raise InputError(f"mesh {path} has no triangles (a point cloud? then the scene kind is pointcloud)")
    merged: Any = meshes[0] if len(meshes) == 1 else trimesh.util.concatenate(meshes)
    vertices, faces = np.array(merged.vertices, float), np.array(merged.faces, np.int64)
    if not np.isfinite(vertices).all():
        raise InputError(f"mesh {path} has vertices that are not finite numbers")
    area = float(merged.area)
    if not area > 0:
        raise InputError(f"mesh {path} has no area: all its {len(faces)} triangles are degenerate")
    scale = 1.0
    if spread is not None:
        weights = merged.area_faces / area
        middles = vertices[faces].mean(axis=1)
        offset = middles - weights @ middles
        scale = spread / float(np.sqrt(weights @ (offset**2).sum(axis=1)))
    surface = Surface(vertices * scale, faces, _vertex_colors(merged)[faces], two_sided=two_sided)
    return with_vertices(surface) if sampling == "vertices" else surface


def with_vertices(surface: Surface) -> Surface:
    """The surface with its vertices for landmarks: coloured as at one of their corners."""
    used, corner = np.unique(surface.faces, return_index=True)
    normals = trimesh.Trimesh(surface.vertices, surface.faces, process=False).vertex_normals
    colors = surface.colors.reshape(-1, 3)[corner]
    return replace(surface, fixed=Candidates(surface.vertices[used], np.array(normals, float)[used], colors))


def read_geometry(path: Path) -> object:
    """trimesh's reading of a file, with one kind of error for all the ways a file can be bad."""
    if not path.is_file():
        raise InputError(f"no file {path}; expected a mesh or a point cloud (PLY, OBJ, GLB, STL, XYZ)")
    try:
        return trimesh.load(path, process=False)
    except Exception as error:
        # Every reader of trimesh raises its own kind: struct.error, KeyError, IndexError, ValueError, ...
        raise InputError(f"cannot read {path} as a mesh or point cloud: {error or type(error).__name__}") from error


def _vertex_colors(part: trimesh.Trimesh) -> np.ndarray:
    visual: Any = part.visual
    if visual.kind is None:
        return np.full((len(part.vertices), 3), 180, np.uint8)
    if visual.kind == "texture":
        visual = visual.to_color()
    colors = np.asarray(visual.vertex_colors)
    return np.ascontiguousarray(colors[:, :3], np.uint8)
