"""Observations of formats that list them row by row: image, landmark, x, y."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pycolmap

from initfree.data.observations import LARGEST_IMAGE, Image, Intrinsics, Observations, check_count, observe
from initfree.data.tracks import Array, Index, rows_of_each
from initfree.errors import InputError


def observations_of_rows(
    source: str,
    names: Sequence[str],
    cameras: Sequence[pycolmap.Camera],
    image: Index,
    landmark_id: Index,
    xy: Array,
    intrinsics: Intrinsics,
    camera_of: Sequence[int] | None = None,
) -> Observations:
    """Image k is id k + 1 and has the camera of number `camera_of[k]`, by default k; cameras get the ids 1, 2, ..."""
    if len(xy) and not np.isfinite(xy).all():
        bad = int(np.flatnonzero(~np.isfinite(xy).all(axis=1))[0])
        raise InputError(
            f"{source}: image {names[int(image[bad])]!r} has an observation at {xy[bad].tolist()}; expected finite numbers"
        )
    by_id = {}
    for k, camera in enumerate(cameras):
        camera.camera_id = k + 1
        by_id[k + 1] = camera
    order = np.argsort(image, kind="stable")
    begin = np.searchsorted(image[order], np.arange(len(names) + 1))
    keypoint = np.empty(len(image), dtype=np.int64)
    keypoint[order] = np.arange(len(image)) - begin[image[order]]
    images = [
        Image(name, k + 1, 1 + (k if camera_of is None else camera_of[k]), xy[order[begin[k] : begin[k + 1]]])
        for k, name in enumerate(names)
    ]
    return observe(source, images, by_id, image, landmark_id, keypoint, intrinsics=intrinsics)


def observations_of_array(
    source: str,
    names: Sequence[str],
    cameras: Sequence[pycolmap.Camera],
    image: Index,
    landmark_id: Index,
    xy: Array,
    intrinsics: Intrinsics,
    moments: dict[int, tuple[str, str]],
) -> Observations:
    """Of fixed cameras, one an image, in an order that only what they saw decides: a solve sums in the order of the
    cameras and of their detections, and the same recording with its cameras or its rows in another order has to give the
    same numbers to the last digit.

    Ids of images are those of the given order, from 1.
    """
    check_count(source, len(names))
    by_landmark = np.lexsort((xy[:, 1], xy[:, 0], landmark_id))
    of_each = rows_of_each(image[by_landmark], len(names))

    def seen(k: int) -> tuple[int, bytes, bytes]:
        rows = by_landmark[of_each[k]]
        return -len(rows), landmark_id[rows].tobytes(), xy[rows].tobytes()

    order = sorted(range(len(names)), key=seen)
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    rows = np.lexsort((xy[:, 1], xy[:, 0], place[image], landmark_id))
    found = observations_of_rows(
        source, [names[k] for k in order], [cameras[k] for k in order], place[image[rows]], landmark_id[rows], xy[rows],
        intrinsics,
    )  # fmt: skip
    images = tuple(replace(one, image_id=k + 1) for one, k in zip(found.images, order, strict=True))
    return replace(found, images=images, moments=moments)


def unknown_camera(width: float, height: float) -> pycolmap.Camera:
    """A camera of which the image's size is all that is known."""
    if not 1 <= min(width, height) <= max(width, height) <= LARGEST_IMAGE:
        raise ValueError(f"an image of {width:g} x {height:g} pixels, not 1 to {LARGEST_IMAGE}")
    focal = float(max(width, height))
    return pycolmap.Camera(
        model="SIMPLE_RADIAL", width=int(width), height=int(height), params=[focal, width / 2.0, height / 2.0, 0.0]
    )


def centred_camera(focal: float, k1: float, k2: float, size: int) -> pycolmap.Camera:
    """A camera of a format that measures from the middle of images of untold size."""
    return pycolmap.Camera(model="RADIAL", width=size, height=size, params=[focal, size / 2.0, size / 2.0, k1, k2])


def size_around(source: str, xy: Array) -> int:
    """Width of a square image around its middle that holds all observations measured from there."""
    farthest = float(np.abs(xy[np.isfinite(xy)]).max(initial=1.0))
    if 2.0 * farthest + 2.0 > LARGEST_IMAGE:
        raise InputError(f"{source} has an observation {farthest:.6g} px from the middle of its image; expected a pixel")
    return 2 * int(np.ceil(float(np.abs(xy[np.isfinite(xy)]).max(initial=1.0)))) + 2


def opencv_camera(
    source: str, width: int, height: int, K: Array, distortion: Array, fisheye: bool = False
) -> pycolmap.Camera:
    """OpenCV's K and distortion (k1 k2 p1 p2 [k3 [k4 k5 k6]], or k1 k2 k3 k4 of a fisheye) as a COLMAP camera."""
    d = np.asarray(distortion, dtype=np.float64).reshape(-1)
    focal = [K[0, 0], K[1, 1], K[0, 2], K[1, 2]] if K.shape == (3, 3) else [0.0]
    if not (np.isfinite(K).all() and np.isfinite(d).all()) or min(focal[:2]) <= 0.0:
        raise InputError(
            f"{source}: the camera matrix is {K.tolist()}, the distortion {d.tolist()}; expected finite 3x3, f > 0"
        )
    most = 4 if fisheye else 8
    if len(d) > most and d[most:].any():
        raise InputError(f"{source}: {len(d)} distortion coefficients; expected at most {most}")
    d = np.concatenate([d, np.zeros(most)])[:most]
    if fisheye:
        return pycolmap.Camera(model="OPENCV_FISHEYE", width=width, height=height, params=[*focal, *d])
    if d[4:].any():
        return pycolmap.Camera(model="FULL_OPENCV", width=width, height=height, params=[*focal, *d])
    return pycolmap.Camera(model="OPENCV", width=width, height=height, params=[*focal, *d[:4]])
