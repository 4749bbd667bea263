"""What every reader ends with: images, cameras and observations become `Observations`, checked and normalised."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.errors import InputError
from initfree.normalization import scaled_keypoints
from initfree.pairs import VerifiedPairs
from initfree.problem import Image, IntrinsicsKind, Observations, without_repeats
from initfree.tracks import Array, Index

FARTHEST = 1e6
"""calibrated units or image widths: beyond, a coordinate is no observation but a broken number"""


def assemble(
    source: str,
    images: Sequence[Image],
    cameras: dict[int, pycolmap.Camera],
    image: Index,
    landmark_id: Index,
    keypoint: Index,
    *,
    intrinsics: IntrinsicsKind,
    colour: NDArray[np.uint8] | None = None,
    pairs: VerifiedPairs | None = None,
) -> Observations:
    """Observations (image, landmark_id, keypoint), one a row.

    Calibrated rays, or with unknown intrinsics scaled pixels. A second observation of a landmark in an image, and one that
    the camera model maps no ray to, are left out and counted.
    """
    _check_names(images, source)
    _check_cameras(cameras, source)
    _check_keypoints(images, image, keypoint, source)
    first = without_repeats(image, landmark_id)
    repeated = int(np.count_nonzero(~first))
    image, landmark_id, keypoint = image[first], landmark_id[first], keypoint[first]
    calibrated = intrinsics != "unknown"
    normalise = _calibrated if calibrated else scaled_keypoints
    normalised, unit = normalise(images, cameras, image, keypoint)
    far = np.flatnonzero(np.abs(normalised).max(axis=1, initial=0.0) > FARTHEST)
    if len(far):
        at, k = images[int(image[far[0]])], int(keypoint[far[0]])
        raise InputError(f"{source}: image {at.name!r} has keypoint {k} at {at.keypoints[k].tolist()}, far outside of it")
    kept = np.flatnonzero(np.isfinite(normalised).all(axis=1))
    if len(normalised) and not len(kept):
        raise InputError(f"{source}: no keypoint can be undistorted with the given intrinsics")
    return Observations(
        source, tuple(images), cameras, calibrated, image[kept], landmark_id[kept], keypoint[kept], normalised[kept], unit,
        repeated, len(normalised) - len(kept), intrinsics=intrinsics,
        colour=None if colour is None else colour[first][kept], pairs=pairs,
    )  # fmt: skip


def _check_names(images: Sequence[Image], source: str) -> None:
    repeated = [name for name, count in Counter(image.name for image in images).items() if count > 1]
    if repeated:
        both = [image.image_id for image in images if image.name == repeated[0]]
        raise InputError(f"{source}: images {both[0]} and {both[1]} are both named {repeated[0]!r}")


def _check_cameras(cameras: dict[int, Any], source: str) -> None:
    for camera_id, camera in cameras.items():
        if not all(math.isfinite(value) for value in camera.params) or camera.mean_focal_length() <= 0.0:
            raise InputError(
                f"{source}: camera {camera_id} has parameters {[float(value) for value in camera.params]}; "
                "expected finite numbers and a positive focal length"
            )


def _check_keypoints(images: Sequence[Image], image: Index, keypoint: Index, source: str) -> None:
    """Those that are observed must exist and be finite."""
    counts = np.array([len(one.keypoints) for one in images], dtype=np.int64)
    missing = np.flatnonzero((keypoint < 0) | (keypoint >= counts[image]))
    if len(missing):
        at = images[int(image[missing[0]])]
        raise InputError(
            f"{source}: image {at.name!r} has {len(at.keypoints)} keypoints, none of number {keypoint[missing[0]]}"
        )
    if not len(image):
        return
    start = np.concatenate([[0], np.cumsum(counts)[:-1]])
    xy = np.concatenate([one.keypoints for one in images])[start[image] + keypoint]
    bad = np.flatnonzero(~np.isfinite(xy).all(axis=1))
    if len(bad):
        name, k = images[int(image[bad[0]])].name, int(keypoint[bad[0]])
        raise InputError(f"{source}: image {name!r} has keypoint {k} at {xy[bad[0]].tolist()}; expected finite numbers")


def _calibrated(images: Sequence[Image], cameras: dict[int, Any], image: Index, keypoint: Index) -> tuple[Array, Array]:
    """Calibrated rays: distortion and intrinsics undone by pycolmap, whatever the camera model."""
    normalised = np.empty((len(image), 2))
    unit = np.empty((len(images), 2))
    for k, one in enumerate(images):
        camera = cameras[one.camera_id]
        unit[k] = camera.focal_length_x, camera.focal_length_y
        here = image == k
        if here.any():
            normalised[here] = camera.cam_from_img(one.keypoints[keypoint[here]])
    return normalised, unit
