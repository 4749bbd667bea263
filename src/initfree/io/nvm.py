"""VisualSFM's .nvm (NVM_V3): cameras, points and measurements from the middle of the image, y down.

Its distortion undoes rather than does: m (1 + k |m|²) is the ideal point. To first order that is COLMAP's with -k.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from initfree.errors import InputError
from initfree.io.rows import centred_camera, observations_of_rows, size_around
from initfree.io.words import Words, begins_with, read_text
from initfree.observations import Intrinsics, Observations
from initfree.reconstruction import Reconstruction
from initfree.tracks import Array, Index

_HEAD = "NVM_V3"


def is_nvm(path: Path) -> bool:
    return path.is_file() and begins_with(path, _HEAD)


@dataclass(frozen=True)
class _Model:
    names: list[str]
    cameras: Array
    """(cameras, 10): f, quaternion w x y z, centre, radial distortion, 0"""
    xyz: Array
    image: Index
    landmark: Index
    uv: Array


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Focal lengths and distortion of the file are a guess to refine. Image ids and point ids count from 1."""
    model = _read(path)
    size = size_around(model.uv)
    cameras = [centred_camera(f, -k, 0.0, size) for f, k in model.cameras[:, [0, 8]]]
    return observations_of_rows(
        str(path), model.names, cameras, model.image, model.landmark + 1, model.uv + size / 2.0, intrinsics or "refine"
    )


def reconstruction_of(path: Path) -> Reconstruction:
    """The file's own cameras and points."""
    model = _read(path)
    quaternion = model.cameras[:, 1:5]
    if (np.linalg.norm(quaternion, axis=1) == 0.0).any():
        raise InputError(f"{path}: a camera's quaternion is zero; expected a rotation")
    R = Rotation.from_quat(quaternion[:, [1, 2, 3, 0]]).as_matrix()
    t = -(R @ model.cameras[:, 5:8, None])[:, :, 0]
    return Reconstruction.of_poses(tuple(model.names), R, t, np.arange(1, len(model.xyz) + 1), model.xyz)


def _read(path: Path) -> _Model:
    text = read_text(path)
    # What follows the version on its line (FixedK and so on) is not used.
    words = Words(path, "NVM file", text.split("\n", 1)[1] if "\n" in text else "")
    cameras = words.count("the number of cameras")
    names, table = [], np.empty((cameras, 10))
    for k in range(cameras):
        names.append(words.word("the name of an image"))
        table[k] = words.numbers(10, "f, quaternion, centre and distortion of a camera")
    points = words.count("the number of points")
    xyz, image, landmark, uv = np.empty((points, 3)), [], [], []
    for j in range(points):
        xyz[j] = words.numbers(6, "position and colour of the points")[:3]
        seen = words.count("the number of measurements of a point")
        views = words.numbers(4 * seen, "image, feature, x, y of the measurements").reshape(seen, 4)
        image.append(views[:, 0])
        landmark.append(np.full(seen, j))
        uv.append(views[:, 2:])
    image = np.concatenate([np.empty(0), *image]).astype(np.int64)
    if len(image) and not 0 <= image.min() <= image.max() < cameras:
        raise InputError(
            f"{path}: a measurement names image {image.max() if image.max() >= cameras else image.min()} of {cameras}"
        )
    landmark = np.concatenate([np.empty(0, dtype=np.int64), *landmark])
    return _Model(names, table, xyz, image, landmark, np.concatenate([np.empty((0, 2)), *uv]))
