"""nerfstudio's transforms.json: poses from camera to world, axes as in OpenGL (y up, z backwards), no observations.

Intrinsics stand at the top, or at each frame; pixels are COLMAP's (the middle of the first one is at 0.5, 0.5). Older files
of NeRF have `camera_angle_x` in place of a focal length, without the size of the images: those are refused.
"""

from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pycolmap

from initfree.data.files import beginning, read_json
from initfree.data.observations import Intrinsics, Observations
from initfree.data.reconstruction import Reconstruction
from initfree.errors import InputError
from initfree.io.posed import observations_of_poses, rotations

_AXES = np.array([1.0, -1.0, -1.0])
_MODELS = {
    "OPENCV": ("FULL_OPENCV", ("k1", "k2", "p1", "p2", "k3", "k4")),
    "PINHOLE": ("FULL_OPENCV", ("k1", "k2", "p1", "p2", "k3", "k4")),
    "SIMPLE_PINHOLE": ("FULL_OPENCV", ()),
    "OPENCV_FISHEYE": ("OPENCV_FISHEYE", ("k1", "k2", "k3", "k4")),
}
_HEAD = 1 << 16


def is_nerfstudio(path: Path) -> bool:
    """A file with frames that have a transform_matrix, or a directory with a transforms.json and no COLMAP model."""
    file = path / "transforms.json" if path.is_dir() else path
    return file.suffix == ".json" and (path.is_dir() or b"transform_matrix" in beginning(file, _HEAD)) and file.is_file()


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Images and cameras: matches are not in the file."""
    file, frames, names = _read(path)
    table: dict[tuple[float, ...], int] = {}
    cameras, camera_of = [], []
    for frame, name in zip(frames, names, strict=True):
        camera = _camera(file, name, frame)
        key = (hash(camera.model_name), camera.width, camera.height, *map(float, camera.params))
        if key not in table:
            table[key] = len(cameras)
            cameras.append(camera)
        camera_of.append(table[key])
    return observations_of_poses(str(path), names, cameras, camera_of, intrinsics or "refine")


def reconstruction_of(path: Path) -> Reconstruction:
    """Poses; points are not in the file."""
    file, frames, names = _read(path)
    try:
        to_world = np.array([frame["transform_matrix"] for frame in frames], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{file}: a frame lacks or garbles {error}; expected a transform_matrix of 4 x 4 numbers"
        ) from error
    if to_world.ndim != 3 or to_world.shape[2] != 4 or to_world.shape[1] not in (3, 4) or not np.isfinite(to_world).all():
        raise InputError(f"{file}: the transform matrices have shape {to_world.shape[1:]}; expected 4 x 4 finite numbers")
    R = rotations(file, np.swapaxes(to_world[:, :3, :3] * _AXES, 1, 2), names)
    t = -np.einsum("nij,nj->ni", R, to_world[:, :3, 3])
    return Reconstruction.of_poses(tuple(names), R, t, np.empty(0, dtype=np.int64), np.empty((0, 3)))


def _read(path: Path) -> tuple[Path, list[dict[str, Any]], list[str]]:
    """The file, its frames with what stands at the top, and the images' names without the folder that all share."""
    file = path / "transforms.json" if path.is_dir() else path
    data = read_json(file)
    frames = data.get("frames") if isinstance(data, dict) else None
    if not isinstance(frames, list) or not frames or not all(isinstance(frame, dict) for frame in frames):
        raise InputError(f"{file} has no frames; expected a list of them, each with file_path and transform_matrix")
    missing = next((k for k, frame in enumerate(frames) if not isinstance(frame.get("file_path"), str)), None)
    if missing is not None:
        raise InputError(f"{file}: frame {missing} has no file_path; expected the image's")
    shared = {key: value for key, value in data.items() if key != "frames"}
    parts = [PurePosixPath(frame["file_path"].replace("\\", "/")).parts for frame in frames]
    folder = {one[:-1] for one in parts}
    names = ["/".join(one if len(folder) > 1 else one[-1:]).removeprefix("./") for one in parts]
    return file, [shared | frame for frame in frames], names


def _camera(file: Path, name: str, frame: dict[str, Any]) -> pycolmap.Camera:
    kind = str(frame.get("camera_model", "OPENCV"))
    if kind not in _MODELS:
        raise InputError(f"{file}: image {name!r} is of camera model {kind!r}; expected one of {', '.join(_MODELS)}")
    model, keys = _MODELS[kind]
    try:
        width, height, fx = int(frame["w"]), int(frame["h"]), float(frame["fl_x"])
        numbers = [fx, float(frame.get("fl_y", fx)), float(frame.get("cx", width / 2)), float(frame.get("cy", height / 2))]
        numbers += [float(frame.get(key, 0.0)) for key in keys]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file}: image {name!r} lacks or garbles {error}; expected w, h and fl_x in pixels") from error
    size = 12 if model == "FULL_OPENCV" else 8
    if model == "FULL_OPENCV" and len(numbers) > 9 and numbers[9] != 0.0:
        raise InputError(f"{file}: image {name!r} has k4 of {numbers[9]}; expected k1, k2, k3, p1 and p2 alone")
    return pycolmap.Camera(model=model, width=width, height=height, params=[*numbers, *[0.0] * size][:size])
