"""COLMAP's database, as its feature extractor and any of its matchers, or hloc, write it: tracks from verified matches.

The database is opened with SQLite, read-only, because COLMAP's own library opens it for writing and upgrades old ones.
The tables are those of every COLMAP since 3.0; later columns (relative poses, F, E) are used if present.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

from initfree.arrays.rigs import Mount
from initfree.data.observations import CALIBRATED, EXIF, GUESS, FocalPrior, Image, Intrinsics, Observations, observe
from initfree.data.pairs import VerifiedPairs
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.io.sqlite import Row, Tables, tables_of
from initfree.two_view.matches import tracks_from_matches

MIN_INLIERS = 15
"""of a pair that is used, as in COLMAP's mappers"""
_MOST_IMAGES = 2**31 - 1
_USED = {
    int(config)
    for config in (
        pycolmap.TwoViewGeometryConfiguration.CALIBRATED,
        pycolmap.TwoViewGeometryConfiguration.UNCALIBRATED,
        pycolmap.TwoViewGeometryConfiguration.PLANAR,
        pycolmap.TwoViewGeometryConfiguration.PANORAMIC,
        pycolmap.TwoViewGeometryConfiguration.PLANAR_OR_PANORAMIC,
    )
}
"""two-view geometries of one scene: no watermarks, no degenerate ones"""
_EPIPOLAR = {
    int(config)
    for config in (
        pycolmap.TwoViewGeometryConfiguration.CALIBRATED,
        pycolmap.TwoViewGeometryConfiguration.UNCALIBRATED,
    )
}
"""those whose matches determine a fundamental matrix: a homography explains the others"""


@dataclass(frozen=True)
class Database:
    """The tables' content for the selected images."""

    images: tuple[Image, ...]
    cameras: dict[int, pycolmap.Camera]
    pairs: VerifiedPairs
    mounts: dict[int, Mount]
    """by image id; empty before COLMAP 3.12"""
    matched: int
    """image pairs with matches, verified or not"""


def read_observations(path: Path, intrinsics: Intrinsics | None = None, names: Iterable[str] | None = None) -> Observations:
    """Tracks of the verified matches; landmarks are numbered from 1.

    Without `intrinsics` they are known where every camera used was calibrated, otherwise refined, each focal length about
    what the database says of it: see `_deviation`. `names` restricts to those images.
    """
    found = read_database(path, names)
    if not len(found.pairs.image):
        matched = f" ({found.matched} pairs have matches that nobody verified)" if found.matched else ""
        raise InputError(
            f"{path} has no verified matches: no image pair has {MIN_INLIERS} inliers of a two-view geometry{matched}; "
            f"run a matcher of COLMAP (it verifies), or `colmap geometric_verifier --database_path {path}` after another's"
        )
    tracks = tracks_from_matches(
        [image.keypoints for image in found.images], found.pairs.image, found.pairs.ptr, found.pairs.keypoint
    )
    priors = {k: FocalPrior(camera.mean_focal_length(), _deviation(camera)) for k, camera in found.cameras.items()}
    if intrinsics is None:
        used = {found.images[k].camera_id for k in np.unique(tracks.image)}
        intrinsics = "known" if all(priors[k].deviation == CALIBRATED for k in used) else "refine"
    return observe(
        str(path), found.images, found.cameras, tracks.image, tracks.track + 1, tracks.keypoint,
        intrinsics=intrinsics, pairs=found.pairs, mounts=found.mounts, focal_priors=priors,
    )  # fmt: skip


def _deviation(camera: pycolmap.Camera) -> float:
    """How far off its focal length may be.

    COLMAP sets `prior_focal_length` for what EXIF says as for a calibration. EXIF knows no distortion, no principal point
    and one focal length only: a camera that has any of them was calibrated.
    """
    if not camera.has_prior_focal_length:
        return GUESS
    off = camera.principal_point_x != camera.width / 2.0 or camera.principal_point_y != camera.height / 2.0
    distorted = any(camera.params[k] != 0.0 for k in camera.extra_params_idxs())
    return CALIBRATED if off or distorted or camera.focal_length_x != camera.focal_length_y else EXIF


