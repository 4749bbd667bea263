"""COLMAP sparse models, through pycolmap: observations in, truth in, reconstruction out."""

import math
from pathlib import Path

import numpy as np
import pycolmap

from initfree.errors import InputError
from initfree.model import MetricModel
from initfree.normalization import scaled_keypoints
from initfree.problem import Image, Observations, without_repeats
from initfree.tracks import Array, Index

_NO_POINT = np.iinfo(np.uint64).max
_FILES = ("cameras", "images", "points3D")
_SMALLEST_RECORD = {"cameras": 24, "images": 73, "points3D": 51}
"""bytes of an entry in a binary file, at least"""
_FARTHEST = 1e6
"""calibrated units or image widths: beyond, a coordinate is no observation but a broken number"""


def find_model(path: Path) -> Path | None:
    """The model's directory at `path`, `path/sparse` or `path/sparse/0`; None where there is none."""
    for candidate in (path, path / "sparse", path / "sparse" / "0"):
        for suffix in (".bin", ".txt"):
            if all((candidate / f"{name}{suffix}").is_file() for name in _FILES):
                return candidate
    return None


def read_model(directory: Path) -> pycolmap.Reconstruction:
    """The model, or an error that says where it is broken."""
    _check_binary_sizes(directory)
    try:
        return pycolmap.Reconstruction(str(directory))
    except (ValueError, IndexError, RuntimeError, MemoryError, OverflowError) as error:
        reason = _first_bad_number(directory) or str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"{directory} cannot be read as a COLMAP model: {reason}") from error


def _check_binary_sizes(directory: Path) -> None:
    """A file that announces more entries than its bytes can hold: reading it would end in a crash, or never."""
    for name, smallest in _SMALLEST_RECORD.items():
        file = directory / f"{name}.bin"
        if not file.is_file():
            continue
        size = file.stat().st_size
        with file.open("rb") as stream:
            head = stream.read(8)
        count = int.from_bytes(head, "little") if len(head) == 8 else None
        if count is None or size < 8 + count * smallest:
            announced = "an unreadable count" if count is None else f"{count} entries"
            raise InputError(f"{file} announces {announced} but has {size} bytes; expected a whole COLMAP file")


def _first_bad_number(directory: Path) -> str | None:
    """Text readers stop at "nan" without naming it; look for it so that the user need not."""
    for name in _FILES:
        file = directory / f"{name}.txt"
        if not file.is_file() or (directory / f"{name}.bin").is_file():
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            if line.startswith("#"):
                continue
            for word in line.split():
                if word.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
                    return f"{file.name}, line {number}, has {word!r}; expected a finite number"
    return None


def read_observations(directory: Path, intrinsics_known: bool) -> Observations:
    """Keypoints that belong to landmarks; poses and coordinates of the model are not looked at."""
    return observations_of(read_model(directory), str(directory), intrinsics_known)


def observations_of(reconstruction: pycolmap.Reconstruction, source: str, intrinsics_known: bool) -> Observations:
    """The observations of a model in memory."""
    images: list[Image] = []
    index, ids, keypoint = [], [], []
    seen: dict[str, int] = {}
    for image_id in sorted(reconstruction.images):
        image = reconstruction.images[image_id]
        if image.name in seen:
            raise InputError(f"{source}: images {seen[image.name]} and {image_id} are both named {image.name!r}")
        seen[image.name] = int(image_id)
        points = list(image.points2D)
        xy = np.array([point.xy for point in points], dtype=np.float64).reshape(-1, 2)
        point_ids = np.array([point.point3D_id for point in points], dtype=np.uint64)
        used = np.flatnonzero(point_ids != _NO_POINT)
        bad = used[~np.isfinite(xy[used]).all(axis=1)]
        if len(bad):
            raise InputError(
                f"{source}: image {image.name!r} has keypoint {bad[0]} at {xy[bad[0]].tolist()}; expected finite numbers"
            )
        index.append(np.full(len(used), len(images)))
        ids.append(point_ids[used].astype(np.int64))
        keypoint.append(used)
        images.append(Image(image.name, int(image_id), int(image.camera_id), xy))
    image_of = np.concatenate(index) if index else np.empty(0, dtype=np.int64)
    landmark_id = np.concatenate(ids) if ids else np.empty(0, dtype=np.int64)
    keypoint_of = np.concatenate(keypoint) if keypoint else np.empty(0, dtype=np.int64)
    cameras = {int(camera_id): camera for camera_id, camera in reconstruction.cameras.items()}
    _check_cameras(cameras, source)
    first = without_repeats(image_of, landmark_id)
    repeated = int(np.count_nonzero(~first))
    image_of, landmark_id, keypoint_of = image_of[first], landmark_id[first], keypoint_of[first]
    normalise = _calibrated if intrinsics_known else scaled_keypoints
    normalised, unit = normalise(images, cameras, image_of, keypoint_of)
    far = np.flatnonzero(np.abs(normalised).max(axis=1, initial=0.0) > _FARTHEST)
    if len(far):
        image, k = images[image_of[far[0]]], keypoint_of[far[0]]
        raise InputError(
            f"{source}: image {image.name!r} has keypoint {k} at {image.keypoints[k].tolist()}, far outside of it"
        )
    kept = np.flatnonzero(np.isfinite(normalised).all(axis=1))
    if len(normalised) and not len(kept):
        raise InputError(f"{source}: no keypoint can be undistorted with the model's intrinsics")
    return Observations(
        source, tuple(images), cameras, intrinsics_known,
        image_of[kept], landmark_id[kept], keypoint_of[kept], normalised[kept], unit, repeated,
        len(normalised) - len(kept),
    )  # fmt: skip


def _check_cameras(cameras: dict[int, pycolmap.Camera], source: str) -> None:
    for camera_id, camera in cameras.items():
        if not all(math.isfinite(value) for value in camera.params) or camera.mean_focal_length() <= 0.0:
            raise InputError(
                f"{source}: camera {camera_id} has parameters {[float(value) for value in camera.params]}; "
                "expected finite numbers and a positive focal length"
            )


def _calibrated(
    images: list[Image], cameras: dict[int, pycolmap.Camera], image_of: Index, keypoint_of: Index
) -> tuple[Array, Array]:
    """Calibrated rays: distortion and intrinsics undone by pycolmap, whatever the camera model."""
    normalised = np.empty((len(image_of), 2))
    unit = np.empty((len(images), 2))
    for k, image in enumerate(images):
        camera = cameras[image.camera_id]
        unit[k] = camera.focal_length_x, camera.focal_length_y
        here = image_of == k
        if here.any():
            normalised[here] = camera.cam_from_img(image.keypoints[keypoint_of[here]])
    return normalised, unit


def metric_model(reconstruction: pycolmap.Reconstruction) -> MetricModel:
    """Poses of registered images and landmarks: the truth, or an estimate to evaluate."""
    names, R, t = [], [], []
    for image_id in sorted(reconstruction.images):
        image = reconstruction.images[image_id]
        if image.has_pose:
            pose = image.cam_from_world()
            names.append(image.name)
            R.append(pose.rotation.matrix())
            t.append(pose.translation)
    ids = sorted(reconstruction.points3D)
    xyz = np.array([reconstruction.points3D[k].xyz for k in ids], dtype=np.float64).reshape(-1, 3)
    return MetricModel(
        tuple(names),
        np.array(R, dtype=np.float64).reshape(-1, 3, 3),
        np.array(t, dtype=np.float64).reshape(-1, 3),
        np.array(ids, dtype=np.int64),
        xyz,
    )
