"""caliscope's recordings: xy.csv (detections of all cameras) and camera_array.toml (intrinsics, and poses if calibrated)."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from initfree.data.files import read_toml
from initfree.data.observations import LARGEST_IMAGE, Intrinsics, Observations
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.io.columns import combined, find, labels, moments_of, numbers, optional, read_columns
from initfree.io.rows import observations_of_array, opencv_camera, unknown_camera

_TOML, _CSV = "camera_array.toml", "xy.csv"
_KNOWN = {
    "camera": ("cam_id", "port", "camera"),
    "frame": ("sync_index", "frame"),
    "point": ("keypoint_id", "point_id"),
    "object": ("object_id",),
    "x": ("img_loc_x",),
    "y": ("img_loc_y",),
}


def is_caliscope(path: Path) -> bool:
    return path.is_dir() and (path / _TOML).is_file() and (path / _CSV).is_file()


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """An image is a camera, a landmark a point of an object in a synchronised frame. Ignored cameras are left out."""
    table = read_cameras(path / _TOML)
    columns = read_columns(path / _CSV, *_KNOWN.values())
    seen_by = find(path / _CSV, columns, _KNOWN["camera"])
    names, image = labels(seen_by)
    missing = [name for name in names if name not in table]
    if missing:
        raise InputError(f"{path / _CSV} names camera {missing[0]!r}, which {_TOML} has not ({', '.join(table)})")
    parts = [find(path / _CSV, columns, _KNOWN[key]) for key in ("frame", "point")]
    parts += [part for part in [optional(columns, _KNOWN["object"])] if part is not None]
    xy = np.stack([numbers(path / _CSV, _KNOWN[key][0], find(path / _CSV, columns, _KNOWN[key])) for key in "xy"], axis=1)
    rows = np.array([not table[names[k]].get("ignore", False) for k in image], dtype=bool) & ~np.isnan(xy).any(axis=1)
    used = [k for k, name in enumerate(names) if not table[name].get("ignore", False)]
    number = np.full(len(names), -1)
    number[used] = np.arange(len(used))
    calibrated = all("matrix" in table[names[k]] for k in used)
    if not calibrated and intrinsics not in (None, "unknown"):
        raise InputError(f"{path / _TOML} lacks a camera's matrix; expected --intrinsics unknown, not {intrinsics}")
    cameras = [_camera(path / _TOML, names[k], table[names[k]], calibrated) for k in used]
    kind = intrinsics or ("known" if calibrated else "unknown")
    landmark = combined(*(labels(part)[1] for part in parts))
    moments = moments_of(landmark, parts[0], *parts[:0:-1])
    return observations_of_array(
        str(path),
        [f"cam_{names[k]}" for k in used],
        cameras,
        number[image[rows]],
        landmark[rows],
        xy[rows],
        kind,
        moments,
    )


def read_cameras(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of the cameras by their number."""
    cameras = read_toml(path).get("cameras")
    if not isinstance(cameras, dict) or not all(isinstance(camera, dict) for camera in cameras.values()):
        raise InputError(f"{path} has no table [cameras.N]; expected one for each camera")
    return cameras


def reconstruction_of(path: Path) -> Reconstruction:
    """The poses of the file; it has no landmarks."""
    table = read_cameras(path / _TOML)
    names, R, t = [], [], []
    for name, camera in table.items():
        if "rotation" not in camera or "translation" not in camera or camera.get("ignore", False):
            continue
        place = path / _TOML
        rotation, translation = (_numbers(place, name, key, camera[key]) for key in ("rotation", "translation"))
        if rotation.size not in (3, 9) or translation.size != 3:
            raise InputError(
                f"{place}: camera {name} has {rotation.size} numbers of rotation and {translation.size} of translation; "
                "expected 3 or 9, and 3"
            )
        names.append(f"cam_{name}")
        R.append(Rotation.from_rotvec(rotation.reshape(3)).as_matrix() if rotation.size == 3 else rotation.reshape(3, 3))
        t.append(translation.reshape(3))
    if not names:
        raise InputError(f"{path / _TOML} has no camera with rotation and translation; expected a calibrated array")
    return Reconstruction.of_poses(tuple(names), np.array(R), np.array(t), np.empty(0, dtype=np.int64), np.empty((0, 3)))


def _camera(path: Path, name: str, table: dict[str, Any], calibrated: bool) -> Any:
    size = _numbers(path, name, "size", table.get("size", ()))
    if size.shape != (2,) or not ((size >= 1) & (size <= LARGEST_IMAGE)).all():
        raise InputError(f"{path}: camera {name} has size {table.get('size')}; expected [width, height]")
    if not calibrated:
        return unknown_camera(*size)
    K = _numbers(path, name, "matrix", table["matrix"])
    distortion = _numbers(path, name, "distortions", table.get("distortions", []))
    return opencv_camera(
        f"{path}: camera {name}", int(size[0]), int(size[1]), K, distortion, bool(table.get("fisheye", False))
    )


def _numbers(path: Path, name: str, key: str, value: Any) -> Array:
    try:
        return np.asarray(value, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{path}: {key} of camera {name} is {value}; expected numbers") from error
