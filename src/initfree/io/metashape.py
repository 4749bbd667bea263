"""Metashape's cameras as XML (File > Export > Export Cameras): sensors, poses, markers with where images see them.

A camera's transform leads from it to the chunk's world, x right, y down, z forward. Its principal point is measured from the
image's middle, the middle of the first pixel is at 0.5, 0.5 as COLMAP's; p1 and p2 stand the other way round than OpenCV's.
Labels are names of images without their endings, most of the time. Tie points are not in the file.
"""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pycolmap

from initfree.data.files import beginning, read_text
from initfree.data.observations import Intrinsics, Observations
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.errors import InputError
from initfree.io.posed import rotations
from initfree.io.rows import observations_of_rows

_HEAD = 4096
_NOT = ("0", "false")


def is_metashape(path: Path) -> bool:
    head = beginning(path, _HEAD) if path.suffix.lower() == ".xml" else b""
    return b"<document" in head and b"<chunk" in head


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Where images see the markers; mostly few, or none."""
    chunk = _chunk(path)
    shots = _shots(path, chunk)
    cameras, number = _cameras(path, chunk)
    place = {shot.get("id"): k for k, shot in enumerate(shots)}
    image, landmark, xy = [], [], []
    for marker in chunk.iterfind("frames/frame/markers/marker"):
        for seen in marker.iterfind("location"):
            if seen.get("valid", "1") in _NOT or seen.get("camera_id") not in place:
                continue
            image.append(place[seen.get("camera_id")])
            landmark.append(int(str(marker.get("marker_id"))) + 1)
            xy.append([float(str(seen.get("x"))), float(str(seen.get("y")))])
    rows = np.array(image, dtype=np.int64), np.array(landmark, dtype=np.int64), np.array(xy).reshape(-1, 2)
    names, camera_of = [str(shot.get("label")) for shot in shots], [number[str(shot.get("sensor_id"))] for shot in shots]
    return observations_of_rows(str(path), names, cameras, *rows, intrinsics or "refine", camera_of)


def reconstruction_of(path: Path) -> Reconstruction:
    """Poses of aligned cameras. Markers lie where the rays of two images or more come closest."""
    chunk = _chunk(path)
    shots = _shots(path, chunk)
    names = [str(shot.get("label")) for shot in shots]
    to_world = np.array([_numbers(path, shot, "transform", 16) for shot in shots]).reshape(-1, 4, 4)
    R = rotations(path, to_world[:, :3, :3].transpose(0, 2, 1), names)
    t = -np.einsum("nij,nj->ni", R, to_world[:, :3, 3])
    ids, xyz = _markers(read_observations(path), R, to_world[:, :3, 3])
    return Reconstruction.of_poses(tuple(names), R, t, ids, xyz)


def _chunk(path: Path) -> ElementTree.Element:
    text = read_text(path)
    if "<!ENTITY" in text:
        raise InputError(f"{path} declares entities, which no export of Metashape does")
    try:
        chunk = ElementTree.fromstring(text).find("chunk")
    except ElementTree.ParseError as error:
        raise InputError(f"{path} cannot be read as XML: {error}") from error
    if chunk is None:
        raise InputError(f"{path} has no chunk; expected cameras as Metashape exports them")
    return chunk


def _shots(path: Path, chunk: ElementTree.Element) -> list[ElementTree.Element]:
    """Cameras that are aligned."""
    found = [shot for shot in chunk.iterfind(".//cameras//camera") if shot.find("transform") is not None]
    if not found:
        raise InputError(f"{path} has no aligned camera; expected a transform of some")
    return found


def _numbers(path: Path, parent: ElementTree.Element, tag: str, count: int) -> Array:
    words = (parent.findtext(tag) or "").split()
    values = np.array(words, dtype=np.float64)
    if len(values) != count or not np.isfinite(values).all():
        raise InputError(f"{path}: camera {parent.get('label')!r} has {len(words)} numbers for a {tag}; expected {count}")
    return values


def _cameras(path: Path, chunk: ElementTree.Element) -> tuple[list[pycolmap.Camera], dict[str, int]]:
    """Cameras of the sensors that have a calibration, and the number of each by its id."""
    cameras, number = [], {}
    for sensor in chunk.iterfind("sensors/sensor"):
        found = {one.get("class", ""): one for one in sensor.iterfind("calibration")}
        calibration = found.get("adjusted", next(iter(found.values()), None))
        if calibration is None:
            continue
        size = calibration.find("resolution")
        size = sensor.find("resolution") if size is None else size
        if size is None:
            raise InputError(f"{path}: sensor {sensor.get('id')} has no resolution; expected width and height")
        width, height = (int(str(size.get(side))) for side in ("width", "height"))
        v = {child.tag: float(child.text or 0.0) for child in calibration if child.tag != "resolution" and child.text}
        kind = calibration.get("type", sensor.get("type", "frame"))
        left = next((key for key in ("k4", "b2", "p3", "p4") if v.get(key) and (kind, key) != ("fisheye", "k4")), None)
        if kind not in ("frame", "fisheye") or left is not None or "f" not in v:
            raise InputError(
                f"{path}: sensor {sensor.get('id')} is of type {kind!r} with {left or 'f'} of {v.get(left or 'f')}; "
                "expected frame or fisheye with f, cx, cy, k1 to k3, p1, p2 and b1"
            )
        focal = [v["f"] + v.get("b1", 0.0), v["f"], width / 2 + v.get("cx", 0.0), height / 2 + v.get("cy", 0.0)]
        k = [v.get(f"k{n}", 0.0) for n in (1, 2, 3, 4)]
        brown = [*k[:2], v.get("p2", 0.0), v.get("p1", 0.0), k[2], 0.0, 0.0, 0.0]
        model, rest = ("OPENCV_FISHEYE", k) if kind == "fisheye" else ("FULL_OPENCV", brown)
        number[str(sensor.get("id"))] = len(cameras)
        cameras.append(pycolmap.Camera(model=model, width=width, height=height, params=[*focal, *rest]))
    unknown = next((s.get("sensor_id") for s in _shots(path, chunk) if str(s.get("sensor_id")) not in number), None)
    if unknown is not None:
        raise InputError(f"{path}: sensor {unknown} has no calibration; expected f, cx, cy and so on")
    return cameras, number


def _markers(o: Observations, R: Array, centres: Array) -> tuple[Index, Array]:
    """Ids of the markers that two images see, and the points closest to their rays."""
    rays = np.column_stack([o.normalised, np.ones(len(o.normalised))]) if len(o.normalised) else np.empty((0, 3))
    rays = np.einsum("nji,nj->ni", R[o.image], rays)
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    across = np.eye(3) - rays[:, :, None] * rays[:, None, :]
    ids, which, count = np.unique(o.landmark_id, return_inverse=True, return_counts=True)
    A, b = np.zeros((len(ids), 3, 3)), np.zeros((len(ids), 3))
    np.add.at(A, which, across)
    np.add.at(b, which, np.einsum("nij,nj->ni", across, centres[o.image]))
    several = count > 1
    return ids[several], np.einsum("nij,nj->ni", np.linalg.pinv(A[several]), b[several])
