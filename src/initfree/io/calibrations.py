"""Calibrations of other programs beside the detections of their cameras: TOML of anipose, Pose2Sim and FreeMoCap (a table
for each camera, with name, size, matrix, distortions), and YAML of OpenCV (NAME.yml or NAME.yaml for each camera)."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from initfree.data.files import read_text, read_toml
from initfree.data.observations import LARGEST_IMAGE
from initfree.errors import InputError
from initfree.io.rows import opencv_camera

_KEYS = {
    "width": ("image_width", "width", "imageWidth"),
    "height": ("image_height", "height", "imageHeight"),
    "matrix": ("camera_matrix", "cameraMatrix", "K", "intrinsics"),
    "distortions": ("distortion_coefficients", "distCoeffs", "dist_coeffs", "D"),
}
"""what OpenCV's sample, ROS and others call the entries of a YAML"""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def calibrations_beside(folder: Path, names: Sequence[str]) -> list[pycolmap.Camera] | None:
    """A camera of each name; None where the folder has no calibration."""
    found = _tables(folder) or _sheets(folder, names)
    if not found:
        return None
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"the calibration in {folder} has no camera {missing[0]!r}; it has {', '.join(sorted(found))}")
    return [_camera(*found[name], name) for name in names]


def _tables(folder: Path) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """By name, the file and table of each camera in a TOML of the folder."""
    files: dict[Path, dict[str, Mapping[str, Any]]] = {}
    for path in sorted(folder.glob("*.toml")):
        tables = {key: one for key, one in read_toml(path).items() if isinstance(one, dict) and "matrix" in one}
        if tables:
            files[path] = {str(one.get("name", key)): one for key, one in tables.items()}
    if len(files) > 1:
        first, second, *_ = files
        raise InputError(f"{folder} has two calibrations, {first.name} and {second.name}; expected one")
    return {name: (path, table) for path, tables in files.items() for name, table in tables.items()}


def _sheets(folder: Path, names: Sequence[str]) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """The same of OpenCV's YAML, a file a camera."""
    paths = [(name, folder / f"{name}{ending}") for name in names for ending in (".yaml", ".yml")]
    return {name: (path, _sheet(path)) for name, path in paths if path.is_file()}


def _sheet(path: Path) -> dict[str, Any]:
    """Width, height, matrix and distortions of OpenCV's YAML, of which no more is read: numbers after the names."""
    text = read_text(path, "replace")
    found: dict[str, Any] = {}
    for key, spellings in _KEYS.items():
        match = re.search(rf"^(?:{'|'.join(spellings)})\s*:(.*(?:\n[ \t]+.*)*)", text, re.MULTILINE)
        if match is not None:
            within = re.search(r"\[([^\]]*)\]", match[1][match[1].find("data") + 1 :])
            found[key] = [float(number) for number in _NUMBER.findall(within[1] if within else match[1])]
    about: dict[str, Any] = {"size": [*found.get("width", []), *found.get("height", [])]}
    about |= {key: found[key] for key in ("matrix", "distortions") if key in found}
    return about | {"fisheye": bool(re.search(r"equidistant|fisheye", text))}


def _camera(path: Path, table: Mapping[str, Any], name: str) -> pycolmap.Camera:
    values = {}
    for key in ("size", "matrix", "distortions"):
        try:
            values[key] = np.asarray(table.get(key, []), dtype=np.float64)
        except (ValueError, TypeError, OverflowError) as error:
            raise InputError(f"{path}: {key} of camera {name!r} is {table[key]}; expected numbers") from error
    size, K = values["size"], values["matrix"]
    if size.shape != (2,) or not ((size >= 1) & (size <= LARGEST_IMAGE)).all():
        raise InputError(f"{path}: camera {name!r} has size {size.tolist()}; expected width and height in pixels")
    if K.size != 9:
        raise InputError(f"{path}: camera {name!r} has a matrix of {K.size} numbers; expected 9")
    where = f"{path}: camera {name!r}"
    distortions, fisheye = values["distortions"].ravel(), bool(table.get("fisheye", False))
    return opencv_camera(where, int(size[0]), int(size[1]), K.reshape(3, 3), distortions, fisheye)
