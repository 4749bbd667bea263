"""Explicit poses from files."""

from pathlib import Path

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

from initfree.errors import InputError
from initfree.generator.trajectories import Poses
from initfree.io import colmap


def read_poses(path: Path) -> Poses:
    """A COLMAP model's directory (images by name) or a TUM trajectory file."""
    if path.is_dir():
        model = read_model(path)
        images = sorted((image for image in model.images.values() if image.has_pose), key=lambda image: image.name)
        if not images:
            raise InputError(f"COLMAP model {path} has no image with a pose")
        matrices = np.stack([image.cam_from_world().matrix() for image in images])
        return Poses(matrices[:, :, :3], matrices[:, :, 3])
    if not path.is_file():
        raise InputError(f"no file or directory {path}; expected a TUM trajectory or a COLMAP model's directory")
    try:
        table = np.loadtxt(path, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path} as a TUM trajectory: {error}") from error
    if table.shape[1] != 8 or not len(table) or not np.isfinite(table).all():
        raise InputError(f"{path} has lines of {table.shape[1]} numbers; expected time tx ty tz qx qy qz qw")
    if (np.linalg.norm(table[:, 4:], axis=1) < 1e-6).any():
        raise InputError(f"{path} has a quaternion of zeros; expected time tx ty tz qx qy qz qw")
    rotations = Rotation.from_quat(table[:, 4:]).inv().as_matrix()
    return Poses(rotations, -np.einsum("nij,nj->ni", rotations, table[:, 1:4]))


def read_model(path: Path) -> pycolmap.Reconstruction:
    """The COLMAP model in a directory, or in its sparse or sparse/0."""
    directory = colmap.find_model(path)
    if directory is None:
        raise InputError(f"no COLMAP model in {path}; expected cameras, images and points3D as .bin or .txt")
    return colmap.read_model(directory)
