"""Kapture: a directory with sensors/ (sensors, records, trajectories) and reconstruction/ (keypoints, observations, points).

Cameras have COLMAP's models; a pose (qw qx qy qz tx ty tz) leads from the world to its sensor, or to a rig whose sensors'
poses are in rigs.txt. A point's id is its line in points3d.txt.
"""

from pathlib import Path

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

from initfree.data.files import read_bytes, read_text
from initfree.data.names import inside
from initfree.data.observations import Intrinsics, Observations
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.io.posed import observations_of_poses
from initfree.io.rows import observations_of_rows

_SENSORS, _RECORDS = Path("sensors/sensors.txt"), Path("sensors/records_camera.txt")
_TRAJECTORIES, _RIGS = Path("sensors/trajectories.txt"), Path("sensors/rigs.txt")
_POINTS, _OBSERVATIONS = Path("reconstruction/points3d.txt"), Path("reconstruction/observations.txt")
_KEYPOINTS = Path("reconstruction/keypoints")
Pose = tuple[Array, Array]


def is_kapture(path: Path) -> bool:
    return path.is_dir() and (path / _SENSORS).is_file() and (path / _RECORDS).is_file()


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Keypoints that points have, or none where there is no reconstruction/observations.txt."""
    cameras, number = _cameras(path)
    records = _records(path)
    names = [name for _, _, name in records]
    camera_of = [number[device] for _, device, _ in records]
    if not (path / _OBSERVATIONS).is_file():
        return observations_of_poses(str(path), names, cameras, camera_of, intrinsics or "refine")
    place = {name: k for k, name in enumerate(names)}
    keypoints: dict[tuple[str, str], Array] = {}
    image, landmark, xy = [], [], []
    for row in _rows(path / _OBSERVATIONS, 4):
        kind = row[1]
        for name, feature in zip(row[2::2], row[3::2], strict=True):
            if name not in place:
                raise InputError(f"{path / _OBSERVATIONS}: point {row[0]} is observed in {name!r}, which is no record")
            if (kind, name) not in keypoints:
                keypoints[kind, name] = _keypoints(path, kind, name)
            if not 0 <= int(feature) < len(keypoints[kind, name]):
                raise InputError(f"{path / _OBSERVATIONS}: {name!r} has no keypoint {feature}; expected one of its file")
            image.append(place[name])
            landmark.append(int(row[0]) + 1)
            xy.append(keypoints[kind, name][int(feature)])
    rows = np.array(image, dtype=np.int64), np.array(landmark, dtype=np.int64), np.array(xy).reshape(-1, 2)
    return observations_of_rows(str(path), names, cameras, *rows, intrinsics or "refine", camera_of)


def reconstruction_of(path: Path) -> Reconstruction:
    """Poses and points."""
    if not (path / _TRAJECTORIES).is_file():
        raise InputError(f"{path} has no {_TRAJECTORIES}; expected the poses of its images in it")
    mounted = _rigs(path)
    poses: dict[tuple[str, str], Pose] = {}
    for row in _rows(path / _TRAJECTORIES, 9):
        pose = _pose(path / _TRAJECTORIES, row[2:9])
        poses[row[0], row[1]] = pose
        for sensor, (R, t) in mounted.get(row[1], {}).items():
            poses[row[0], sensor] = R @ pose[0], R @ pose[1] + t
    found = [(name, poses[stamp, device]) for stamp, device, name in _records(path) if (stamp, device) in poses]
    if not found:
        raise InputError(f"{path}: no image of {_RECORDS} has a pose in {_TRAJECTORIES}")
    xyz = np.empty((0, 3))
    if (path / _POINTS).is_file():
        xyz = np.array([row[:3] for row in _rows(path / _POINTS, 3)], dtype=np.float64).reshape(-1, 3)
    R, t = np.array([pose[0] for _, pose in found]), np.array([pose[1] for _, pose in found])
    return Reconstruction.of_poses(tuple(name for name, _ in found), R, t, np.arange(1, len(xyz) + 1), xyz)


def _rows(file: Path, least: int) -> list[list[str]]:
    """The words of each line that is no comment, at least so many."""
    rows = []
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            rows.append([word.strip() for word in line.split(",")])
            if len(rows[-1]) < least:
                raise InputError(f"{file}, line {number}, has {len(rows[-1])} values; expected {least} at least")
    return rows


def _cameras(path: Path) -> tuple[list[pycolmap.Camera], dict[str, int]]:
    cameras, number = [], {}
    for row in _rows(path / _SENSORS, 3):
        if row[2] != "camera":
            continue
        if len(row) < 6 or row[3] not in pycolmap.CameraModelId.__members__:
            raise InputError(f"{path / _SENSORS}: camera {row[0]!r} is {row[3:6]}; expected a model of COLMAP and a size")
        number[row[0]] = len(cameras)
        size, params = (int(word) for word in row[4:6]), [float(word) for word in row[6:]]
        width, height = size
        cameras.append(pycolmap.Camera(model=row[3], width=width, height=height, params=params))
    return cameras, number


def _records(path: Path) -> list[tuple[str, str, str]]:
    """Timestamp, device and image of each record."""
    _, number = _cameras(path)
    rows = _rows(path / _RECORDS, 3)
    unknown = next((row[1] for row in rows if row[1] not in number), None)
    if unknown is not None:
        raise InputError(f"{path / _RECORDS} names device {unknown!r}, which is no camera of {_SENSORS}")
    return [(row[0], row[1], row[2]) for row in rows]


def _rigs(path: Path) -> dict[str, dict[str, Pose]]:
    """By rig: the pose of each of its sensors, from the rig to the sensor."""
    found: dict[str, dict[str, Pose]] = {}
    if (path / _RIGS).is_file():
        for row in _rows(path / _RIGS, 9):
            found.setdefault(row[0], {})[row[1]] = _pose(path / _RIGS, row[2:9])
    return found


def _pose(file: Path, words: list[str]) -> Pose:
    numbers = np.array(words, dtype=np.float64)
    w, x, y, z, *t = numbers.tolist()
    length = float(np.linalg.norm([w, x, y, z]))
    if not np.isfinite(numbers).all() or not 1e-6 < length < 1e6:
        raise InputError(f"{file} has the pose {', '.join(words)}; expected a quaternion and a translation")
    return Rotation.from_quat([x, y, z, w]).as_matrix(), np.array(t)


def _keypoints(path: Path, kind: str, name: str) -> Array:
    """x, y of an image's keypoints: an array of float32 or float64, as keypoints.txt of that kind says."""
    of_kind = inside(path / _KEYPOINTS, kind, "kind of keypoints")
    folder = of_kind if of_kind.is_dir() else path / _KEYPOINTS
    row = _rows(folder / "keypoints.txt", 3)[0]
    dtype, columns = {"float32": np.float32, "float64": np.float64}.get(row[1].rpartition(".")[2].rstrip("'>")), int(row[2])
    if dtype is None or columns < 2:
        raise InputError(f"{folder / 'keypoints.txt'} has {row[1:]}; expected float32 or float64 and two columns at least")
    data = np.frombuffer(read_bytes(inside(folder, f"{name}.kpt")), dtype=dtype)
    if len(data) % columns:
        raise InputError(f"{folder / name}.kpt has {len(data)} numbers; expected {columns} for each keypoint")
    return data.reshape(-1, columns)[:, :2].astype(np.float64)
