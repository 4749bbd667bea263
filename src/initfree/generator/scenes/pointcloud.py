"""A point cloud as a surface: its points are the landmarks, surfels or a meshed surface hide them."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from numpy.typing import NDArray
from scipy.spatial import KDTree

from initfree.errors import InputError
from initfree.generator.scenes.mesh import mesh, read_geometry
from initfree.generator.scenes.surface import Candidates, Surface

Floats = NDArray[np.float64]


def pointcloud(path: Path, occlusion: str, surfel_size: float, spread: float | None) -> Surface:
    """Read the cloud; normals from the file, or the direction of least spread among 12 neighbours."""
    positions, normals, colors = _read(path)
    if len(positions) < 13:
        raise InputError(f"point cloud {path} has {len(positions)} points; expected at least 13")
    if spread is not None:
        positions = positions * (spread / np.sqrt(positions.var(axis=0).sum()))
    spacing = float(np.median(KDTree(positions).query(positions, k=2)[0][:, 1]))
    oriented = normals is not None
    if normals is None:
        normals = estimated_normals(positions)
    landmarks = Candidates(positions, normals, colors)
    grey = np.zeros((0, 3, 3), np.uint8)
    if occlusion == "none":
        return Surface(np.zeros((0, 3)), np.zeros((0, 3), np.int64), grey, not oriented, fixed=landmarks)
    if occlusion == "poisson":
        if not oriented:
            raise InputError(f"point cloud {path} has no normals, which occlusion = poisson needs; use surfels")
        hull = _poisson(positions, normals, spacing)
        # The reconstructed surface runs within a few spacings of the points, on either side.
        return Surface(hull.vertices, hull.faces, hull.colors, not oriented, fixed=landmarks, margin=3 * spacing)
    side = surfel_size * spacing
    vertices, faces = _surfels(positions, normals, side)
    corner_colors = np.repeat(np.broadcast_to(colors[:, None], (len(colors), 3, 3)), 2, axis=0)
    # A landmark's own surfel and those of its neighbours must not hide it.
    return Surface(vertices, faces, corner_colors, not oriented, fixed=landmarks, margin=3 * side)


def _read(path: Path) -> tuple[Floats, Floats | None, NDArray[np.uint8]]:
    if path.suffix.lower() == ".xyz" and path.is_file():
        try:
            table = np.loadtxt(path, ndmin=2)
        except ValueError as error:
            raise InputError(f"cannot read {path} as x y z [nx ny nz] lines: {error}") from error
        positions = table[:, :3] if table.shape[1] >= 3 else np.zeros((0, 3))
        normals = table[:, 3:6] if table.shape[1] >= 6 else None
        colors = np.full((len(table), 3), 180, np.uint8)
    else:
        cloud = read_geometry(path)
        if not isinstance(cloud, trimesh.PointCloud | trimesh.Trimesh):
            raise InputError(f"{path} is not one point cloud but a {type(cloud).__name__}")
        positions = np.array(cloud.vertices, float)
        normals = _ply_normals(cloud)
        visual: Any = cloud.visual
        found = np.asarray(cloud.colors if isinstance(cloud, trimesh.PointCloud) else visual.vertex_colors)
        colors = np.full((len(positions), 3), 180, np.uint8)
        if found.shape == (len(positions), 4):
            colors = np.ascontiguousarray(found[:, :3], np.uint8)
    if not len(positions) or not np.isfinite(positions).all():
        raise InputError(f"point cloud {path} has no points, or points that are not finite numbers")
    if normals is not None:
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        normals = normals / lengths if (lengths > 0).all() else None
    return positions, normals, colors


def _ply_normals(cloud: trimesh.PointCloud | trimesh.Trimesh) -> Floats | None:
    vertex = cloud.metadata.get("_ply_raw", {}).get("vertex", {}).get("data")
    names = getattr(getattr(vertex, "dtype", None), "names", None) or ()
    if vertex is None or not {"nx", "ny", "nz"} <= set(names):
        return None
    return np.stack([np.asarray(vertex[axis], float).ravel() for axis in ("nx", "ny", "nz")], axis=1)


def estimated_normals(positions: Floats) -> Floats:
    """Of each point, the direction in which it and its (at most) 12 nearest neighbours spread least."""
    neighbourhoods = positions[KDTree(positions).query(positions, k=min(13, len(positions)))[1].reshape(len(positions), -1)]
    centred = neighbourhoods - neighbourhoods.mean(axis=1, keepdims=True)
    return np.linalg.eigh(np.einsum("nki,nkj->nij", centred, centred))[1][:, :, 0]


def _surfels(positions: Floats, normals: Floats, side: float) -> tuple[Floats, NDArray[np.int64]]:
    helper = np.where(np.abs(normals[:, 2:]) < 0.9, [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    u = np.cross(helper, normals)
    u *= side / 2 / np.linalg.norm(u, axis=1, keepdims=True)
    v = np.cross(normals, u)
    corners = np.stack([positions - u - v, positions + u - v, positions + u + v, positions - u + v], axis=1)
    first = 4 * np.arange(len(positions))[:, None, None]
    faces = (first + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3)
    return corners.reshape(-1, 3), faces


def _poisson(positions: Floats, normals: Floats, spacing: float) -> Surface:
    import pycolmap

    with tempfile.TemporaryDirectory() as scratch:
        source, result = Path(scratch, "cloud.ply"), Path(scratch, "mesh.ply")
        columns = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("nx", "f4"), ("ny", "f4"), ("nz", "f4")]
        columns += [("red", "u1"), ("green", "u1"), ("blue", "u1")]
        table = np.zeros(len(positions), np.dtype([(name, f"<{kind}") for name, kind in columns]))
        for k, axis in enumerate("xyz"):
            table[axis], table[f"n{axis}"] = positions[:, k], normals[:, k]
        header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(table)}"]
        header += [f"property {'uchar' if kind == 'u1' else 'float'} {name}" for name, kind in columns]
        source.write_bytes("\n".join([*header, "end_header\n"]).encode() + table.tobytes())
        options = pycolmap.PoissonMeshingOptions()
        # One cell of the octree a point spacing wide; COLMAP's trimming would take thin clouds away whole.
        options.depth = int(np.clip(np.ceil(np.log2(np.ptp(positions, axis=0).max() / spacing)), 5, 11))
        options.trim = 0.0
        pycolmap.poisson_meshing(source, result, options)
        return mesh(result, "area", False, None)