def read_database(path: Path, names: Iterable[str] | None = None) -> Database:
    """Images with their keypoints, cameras and verified pairs, ordered by id."""
    with tables_of(path) as tables:
        cameras = _cameras(tables)
        wanted = None if names is None else set(names)
        rows = [
            row
            for row in tables.rows("images", image_id=int, name=str, camera_id=int)
            if wanted is None or row["name"] in wanted
        ]
        missing = sorted((wanted or set()) - {row["name"] for row in rows})
        if missing:
            raise InputError(f"{path} has no image named {missing[0]!r}; the image list names {len(missing)} that it lacks")
        rows.sort(key=lambda row: row["image_id"])
        keypoints = _keypoints(tables)
        images = []
        for row in rows:
            if row["camera_id"] not in cameras:
                raise InputError(
                    f"{path}: image {row['name']!r} has camera {row['camera_id']}, which is not in the database"
                )
            xy = keypoints.get(row["image_id"], np.empty((0, 2)))
            images.append(Image(row["name"], row["image_id"], row["camera_id"], xy))
        pairs = _pairs(tables, images)
        mounts = _mounts(tables, images)
        matched = sum(row["rows"] > 0 for row in tables.rows("matches", rows=int)) if "matches" in tables else 0
    used = {image.camera_id for image in images}
    return Database(tuple(images), {k: camera for k, camera in cameras.items() if k in used}, pairs, mounts, matched)


def _cameras(tables: Tables) -> dict[int, pycolmap.Camera]:
    path, cameras = tables.path, {}
    numbers = dict.fromkeys(("camera_id", "model", "width", "height", "prior_focal_length"), int)
    for row in tables.rows("cameras", params=bytes, **numbers):
        params = _array(row["params"], np.float64, path, f"parameters of camera {row['camera_id']}")
        try:
            model = pycolmap.CameraModelId(row["model"])
            camera = pycolmap.Camera(
                camera_id=row["camera_id"], model=model, width=row["width"], height=row["height"], params=params.tolist()
            )
            valid = camera.verify_params()
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise InputError(f"{path}: camera {row['camera_id']} has model {row['model']}, unknown to COLMAP") from error
        if not valid:
            raise InputError(
                f"{path}: camera {row['camera_id']} has {len(params)} parameters, not those of {camera.model_name}"
            )
        camera.has_prior_focal_length = bool(row["prior_focal_length"])
        cameras[row["camera_id"]] = camera
    return cameras


def _keypoints(tables: Tables) -> dict[int, Array]:
    """Pixels of every image's keypoints; what follows them (scale, orientation, affine shape) is not used."""
    path, result = tables.path, {}
    for row in tables.rows("keypoints", image_id=int, rows=int, cols=int, data=bytes):
        data = _matrix(row, np.float32, path, f"keypoints of image {row['image_id']}")
        if len(data) and data.shape[1] < 2:
            raise InputError(
                f"{path}: the keypoints of image {row['image_id']} have {row['cols']} columns; expected x, y, ..."
            )
        result[row["image_id"]] = data[:, :2].astype(np.float64) if len(data) else np.empty((0, 2))
    return result


def _pairs(tables: Tables, images: list[Image]) -> VerifiedPairs:
    path = tables.path
    index = {image.image_id: k for k, image in enumerate(images)}
    pairs, matches, R, t, F = [], [], [], [], []
    found = tables.rows(
        "two_view_geometries",
        {"F": bytes, "qvec": bytes, "tvec": bytes},
        pair_id=int,
        rows=int,
        cols=int,
        data=bytes,
        config=int,
    )
    for row in sorted(found, key=lambda row: row["pair_id"]):
        # image_pair_to_pair_id: 2147483647 · the smaller id + the larger one.
        one, two = divmod(row["pair_id"], _MOST_IMAGES)
        if row["config"] not in _USED or row["rows"] < MIN_INLIERS or one not in index or two not in index:
            continue
        what = f"matches of images {one} and {two}"
        match = _matrix(row, np.uint32, path, what).astype(np.int64)
        if match.shape[1] != 2:
            raise InputError(f"{path}: the {what} have {row['cols']} columns; expected two keypoints each")
        counts = np.array([len(images[index[k]].keypoints) for k in (one, two)])
        if (match >= counts).any():
            raise InputError(f"{path}: the {what} name a keypoint that an image has not ({match.max(axis=0)} of {counts})")
        pairs.append((index[one], index[two]))
        matches.append(match)
        rotation, translation = _relative_pose(row, path)
        R.append(rotation)
        t.append(translation)
        F.append(_fundamental_matrix(row, path))
    count = len(pairs)
    return VerifiedPairs(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.concatenate([[0], np.cumsum([len(match) for match in matches])]).astype(np.int64),
        np.concatenate([np.empty((0, 2), dtype=np.int64), *matches]),
        np.array(R).reshape(count, 3, 3),
        np.array(t).reshape(count, 3),
        np.array(F).reshape(count, 3, 3),
    )


