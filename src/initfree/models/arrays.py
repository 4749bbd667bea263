"""A COLMAP model as the arrays of an adjustment, and back."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from initfree.data.problem import neighbours_together
from initfree.data.tracks import Array, Index, Tracks
from initfree.drawing.verdict import counted
from initfree.errors import InputError
from initfree.io.colmap_files import StoredModel, check_files, check_model
from initfree.stages.euclidean.intrinsics import View
from initfree.stages.euclidean.layout import Layout
from initfree.stages.euclidean.lenses import Lenses

_NO_POINT = np.iinfo(np.uint64).max


@dataclass(frozen=True, eq=False)
class ModelArrays:
    """What the observations of a model's registered images hold.

    A track may have an image twice. The engine's landmarks meet an image once: further observations are of a copy of the
    image, with the same pose and lens (`layout.MergedPairs`).
    """

    image_ids: tuple[int, ...]
    names: tuple[str, ...]
    camera_ids: Index
    """(images,)"""
    frame_ids: tuple[int, ...]
    point_ids: Index
    """(landmarks,)"""
    image: Index
    """(images and copies,) index into the images"""
    tracks: Tracks
    keypoints: Array
    """(observations, 2)"""
    frame: Index
    """(images,) index into the frames"""
    R: Array
    """(frames, 3, 3) from world to rig"""
    t: Array
    sensors: tuple[Array, Array] | None
    """(images, 3, 3) and (images, 3) from rig to image; None where all images are their frames"""
    xyz: Array
    """(landmarks, 3)"""

    @classmethod
    def of(cls, model: pycolmap.Reconstruction, source: str = "the model") -> "ModelArrays":
        check_model(model, source)
        image_ids = sorted(int(k) for k, image in model.images.items() if image.has_pose)
        if len(image_ids) < 2:
            raise InputError(f"{source} has poses of {counted(len(image_ids), 'image')}; expected at least 2")
        images = [model.images[k] for k in image_ids]
        frame_ids, frame = np.unique([int(image.frame_id) for image in images], return_inverse=True)
        R, t = _poses([model.frames[int(k)].rig_from_world for k in frame_ids])
        sensors = None
        if not all(image.is_ref_in_frame() for image in images):
            sensors = _poses([_sensor(image, source) for image in images])
        stored = _stored(model)
        image, keypoints, point = _observations(stored, image_ids)
        if not len(point):
            raise InputError(f"{source} has no observations: none of its keypoints belongs to a point")
        point_ids, landmark = neighbours_together(image, *np.unique(point, return_inverse=True))
        order = np.lexsort((image, landmark))
        image, landmark, keypoints = image[order], landmark[order], keypoints[order]
        image_of, cam = _copies(image, landmark, len(images))
        order = np.lexsort((cam, landmark))
        ptr = np.concatenate([[0], np.cumsum(np.bincount(landmark))]).astype(np.int64)
        by_id = np.argsort(stored.point_ids)
        xyz = stored.xyz[by_id[np.searchsorted(stored.point_ids, point_ids.astype(np.uint64), sorter=by_id)]]
        for what, values in (("pose", R.reshape(-1, 9)), ("pose", t), ("point", xyz)):
            if not np.isfinite(values).all():
                raise InputError(f"{source}: a {what} is not finite; expected numbers")
        return cls(
            tuple(image_ids), tuple(image.name for image in images),
            np.array([int(image.camera_id) for image in images], dtype=np.int64),
            tuple(int(k) for k in frame_ids), point_ids, image_of,
            Tracks(np.ascontiguousarray(cam[order]), ptr, len(image_of)), np.ascontiguousarray(keypoints[order]),
            frame.astype(np.int64), R, t, sensors, xyz,
        )  # fmt: skip

    def view(self, lenses: Lenses) -> View:
        """Images and copies where the model has them."""
        frame = self.frame[self.image]
        of_each = Lenses(lenses.cameras, lenses.lens[self.image], lenses.free)
        return View(self.R[frame], self.t[frame], self.xyz, of_each)

    def layout(self, still: NDArray[np.bool_], still_landmarks: NDArray[np.bool_]) -> Layout:
        """With frames and landmarks that stay."""
        sensors = None if self.sensors is None else (self.sensors[0][self.image], self.sensors[1][self.image])
        return Layout(self.frame[self.image], still, still_landmarks, sensors)

    def written(self, model: pycolmap.Reconstruction, view: View) -> pycolmap.Reconstruction:
        """A copy of the model with what the view has."""
        result = pycolmap.Reconstruction(model)
        first = np.unique(self.frame, return_index=True)[1]
        quaternions = Rotation.from_matrix(view.R[first]).as_quat()
        for k, quaternion, t in zip(self.frame_ids, quaternions, view.t[first], strict=True):
            result.frame(k).rig_from_world = pycolmap.Rigid3d(pycolmap.Rotation3d(quaternion), t)
        for camera in view.lenses.cameras:
            result.camera(camera.camera_id).params = camera.params.tolist()
        points = result.points3D
        for k, xyz in zip(self.point_ids.tolist(), view.xyz, strict=True):
            points[k].xyz = xyz
        result.update_point_3d_errors()
        return result


def _poses(poses: Sequence[Any]) -> tuple[Array, Array]:
    R = np.array([pose.rotation.matrix() for pose in poses], dtype=np.float64).reshape(-1, 3, 3)
    return R, np.array([pose.translation for pose in poses], dtype=np.float64).reshape(-1, 3)


def _sensor(image: Any, source: str) -> pycolmap.Rigid3d:
    if image.is_ref_in_frame():
        return pycolmap.Rigid3d()
    pose = image.frame.rig.sensor_from_rig(image.data_id.sensor_id)
    if pose is None:
        raise InputError(f"{source}: the sensor of image {image.name!r} has no pose in its rig; expected one")
    return pose


def _stored(model: pycolmap.Reconstruction) -> StoredModel:
    """pycolmap makes an object of each keypoint and point; its own file, written and mapped, has them as arrays in a fifth
    of the time."""
    with tempfile.TemporaryDirectory(prefix=".initfree-") as folder:
        model.write_binary(folder)
        stored = check_files(Path(folder))
    assert stored is not None
    return stored


def _observations(stored: StoredModel, image_ids: list[int]) -> tuple[Index, Array, Index]:
    """Image (index), keypoint and point id of every observation."""
    image, keypoints, point = [], [], []
    for k, image_id in enumerate(image_ids):
        xy, ids = stored.images.of(image_id)
        used = ids != _NO_POINT
        image.append(np.full(np.count_nonzero(used), k))
        keypoints.append(xy[used])
        point.append(ids[used].astype(np.int64))
    return np.concatenate(image), np.concatenate(keypoints), np.concatenate(point)


def _copies(image: Index, landmark: Index, images: int) -> tuple[Index, Index]:
    """The image that each image or copy is, and of each observation its image or copy; rows sorted by landmark, image."""
    first = np.ones(len(image), dtype=bool)
    first[1:] = (image[1:] != image[:-1]) | (landmark[1:] != landmark[:-1])
    place = np.arange(len(image))
    rank = place - np.maximum.accumulate(np.where(first, place, 0))
    keys, number = np.unique(rank[rank > 0] * images + image[rank > 0], return_inverse=True)
    cam = image.copy()
    cam[rank > 0] = images + number
    return np.concatenate([np.arange(images), keys % images]).astype(np.int64), cam.astype(np.int64)
