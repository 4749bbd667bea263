"""A model from arrays in memory, as networks that predict cameras (VGGT and others) and trackers leave them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pycolmap

from initfree.data.from_arrays import flattened, observations_from_tracks
from initfree.data.problem import build_problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.io.convert import assembled
from initfree.io.posed import rotations
from initfree.stages.euclidean import triangulate


def model_from_arrays(
    extrinsics: Any,
    intrinsics: Any,
    tracks: Any,
    visible: Any = None,
    *,
    points: Any = None,
    names: Sequence[str] | None = None,
    sizes: Any = None,
) -> pycolmap.Reconstruction:
    """Cameras and tracks of several images as a COLMAP model, to be checked or adjusted.

    Args:
        extrinsics: (images, 3, 4) or (images, 4, 4), [R | t] from world to camera, x right, y down, z forward.
        intrinsics: (images, 3, 3), or one K for all images.
        tracks: (images, points, 2) pixels; NaN is not seen.
        visible: (images, points) booleans; by default what is not NaN.
        points: (points, 3) in the world; by default triangulated from the tracks, three images each at least.
        names: Of the images.
        sizes: (width, height), or (images, 2); by default what the tracks span.
    """
    poses = _array("extrinsics", extrinsics, 3)
    if poses.shape[1:] not in ((3, 4), (4, 4)):
        raise InputError(f"extrinsics have shape {poses.shape}; expected (images, 3, 4) or (images, 4, 4)")
    image, landmark, xy = flattened(tracks, visible)
    labels = [f"image{k:05d}" for k in range(len(poses))] if names is None else [str(name) for name in names]
    images = len(np.asarray(tracks))
    if not len(labels) == len(poses) == images:
        raise InputError(f"{len(poses)} poses, {len(labels)} names, tracks in {images} images; expected as many of each")
    o = observations_from_tracks(image, landmark, xy, cameras=intrinsics, names=labels, sizes=sizes, intrinsics="known")
    R = rotations("extrinsics", poses[:, :3, :3], labels)
    if points is None:
        problem = build_problem(o)
        k, ids = problem.images, problem.landmark_ids
        cameras = Reconstruction.of_poses(problem.names, R[k], poses[k, :3, 3], ids, np.empty((0, 3)))
        xyz, _ = triangulate(problem, cameras)
    else:
        xyz = _array("points", points, 2)
        ids = np.intersect1d(np.flatnonzero(np.isfinite(xyz).all(axis=1)), landmark)
        xyz = xyz[ids]
    return assembled(o, Reconstruction.of_poses(tuple(labels), R, poses[:, :3, 3], ids, xyz))


def _array(name: str, values: Any, dimensions: int) -> Array:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != dimensions:
        raise InputError(f"{name} have shape {found.shape}; expected {dimensions} dimensions")
    return found
