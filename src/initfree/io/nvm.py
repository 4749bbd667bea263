"""VisualSFM's .nvm (NVM_V3): cameras, points and measurements from the middle of the image, y down.

Its distortion undoes rather than does: m (1 + k |m|²) is the ideal point. To first order that is COLMAP's with -k.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from initfree.data.files import beginning, read_text
from initfree.data.observations import Intrinsics, Observations
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.io.rows import centred_camera, observations_of_rows, size_around
from initfree.io.words import Views, Words, read_views

_HEAD = "NVM_V3"


def is_nvm(path: Path) -> bool:
    return beginning(path, len(_HEAD)) == _HEAD.encode()


_LARGEST = 1e100
"""of a quaternion: beyond it its square is infinite"""


@dataclass(frozen=True)
class _Model:
    names: list[str]
    cameras: Array
    """(cameras, 10): f, quaternion w x y z, centre, radial distortion, 0"""
    views: Views


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Focal lengths and distortion of the file are a guess to refine. Image ids and point ids count from 1."""
    model = _read(path)
    views = model.views
    size = size_around(str(path), views.uv)
    cameras = [centred_camera(f, -k, 0.0, size) for f, k in model.cameras[:, [0, 8]]]
    return observations_of_rows(
        str(path), model.names, cameras, views.image, views.landmark + 1, views.uv + size / 2.0, intrinsics or "refine"
    )


def reconstruction_of(path: Path) -> Reconstruction:
    """The file's own cameras and points."""
    model = _read(path)
    quaternion = model.cameras[:, 1:5]
    largest = np.abs(quaternion).max(axis=1, initial=0.0)
    if not ((largest > 0.0) & (largest < _LARGEST)).all():
        raise InputError(f"{path}: a camera's quaternion is zero or beyond all numbers; expected a rotation")
    R = Rotation.from_quat(quaternion[:, [1, 2, 3, 0]]).as_matrix()
    t = -(R @ model.cameras[:, 5:8, None])[:, :, 0]
    return Reconstruction.of_poses(tuple(model.names), R, t, np.arange(1, len(model.views.xyz) + 1), model.views.xyz)


def _read(path: Path) -> _Model:
    text = read_text(path)
    # What follows the version on its line (FixedK and so on) is not used.
    words = Words(path, "NVM file", text.split("\n", 1)[1] if "\n" in text else "")
    cameras = words.count("the number of cameras")
    names, table = [], np.empty((cameras, 10))
    for k in range(cameras):
        names.append(words.word("the name of an image"))
        table[k] = words.numbers(10, "f, quaternion, centre and distortion of a camera")
    return _Model(names, table, read_views(words, words.count("the number of points"), cameras))
