"""OpenSfM's projects: tracks.csv, camera_models.json and, where there are several cameras, exif/IMAGE.exif.

Of reconstruction.json, poses and points of its largest reconstruction, to evaluate against; the solver reads nothing of it.

Coordinates are in units of the larger side of the image, from its middle: pixels are x max(w, h) + w/2.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

from initfree.data.files import read_json, read_text
from initfree.data.names import inside
from initfree.data.observations import Intrinsics, Observations
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.errors import InputError
from initfree.io.rows import observations_of_rows

_COLUMNS = 5
"""of a row that are used: image, track, feature, x, y; scale and colour follow"""


def is_opensfm(path: Path) -> bool:
    return path.is_dir() and (path / "tracks.csv").is_file() and (path / "camera_models.json").is_file()


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Tracks of the project. Its camera models mostly come from EXIF: a guess to refine."""
    models = read_json(path / "camera_models.json")
    if not isinstance(models, dict) or not models:
        raise InputError(f"{path / 'camera_models.json'} has no cameras; expected a model for each")
    ids = list(models)
    cameras = [_camera(path / "camera_models.json", name, models[name]) for name in ids]
    rows = _rows(path / "tracks.csv")
    names, image = np.unique([row[0] for row in rows], return_inverse=True)
    track, landmark = np.unique([row[1] for row in rows], return_inverse=True)
    landmark_id = _landmark_ids(track.tolist())
    camera_of = [_camera_of(path, str(name), ids) for name in names]
    try:
        xy = np.array([row[3:5] for row in rows], dtype=np.float64).reshape(-1, 2)
    except ValueError as error:
        raise InputError(f"{path / 'tracks.csv'}: a coordinate is no number ({error})") from error
    size = np.array([(camera.width, camera.height) for camera in cameras], dtype=np.float64)[camera_of][image]
    pixels = xy * size.max(axis=1, keepdims=True) + size / 2.0
    return observations_of_rows(
        str(path), names.tolist(), cameras, image, landmark_id[landmark], pixels, intrinsics or "refine", camera_of
    )


def _landmark_ids(tracks: list[str]) -> Index:
    """From one: the numbers of the tracks, or, where not all are numbers, their places in order."""
    numbers = all(name.isdecimal() for name in tracks)
    return np.array([int(name) + 1 for name in tracks] if numbers else range(1, len(tracks) + 1), dtype=np.int64)


def reconstruction_of(path: Path) -> Reconstruction:
    """Poses and points of the reconstruction with most images; points are numbered like the landmarks of the tracks."""
    file = path / "reconstruction.json"
    if not file.is_file():
        raise InputError(f"{path} has no reconstruction.json; expected the poses and points of an OpenSfM project in it")
    found = read_json(file)
    try:
        best = max(found, key=lambda one: len(one["shots"]))
        names = sorted(best["shots"])
        pose = np.array([[*best["shots"][k]["rotation"], *best["shots"][k]["translation"]] for k in names], np.float64)
        points = {str(k): point["coordinates"] for k, point in best.get("points", {}).items()}
        xyz = np.array(list(points.values()), np.float64).reshape(-1, 3)
        shaped = pose.shape == (len(names), 6) and len(names) > 0 and len(xyz) == len(points)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{file} lacks or garbles {error}; expected shots with rotation and translation") from error
    if not shaped or not np.isfinite(pose).all() or not np.isfinite(xyz).all():
        raise InputError(f"{file}: rotations, translations or points are not three finite numbers each")
    tracks = np.unique([row[1] for row in _rows(path / "tracks.csv")]).tolist()
    number = dict(zip(tracks, _landmark_ids(tracks).tolist(), strict=True))
    known = [n for n, k in enumerate(points) if k in number]
    ids = np.array([number[k] for k in points if k in number], dtype=np.int64)
    R = Rotation.from_rotvec(pose[:, :3]).as_matrix()
    return Reconstruction.of_poses(tuple(names), R, pose[:, 3:], ids, xyz[known])


def _rows(path: Path) -> list[list[str]]:
    lines = read_text(path).splitlines()
    # Version 0 has no line that says so.
    start = 1 if lines and lines[0].startswith("OPENSFM_TRACKS_VERSION") else 0
    rows = [line.split("\t") for line in lines[start:] if line]
    if not rows:
        raise InputError(f"{path} has no tracks; expected image, track, feature, x, y and so on, separated by tabs")
    short = next((n for n, row in enumerate(rows) if len(row) < _COLUMNS), None)
    if short is not None:
        raise InputError(
            f"{path}: line {short + start + 1} has {len(rows[short])} values; expected image, track, feature, x, y"
        )
    return rows


def _camera_of(path: Path, image: str, ids: list[str]) -> int:
    """The number of an image's camera: the only one, or the one that its EXIF file names."""
    if len(ids) == 1:
        return 0
    file = inside(path / "exif", f"{image}.exif")
    if not file.is_file():
        raise InputError(f"{path} has {len(ids)} cameras and no {file.relative_to(path)}; expected it to name one of them")
    exif = read_json(file)
    camera = exif.get("camera") if isinstance(exif, dict) else None
    if camera not in ids:
        raise InputError(f"{file} names camera {camera!r}, which camera_models.json has not")
    return ids.index(camera)


def _camera(path: Path, name: str, model: Any) -> pycolmap.Camera:
    try:
        width, height, kind = int(model["width"]), int(model["height"]), str(model["projection_type"])
        scale, cx, cy = max(width, height), width / 2.0, height / 2.0

        def of(*keys: str) -> list[float]:
            return [float(model.get(key, 0.0)) for key in keys]

        if "focal" in model:
            fx = fy = scale * float(model["focal"])
        else:
            fx, fy = scale * float(model["focal_x"]), scale * float(model["focal_y"])
        px, py = cx + scale * of("c_x")[0], cy + scale * of("c_y")[0]
        colmap = {
            "perspective": ("RADIAL", [fx, cx, cy, *of("k1", "k2")]),
            "simple_radial": ("OPENCV", [fx, fy, px, py, *of("k1"), 0.0, 0.0, 0.0]),
            "radial": ("OPENCV", [fx, fy, px, py, *of("k1", "k2"), 0.0, 0.0]),
            "brown": ("FULL_OPENCV", [fx, fy, px, py, *of("k1", "k2", "p1", "p2", "k3"), 0.0, 0.0, 0.0]),
            "fisheye": ("RADIAL_FISHEYE", [fx, cx, cy, *of("k1", "k2")]),
            "fisheye_opencv": ("OPENCV_FISHEYE", [fx, fy, px, py, *of("k1", "k2", "k3", "k4")]),
        }.get(kind)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: camera {name!r} lacks or garbles {error}; expected width, height, projection and focal"
        ) from error
    if colmap is None:
        raise InputError(
            f"{path}: camera {name!r} is of projection {kind!r}; expected perspective, brown, radial or a fisheye"
        )
    return pycolmap.Camera(model=colmap[0], width=width, height=height, params=colmap[1])
