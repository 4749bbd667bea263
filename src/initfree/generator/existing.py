"""An existing COLMAP model as a dataset: Set 5, the South Building."""

import os
from pathlib import Path

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.errors import InputError
from initfree.generator.config import ColmapModel
from initfree.generator.pose_files import read_model
from initfree.generator.projections import Projections
from initfree.generator.scenes import Candidates
from initfree.generator.streams import stream
from initfree.generator.trajectories import Poses

Loaded = tuple[list[str], list[pycolmap.Camera], NDArray[np.int64], Poses, Candidates, Projections]

_PLACES = (
    "south_building/sparse",
    "south_building/sparse/0",
    "south-building/sparse",
    "sparse/0",
    "sparse",
    "",
)


def find_model(path: Path | None) -> Path:
    """The model's directory: `path`, or the South Building under INITFREE_DATA."""
    if path is not None:
        return path
    root = os.environ.get("INITFREE_DATA")
    how = (
        "download south-building.zip from the COLMAP project's dataset page, unpack it, and set "
        "INITFREE_DATA to the directory that has south-building/sparse in it (or write scene.path in a "
        "TOML file)"
    )
    if not root:
        raise InputError(f"the South Building is real data that initfree does not ship: {how}")
    for place in _PLACES:
        folder = Path(root, place)
        if any((folder / f"images{suffix}").is_file() for suffix in (".bin", ".txt")):
            return folder
    raise InputError(f"no COLMAP model of the South Building under INITFREE_DATA = {root}: {how}")


def existing(scene: ColmapModel, shuffle: bool, seed: int) -> Loaded:
    """Posed images in the order of their names (or shuffled), points with their measured observations."""
    model = read_model(find_model(scene.path))
    images = sorted((image for image in model.images.values() if image.has_pose), key=lambda image: image.name)
    if not images or not model.num_points3D():
        raise InputError(f"the COLMAP model in {find_model(scene.path)} has no posed images or no points")
    if shuffle:
        images = [images[k] for k in stream(seed, "shuffle").permutation(len(images))]
    cameras = sorted(model.cameras.values(), key=lambda camera: camera.camera_id)
    place = {camera.camera_id: k for k, camera in enumerate(cameras)}
    number = {image.image_id: i for i, image in enumerate(images)}
    pixels = {image.image_id: np.array([point.xy for point in image.points2D]) for image in images}
    point_ids = sorted(model.point3D_ids())
    rows, xy = [], []
    for j, point_id in enumerate(point_ids):
        seen = set()
        for element in model.point3D(point_id).track.elements:
            # A track may hold two keypoints of one image; the first stands for both.
            if element.image_id in number and element.image_id not in seen:
                seen.add(element.image_id)
                rows.append((number[element.image_id], j))
                xy.append(pixels[element.image_id][element.point2D_idx])
    index = np.array(rows, np.int32)
    observations = Projections(index[:, 0], index[:, 1], np.array(xy)).sorted()
    matrices = np.stack([image.cam_from_world().matrix() for image in images])
    positions = np.stack([model.point3D(k).xyz for k in point_ids])
    scale = 1.0 if scene.spread is None else scene.spread / float(np.sqrt(positions.var(axis=0).sum()))
    colors = np.stack([model.point3D(k).color for k in point_ids]).astype(np.uint8)
    return (
        [image.name for image in images],
        cameras,
        np.array([place[image.camera_id] for image in images]),
        Poses(matrices[:, :, :3], scale * matrices[:, :, 3]),
        Candidates(scale * positions, np.zeros_like(positions), colors),
        observations,
    )
