"""Folders of MultiCamSelfCal (Svoboda, Martinec and Pajdla 2005): one moving light seen by many cameras.

points.dat has three rows a camera (x, y, 1; a column a frame), IdMat.dat one (seen or not), Res.dat width and height.
Files BASENAMEn.rad hold K and four distortion coefficients of camera n; camera_order.txt holds names.
"""

import re
from pathlib import Path

import numpy as np

from initfree.data.files import read_text
from initfree.data.observations import LARGEST_IMAGE, Intrinsics, Observations
from initfree.data.tracks import Array
from initfree.errors import InputError, in_words
from initfree.io.rows import observations_of_array, opencv_camera, unknown_camera


def is_multicamselfcal(path: Path) -> bool:
    return path.is_dir() and (path / "points.dat").is_file() and (path / "IdMat.dat").is_file()


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """A landmark is the light in a frame. Intrinsics of .rad files are a guess to refine; without them, unknown."""
    points, seen = _matrix(path / "points.dat"), _matrix(path / "IdMat.dat")
    cameras, frames = seen.shape
    if points.shape != (3 * cameras, frames):
        raise InputError(
            f"{path / 'points.dat'} has {points.shape[0]} rows and {points.shape[1]} columns; expected 3 x {cameras} rows "
            f"and {frames} columns, because IdMat.dat has {cameras} cameras"
        )
    if not np.isin(seen, (0.0, 1.0)).all():
        raise InputError(f"{path / 'IdMat.dat'} has a {seen[~np.isin(seen, (0.0, 1.0))][0]:g}; expected zeros and ones")
    size = _matrix(path / "Res.dat") if (path / "Res.dat").is_file() else None
    xyz = points.reshape(cameras, 3, frames)
    image, frame = np.nonzero(seen)
    xy = xyz[image, :2, frame]
    if size is None:
        size = np.tile(np.ceil(np.abs(xy[np.isfinite(xy).all(axis=1)]).max(axis=0, initial=1.0)) + 1.0, (cameras, 1))
    if size.shape != (cameras, 2):
        raise InputError(f"{path / 'Res.dat'} has shape {size.shape}; expected width and height of {cameras} cameras")
    if not ((size >= 1) & (size <= LARGEST_IMAGE)).all():
        odd = size[~((size >= 1) & (size <= LARGEST_IMAGE))][0]
        raise InputError(f"{path / 'Res.dat'} has images {odd:g} px wide or high; expected 1 to {LARGEST_IMAGE:g}")
    rad = _rad_files(path)
    given = len(rad) == cameras and cameras > 0
    if intrinsics in ("known", "refine") and not given:
        raise InputError(
            f"{path} has {len(rad)} .rad files for {cameras} cameras; expected --intrinsics unknown, not {intrinsics}"
        )
    kind = intrinsics or ("refine" if given else "unknown")
    models = [
        opencv_camera(str(rad[k]), int(w), int(h), *_read_rad(rad[k])) if given else unknown_camera(w, h)
        for k, (w, h) in enumerate(size)
    ]
    moments = {k: (str(k), "") for k in range(1, frames + 1)}
    return observations_of_array(str(path), _names(path, cameras), models, image, frame + 1, xy, kind, moments)


def _matrix(path: Path) -> Array:
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{path} is empty; expected a matrix of numbers")
    try:
        return np.loadtxt(text.split("\n"), ndmin=2)
    except ValueError as error:
        raise InputError(f"{path} cannot be read as a matrix: {in_words(error)}") from error


def _rad_files(path: Path) -> list[Path]:
    """In the order of the cameras' numbers."""
    numbered = [(match, file) for file in path.glob("*.rad") if (match := re.search(r"(\d+)\.rad$", file.name))]
    return [file for _, file in sorted(numbered, key=lambda pair: int(pair[0][1]))]


def _read_rad(path: Path) -> tuple[Array, Array]:
    values = dict(re.findall(r"(\w+)\s*=\s*(\S+)", read_text(path, "replace")))
    try:
        K = np.array([[float(values[f"K{i}{j}"]) for j in (1, 2, 3)] for i in (1, 2, 3)])
        return K, np.array([float(values[f"kc{i}"]) for i in (1, 2, 3, 4)])
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} lacks {error}; expected K11 ... K33 and kc1 ... kc4") from error


def _names(path: Path, cameras: int) -> list[str]:
    file = path / "camera_order.txt"
    text = read_text(file, "replace") if file.is_file() else ""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    names = lines if len(lines) == cameras else text.split()
    return names if len(names) == cameras and len(set(names)) == cameras else [f"cam{k + 1}" for k in range(cameras)]
