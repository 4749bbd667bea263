"""COLMAP's database.db: keypoints and verified matches of the same observations, for COLMAP's own mappers."""

import tempfile
from collections.abc import Sequence, Sized
from pathlib import Path
from typing import Protocol

import numpy as np
import pycolmap
from numpy.typing import NDArray
from scipy.sparse import triu

from initfree.generator.projections import Projections

EXHAUSTIVE = 200
"""Up to this many images every pair that shares a landmark is matched; beyond, only the strongest."""
PARTNERS = 8
"""Beyond EXHAUSTIVE images, each image is matched with the images that share most landmarks with it."""


class Matched(Protocol):
    """What a database holds of a `Dataset`, or of tracks that come from elsewhere."""

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def cameras(self) -> Sequence[pycolmap.Camera]: ...
    @property
    def camera_of_image(self) -> NDArray[np.int64]:
        """Index into `cameras` for every image."""
        ...

    @property
    def landmarks(self) -> Sized: ...
    @property
    def noisy(self) -> Projections: ...


def write_database(dataset: Matched, path: Path, min_inliers: int = 15) -> None:
    """Keypoints are the noisy observations; two keypoints match where they claim the same landmark.

    The matches are verified by COLMAP, from the keypoints and known intrinsics alone: what a mapper is given
    holds nothing of the truth. Pairs with fewer inliers than `min_inliers` keep their matches but are not verified.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        unverified = Path(scratch, "database.db")
        with pycolmap.Database.open(unverified) as database, pycolmap.DatabaseTransaction(database):
            _write_images(dataset, database)
            _write_matches(dataset, database)
        options = pycolmap.TwoViewGeometryOptions()
        options.min_num_inliers = min_inliers
        options.ransac.random_seed = 0
        # The number of trials adapts to the outliers; COLMAP's floor of 100 only costs time on clean matches.
        options.ransac.min_num_trials = 30
        level, pycolmap.logging.minloglevel = pycolmap.logging.minloglevel, 1
        try:
            pycolmap.geometric_verification(unverified, two_view_geometry_options=options)
        finally:
            pycolmap.logging.minloglevel = level
        # COLMAP's threads store pairs as they finish; written in order, the file is the same on every run.
        with pycolmap.Database.open(unverified) as database:
            found = dict(zip(*database.read_two_view_geometries(), strict=True))
        with pycolmap.Database.open(path) as database, pycolmap.DatabaseTransaction(database):
            _write_images(dataset, database)
            _write_matches(dataset, database)
            for pair in sorted(found):
                database.write_two_view_geometry(*pycolmap.pair_id_to_image_pair(pair), found[pair])


def _write_images(dataset: Matched, database: pycolmap.Database) -> None:
    """Cameras, each its own rig, and images, each its own frame, with their keypoints."""
    for camera in dataset.cameras:
        database.write_camera(camera, use_camera_id=True)
        rig = pycolmap.Rig()
        rig.rig_id = camera.camera_id
        rig.add_ref_sensor(camera.sensor_id)
        database.write_rig(rig, use_rig_id=True)
    observations = dataset.noisy
    rows = _rows_of_images(dataset)
    for i, name in enumerate(dataset.names):
        camera_id = dataset.cameras[dataset.camera_of_image[i]].camera_id
        image = pycolmap.Image(name=name, camera_id=camera_id, image_id=i + 1)
        database.write_image(image, use_image_id=True)
        frame = pycolmap.Frame()
        frame.frame_id, frame.rig_id = i + 1, camera_id
        frame.add_data_id(image.data_id)
        database.write_frame(frame, use_frame_id=True)
        # The rows of one image in order: the same point2D indices as in the COLMAP models.
        database.write_keypoints(i + 1, observations.pixel[rows[i]].astype(np.float32))


def _write_matches(dataset: Matched, database: pycolmap.Database) -> None:
    tracks = [dataset.noisy.landmark[rows] for rows in _rows_of_images(dataset)]
    for first, second in pairs(dataset):
        _, left, right = np.intersect1d(tracks[first], tracks[second], assume_unique=True, return_indices=True)
        database.write_matches(first + 1, second + 1, np.stack([left, right], axis=1).astype(np.uint32))


def pairs(dataset: Matched) -> list[tuple[int, int]]:
    """The image pairs that are matched, first < second, in order."""
    images = len(dataset.names)
    shared = dataset.noisy.covisibility(images, len(dataset.landmarks))
    if images <= EXHAUSTIVE:
        upper = triu(shared, k=1).tocoo()
        return sorted(zip(upper.row.tolist(), upper.col.tolist(), strict=True))
    chosen = set()
    for i in range(images):
        row = shared[[i]].tocoo()
        others = row.col != i
        best = row.col[others][np.lexsort((row.col[others], -row.data[others]))[:PARTNERS]]
        chosen |= {(min(i, int(j)), max(i, int(j))) for j in best}
    return sorted(chosen)


def _rows_of_images(dataset: Matched) -> list[np.ndarray]:
    order = np.argsort(dataset.noisy.image, kind="stable")
    return np.split(order, np.cumsum(dataset.noisy.per_image(len(dataset.names)))[:-1])
