"""Which photographs share a camera, and which were taken at once by the sensors of a rig."""

from pathlib import Path, PurePosixPath
from typing import Any

import pycolmap

from initfree.photographs.settings import Cameras


def share_cameras(database: Path, names: list[str], how: Cameras) -> dict[str, int]:
    """Let photographs share cameras in the database; ids of those that it has features of, by name.

    Each camera is extracted as one of its own; those that are shared have the lowest id.
    """
    wanted = set(names)
    with pycolmap.Database.open(database) as opened, pycolmap.DatabaseTransaction(opened):
        # Frames and rigs name cameras: they are made anew.
        opened.clear_frames()
        opened.clear_rigs()
        everything = opened.read_all_images()
        found = [one for one in everything if one.name in wanted and opened.num_keypoints_for_image(one.image_id) > 0]
        cameras = {camera.camera_id: camera for camera in opened.read_all_cameras()}
        groups: dict[Any, list[pycolmap.Image]] = {}
        for image in sorted(found, key=lambda image: image.image_id):
            groups.setdefault(_key(image, cameras[image.camera_id], how), []).append(image)
        for group in groups.values():
            camera = min(
                (cameras[one.camera_id] for one in group), key=lambda c: (not c.has_prior_focal_length, c.camera_id)
            )
            for image in group:
                image.camera_id = camera.camera_id
                opened.update_image(image)
        _move_priors(opened, {image.image_id: image for image in found})
        _write_frames(opened, [group[0].camera_id for group in groups.values()], found, rig=how == "rig")
    return {image.name: image.image_id for image in found}


def _move_priors(database: pycolmap.Database, images: dict[int, pycolmap.Image]) -> None:
    """Positions of EXIF belong to an image of a camera."""
    priors = database.read_all_pose_priors()
    database.clear_pose_priors()
    for prior in priors:
        if prior.corr_data_id.id in images:
            prior.corr_data_id = images[prior.corr_data_id.id].data_id
            database.write_pose_prior(prior)


def _key(image: pycolmap.Image, camera: pycolmap.Camera, how: Cameras) -> Any:
    """Of the photographs that share a camera; never of several sizes."""
    size, folder = (camera.width, camera.height), PurePosixPath(image.name).parent
    match how:
        case "single":
            return size
        case "image":
            return image.image_id
        case "folder" | "rig":
            return folder, size
        case "auto":
            return folder, size, camera.model_name, tuple(camera.params), camera.has_prior_focal_length


def _write_frames(database: pycolmap.Database, cameras: list[int], images: list[pycolmap.Image], *, rig: bool) -> None:
    """A rig for each camera and a frame for each image; or one rig of all cameras, and a frame for each name of a file."""
    sensors = [pycolmap.sensor_t(type=pycolmap.SensorType.CAMERA, id=k) for k in cameras]
    rigs: dict[int, int] = {}
    for group in [sensors] if rig else [[sensor] for sensor in sensors]:
        made = pycolmap.Rig()
        made.add_ref_sensor(group[0])
        for sensor in group[1:]:
            made.add_sensor(sensor, None)
        rig_id = database.write_rig(made)
        rigs |= {sensor.id: rig_id for sensor in group}
    frames: dict[Any, pycolmap.Frame] = {}
    for image in images:
        frame = frames.setdefault(PurePosixPath(image.name).name if rig else image.image_id, pycolmap.Frame())
        frame.rig_id = rigs[image.camera_id]
        frame.add_data_id(image.data_id)
    for frame in frames.values():
        database.write_frame(frame)
