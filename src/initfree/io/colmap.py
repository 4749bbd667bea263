"""COLMAP sparse models, through pycolmap: observations in, truth in, reconstruction out."""

from pathlib import Path

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.arrays.rigs import Mount
from initfree.data.observations import Image, Intrinsics, Observations, observe
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.errors import InputError
from initfree.io.colmap_files import FILES, StoredModel, check_files, check_model, why

_NO_POINT = np.iinfo(np.uint64).max


def find_model(path: Path) -> Path | None:
    """The model's directory at `path`, `path/sparse` or `path/sparse/0`; None where there is none."""
    for candidate in (path, path / "sparse", path / "sparse" / "0"):
        for suffix in (".bin", ".txt"):
            if all((candidate / f"{name}{suffix}").is_file() for name in FILES):
                return candidate
    return None


def read_model(directory: Path) -> pycolmap.Reconstruction:
    """The model, or an error with the place of the damage."""
    return _read(directory)[0]


def _read(directory: Path) -> tuple[pycolmap.Reconstruction, StoredModel | None]:
    stored = check_files(directory)
    try:
        model = pycolmap.Reconstruction(str(directory))
    except (ValueError, IndexError, RuntimeError, MemoryError, OverflowError) as error:
        raise InputError(f"{directory} cannot be read as a COLMAP model: {why(directory, error)}") from error
    check_model(model, str(directory))
    return model, stored


def read_observations(directory: Path, intrinsics: Intrinsics) -> Observations:
    """Keypoints that belong to landmarks; poses and points of the model are ignored."""
    model, stored = _read(directory)
    return observations_of(model, str(directory), intrinsics, stored)


def observations_of(
    reconstruction: pycolmap.Reconstruction, source: str, intrinsics: Intrinsics, stored: StoredModel | None = None
) -> Observations:
    """The observations of a model in memory, of which keypoints may be `stored` in a file."""
    images: list[Image] = []
    index, ids, keypoint = [], [], []
    for image_id in sorted(reconstruction.images):
        image = reconstruction.images[image_id]
        xy, point_ids = _keypoints(image) if stored is None else stored.images.of(int(image_id))
        used = np.flatnonzero(point_ids != _NO_POINT)
        index.append(np.full(len(used), len(images)))
        ids.append(point_ids[used].astype(np.int64))
        keypoint.append(used)
        images.append(Image(image.name, int(image_id), int(image.camera_id), xy))
    nothing = np.empty(0, dtype=np.int64)
    image_of, landmark_id, keypoint_of = (np.concatenate([nothing, *parts]) for parts in (index, ids, keypoint))
    cameras = {int(camera_id): camera for camera_id, camera in reconstruction.cameras.items()}
    return observe(
        source, images, cameras, image_of, landmark_id, keypoint_of,
        intrinsics=intrinsics, colour=_colours(reconstruction, landmark_id), mounts=_mounts(reconstruction),
    )  # fmt: skip


def _keypoints(image: pycolmap.Image) -> tuple[Array, NDArray[np.uint64]]:
    points = list(image.points2D)
    xy = np.array([point.xy for point in points], dtype=np.float64).reshape(-1, 2)
    return xy, np.array([point.point3D_id for point in points], dtype=np.uint64)


def _mounts(reconstruction: pycolmap.Reconstruction) -> dict[int, Mount]:
    """Frames and rigs of the images, not their poses."""
    images = reconstruction.images
    return {
        int(image_id): Mount(int(frame.rig_id), int(frame_id), int(images[image_id].camera_id))
        for frame_id, frame in reconstruction.frames.items()
        for image_id in (data.id for data in frame.image_ids)
        if image_id in images
    }


def _colours(reconstruction: pycolmap.Reconstruction, landmark_id: Index) -> NDArray[np.uint8] | None:
    """The colour of each observation's landmark; None where the model has none."""
    ids, which = np.unique(landmark_id, return_inverse=True)
    points = reconstruction.points3D
    colour = np.array([points[j].color if j in points else (0, 0, 0) for j in ids.tolist()], dtype=np.uint8).reshape(-1, 3)
    return colour[which] if colour.any() else None


def reconstruction_of(reconstruction: pycolmap.Reconstruction) -> Reconstruction:
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
    return Reconstruction.of_poses(
        tuple(names),
        np.array(R, dtype=np.float64).reshape(-1, 3, 3),
        np.array(t, dtype=np.float64).reshape(-1, 3),
        np.array(ids, dtype=np.int64),
        xyz,
    )