def _mounts(tables: Tables, images: list[Image]) -> dict[int, Mount]:
    """Frames and rigs of the images; poses of the sensors are ignored."""
    if "frames" not in tables or "frame_data" not in tables:
        return {}
    rig_of = {row["frame_id"]: row["rig_id"] for row in tables.rows("frames", frame_id=int, rig_id=int)}
    by_id, mounts = {image.image_id: image for image in images}, {}
    for row in tables.rows("frame_data", frame_id=int, data_id=int, sensor_id=int, sensor_type=int):
        image, frame = by_id.get(row["data_id"]), row["frame_id"]
        if image is None or row["sensor_type"] != int(pycolmap.SensorType.CAMERA):
            continue
        if frame not in rig_of:
            raise InputError(f"{tables.path}: image {image.name!r} is in frame {frame}, which is not in the database")
        # If an image has another camera than its frame's sensor, the frame is out of date.
        if row["sensor_id"] == image.camera_id:
            mounts[image.image_id] = Mount(rig_of[frame], frame, image.camera_id)
    return mounts


def _relative_pose(row: Row, path: Path) -> tuple[Array, Array]:
    """Rotation and direction; NaN if there are none, or if the translation is zero and nothing was estimated."""
    nothing = np.full((3, 3), np.nan), np.full(3, np.nan)
    if not row["qvec"] or not row["tvec"]:
        return nothing
    q = _array(row["qvec"], np.float64, path, "relative rotations")
    t = _array(row["tvec"], np.float64, path, "relative translations")
    length = float(np.linalg.norm(t))
    if len(q) != 4 or len(t) != 3 or not np.isfinite([*q, length]).all() or length == 0.0 or not q.any():
        return nothing
    return Rotation.from_quat(q[[1, 2, 3, 0]]).as_matrix(), t / length


def _fundamental_matrix(row: Row, path: Path) -> Array:
    """Not a number where there is none, or matches of a plane leave it open. Of rank two: programs that estimate none write
    the identity."""
    nothing = np.full((3, 3), np.nan)
    if not row["F"] or row["config"] not in _EPIPOLAR:
        return nothing
    F = _array(row["F"], np.float64, path, "fundamental matrices")
    if len(F) != 9 or not np.isfinite(F).all() or not F.any():
        return nothing
    F = F.reshape(3, 3) / np.linalg.norm(F)
    return F if np.abs(np.linalg.det(F)) < 1e-6 else nothing


def _matrix(row: Row, dtype: Any, path: Path, what: str) -> Any:
    values = _array(row["data"], dtype, path, what)
    if row["rows"] < 0 or row["cols"] < 0 or len(values) != row["rows"] * row["cols"]:
        raise InputError(f"{path}: the {what} are {len(values)} numbers; expected {row['rows']} x {row['cols']}")
    return values.reshape(row["rows"], row["cols"])


def _array(blob: Any, dtype: Any, path: Path, what: str) -> Any:
    if blob is None:
        return np.empty(0, dtype=dtype)
    if not isinstance(blob, bytes) or len(blob) % np.dtype(dtype).itemsize:
        raise InputError(f"{path}: the {what} are no array of {np.dtype(dtype).name}")
    return np.frombuffer(blob, dtype=dtype)
