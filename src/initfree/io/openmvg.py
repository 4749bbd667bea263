"""openMVG's sfm_data.json: views, intrinsics, poses and the structure with its observations.

A pose is a rotation R from world to camera and a centre C, t = -R C. openMVG's pixels begin in the middle of the first one,
as VLFeat's do; ours half a pixel before it. cereal writes a polymorphic type's name with its first object only.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from initfree.data.files import beginning, read_json
from initfree.data.observations import Intrinsics, Observations
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.io.posed import rotations
from initfree.io.rows import observations_of_rows

_HALF = 0.5
_NAMED = 0x7FFFFFFF
"""of cereal's polymorphic_id: its highest bit says that the name follows"""
_HEAD = 4096
_MODELS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "pinhole": ("PINHOLE", "", ()),
    "pinhole_radial_k1": ("FULL_OPENCV", "disto_k1", (4,)),
    "pinhole_radial_k3": ("FULL_OPENCV", "disto_k3", (4, 5, 8)),
    "pinhole_brown_t2": ("FULL_OPENCV", "disto_t2", (4, 5, 8, 6, 7)),
    "fisheye": ("OPENCV_FISHEYE", "fisheye", (4, 5, 6, 7)),
}
"""COLMAP's model, openMVG's key of the distortion, and where its numbers go"""
_SIZES = {"PINHOLE": 4, "FULL_OPENCV": 12, "OPENCV_FISHEYE": 8}


def is_openmvg(path: Path) -> bool:
    return path.is_file() and path.suffix == ".json" and b'"sfm_data_version"' in beginning(path, _HEAD)


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Observations of the structure. Landmark ids count from one."""
    document = _read(path)
    views, cameras, number = _views(path, document), *_cameras(path, document)
    order = {int(view["id_view"]): k for k, view in enumerate(views)}
    image, landmark, xy = [], [], []
    for key, value in _entries(document, "structure"):
        for seen in value["observations"]:
            if int(seen["key"]) not in order:
                raise InputError(f"{path}: landmark {key} is observed in view {seen['key']}, which does not exist")
            image.append(order[int(seen["key"])])
            landmark.append(int(key) + 1)
            xy.append(seen["value"]["x"])
    camera_of = [number[int(view["id_intrinsic"])] for view in views]
    pixels = np.array(xy, dtype=np.float64).reshape(-1, 2) + _HALF
    rows = np.array(image, dtype=np.int64), np.array(landmark, dtype=np.int64), pixels
    return observations_of_rows(str(path), _names(views), cameras, *rows, intrinsics or "refine", camera_of)


def reconstruction_of(path: Path) -> Reconstruction:
    """Poses and points."""
    document = _read(path)
    poses = {int(key): value for key, value in _entries(document, "extrinsics")}
    views = [view for view in _views(path, document) if int(view["id_pose"]) in poses]
    if not views:
        raise InputError(f"{path} has no poses; expected extrinsics of its views")
    names = _names(views)
    of_view = [poses[int(view["id_pose"])] for view in views]
    R = rotations(path, _matrix([pose["rotation"] for pose in of_view], 9).reshape(-1, 3, 3), names)
    t = -np.einsum("nij,nj->ni", R, _matrix([pose["center"] for pose in of_view], 3))
    points = _entries(document, "structure")
    ids = np.array([int(key) + 1 for key, _ in points], dtype=np.int64)
    return Reconstruction.of_poses(tuple(names), R, t, ids, _matrix([value["X"] for _, value in points], 3))


def _matrix(rows: list[Any], columns: int) -> Array:
    found = np.array(rows, dtype=np.float64).reshape(len(rows), columns)
    if not np.isfinite(found).all():
        raise ValueError("a pose or point is not finite")
    return found


def _read(path: Path) -> dict[str, Any]:
    document = read_json(path)
    if not isinstance(document, dict) or not isinstance(document.get("views"), list) or not document["views"]:
        raise InputError(f"{path} has no views; expected an sfm_data.json of openMVG")
    return document


def _entries(document: dict[str, Any], key: str) -> list[tuple[Any, Any]]:
    return [(entry["key"], entry["value"]) for entry in document.get(key) or []]


def _views(path: Path, document: dict[str, Any]) -> list[dict[str, Any]]:
    """In the order of the file; those without intrinsics are no images of the model."""
    known = {int(key) for key, _ in _entries(document, "intrinsics")}
    found = [value["ptr_wrapper"]["data"] for _, value in _entries(document, "views")]
    used = [view for view in found if int(view["id_intrinsic"]) in known]
    if not used:
        raise InputError(f"{path} has no view with intrinsics; expected those of a reconstruction")
    return used


def _names(views: list[dict[str, Any]]) -> list[str]:
    folders = {str(view.get("local_path", "")) for view in views}
    return [f"{view['local_path']}/{view['filename']}" if len(folders) > 1 else str(view["filename"]) for view in views]


def _cameras(path: Path, document: dict[str, Any]) -> tuple[list[pycolmap.Camera], dict[int, int]]:
    """Cameras, and the number of each by its id."""
    kinds: dict[int, str] = {}
    cameras, number = [], {}
    for key, value in _entries(document, "intrinsics"):
        kind_id = int(value["polymorphic_id"]) & _NAMED
        kinds[kind_id] = kind = str(value.get("polymorphic_name", kinds.get(kind_id)))
        if kind not in _MODELS:
            raise InputError(f"{path}: intrinsic {key} is of model {kind!r}; expected one of {', '.join(_MODELS)}")
        model, distortion, places = _MODELS[kind]
        data = value["ptr_wrapper"]["data"]
        params = [0.0] * _SIZES[model]
        f = float(data["focal_length"])
        params[:4] = [f, f, *(float(c) + _HALF for c in data["principal_point"])]
        for place, coefficient in zip(places, data[distortion] if distortion else [], strict=True):
            params[place] = float(coefficient)
        number[int(key)] = len(cameras)
        cameras.append(pycolmap.Camera(model=model, width=int(data["width"]), height=int(data["height"]), params=params))
    return cameras, number
