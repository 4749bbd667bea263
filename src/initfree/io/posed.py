"""Models that have poses, and observations only where other files bring them: cameras and images without keypoints."""

from collections.abc import Sequence

import numpy as np
import pycolmap

from initfree.data.observations import Intrinsics, Observations
from initfree.data.tracks import Array, Index
from initfree.errors import InputError
from initfree.io.rows import observations_of_rows

_NOTHING: Index = np.empty(0, dtype=np.int64)
_LEAST_SIZE = 1e-6
"""of a matrix that is a rotation times a scale"""
_ROUNDING = 1e-2
_LEAST_DETERMINANT = 0.5
"""of a rotation, whose determinant is one: less is none, and no rounding either"""


def observations_of_poses(
    source: str, names: Sequence[str], cameras: Sequence[pycolmap.Camera], camera_of: Sequence[int], intrinsics: Intrinsics
) -> Observations:
    """Images and cameras, and no observation at all."""
    nothing = np.empty((0, 2))
    return observations_of_rows(source, list(names), list(cameras), _NOTHING, _NOTHING, nothing, intrinsics, list(camera_of))


def rotations(source: object, R: Array, names: Sequence[str]) -> Array:
    """The same matrices, (n, 3, 3), each near a rotation, or an error that names the image."""
    finite = np.isfinite(R).all(axis=(1, 2))
    size = np.cbrt(np.abs(np.linalg.det(np.where(finite[:, None, None], R, 0.0))))
    sound = (size > _LEAST_SIZE) & (size < 1.0 / _LEAST_SIZE)
    unit = np.where(sound[:, None, None], R, np.eye(3)) / np.where(sound, size, 1.0)[:, None, None]
    off = np.abs(unit @ unit.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0.0)
    bad = ~sound | (np.linalg.det(unit) < _LEAST_DETERMINANT) | (off > _ROUNDING)
    if bad.any():
        k = int(np.argmax(bad))
        raise InputError(f"{source}: image {names[k]!r} has {R[k].tolist()} for a rotation; expected one")
    return unit
