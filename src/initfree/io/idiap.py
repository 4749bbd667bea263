"""Problems of Idiap's multi-camera calibration suite (ba_problem.txt): clicked points of fixed cameras.

A line `cameras points known observations of-known`, then `camera point x y` of points, then of known points, then 15 numbers
a camera (rotation vector, translation, fx, fy, cx, cy, k1, k2, k3, p1, p2), one a line; positions are not looked at.
"""

from pathlib import Path

import numpy as np

from initfree.data.files import beginning, read_text
from initfree.data.observations import Intrinsics, Observations
from initfree.errors import InputError
from initfree.io.keypoints import MOST_PIXELS
from initfree.io.rows import observations_of_array, opencv_camera, unknown_camera

_NUMBERS = 15
_FIRST_LINE = 200
"""bytes of it that are looked at"""
_MOST_POINTS = 10**9


def is_idiap(path: Path) -> bool:
    return path.is_file() and path.suffix == ".txt" and _counts(path) is not None


def _counts(path: Path) -> list[int] | None:
    words = beginning(path, _FIRST_LINE).partition(b"\n")[0].split()
    return [int(word) for word in words] if len(words) == 5 and all(word.isdigit() for word in words) else None


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Intrinsics are a guess to refine. Known points come after the others; a point is a place /NUMBER."""
    counts = _counts(path)
    assert counts is not None  # recognised
    cameras, points, _, free, known = counts
    lines = read_text(path, "replace").split("\n")
    least = 1 + free + known + _NUMBERS * cameras
    if len(lines) < least:
        raise InputError(f"{path} has {len(lines)} lines; expected at least {least}, as its first line says")
    try:
        rows = np.array([line.split() for line in lines[1 : 1 + free + known]], dtype=np.float64)
        numbers = np.array(lines[1 + free + known : least], dtype=np.float64).reshape(cameras, _NUMBERS)
    except ValueError as error:
        raise InputError(f"{path} has a line that is not as expected: {str(error).splitlines()[0]}") from error
    if rows.ndim != 2 or rows.shape[1] != 4 or not np.isfinite(rows).all() or np.abs(rows[:, 2:]).max() > MOST_PIXELS:
        raise InputError(
            f"{path}: an observation is not camera, point, x, y; expected four numbers a line, pixels of an image"
        )
    outside = (rows[:, :2] < 0.0) | (rows[:, :2] >= (cameras, _MOST_POINTS))
    if outside.any():
        camera, point = rows[np.flatnonzero(outside.any(axis=1))[0], :2]
        raise InputError(f"{path}: an observation is of camera {camera:g}, point {point:g}; it has {cameras} cameras")
    camera, point, xy = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64), rows[:, 2:]
    landmark = np.where(np.arange(len(rows)) < free, point, points + point) + 1
    kind = intrinsics or "refine"
    width, height = 1.0 + np.ceil(np.abs(xy).max(axis=0))
    models = [
        unknown_camera(width, height) if kind == "unknown" else _camera(path, int(width), int(height), one)
        for one in numbers
    ]
    moments = {int(k): ("", str(k - 1)) for k in np.unique(landmark)}
    names = [f"cam{k}" for k in range(cameras)]
    return observations_of_array(str(path), names, models, camera, landmark, xy, kind, moments)


def _camera(path: Path, width: int, height: int, numbers: np.ndarray):
    fx, fy, cx, cy, k1, k2, k3, p1, p2 = numbers[6:]
    K = np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])
    return opencv_camera(str(path), width, height, K, np.array([k1, k2, p1, p2, k3]))
