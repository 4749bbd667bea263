"""Observations from arrays in memory: tracks of any tracker, without a file."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from initfree.data.observations import LEAST_FOCAL, Image, Intrinsics, Observations, guessed_sizes, observe
from initfree.data.tracks import Array, Index
from initfree.errors import InputError

_SOURCE = "the tracks"
FOCAL_OF_RAYS = 1000.0
"""pixels: rays are observations of a camera with this focal length, so that errors have a unit"""


def observations_from_tracks(
    image: Any,
    landmark: Any,
    xy: Any,
    *,
    cameras: Any = None,
    names: Sequence[str] | None = None,
    sizes: Any = None,
    intrinsics: Intrinsics | None = None,
) -> Observations:
    """See `Problem.from_tracks`."""
    image, landmark = _numbers("image", image), _numbers("landmark", landmark)
    xy = _real("xy", xy)
    if not (len(image) == len(landmark) == len(xy)) or xy.shape != (len(xy), 2):
        raise InputError(
            f"{_SOURCE}: image has shape {image.shape}, landmark {landmark.shape}, xy {xy.shape}; expected n, n and (n, 2)"
        )
    if not len(xy):
        raise InputError(f"{_SOURCE}: there is no observation; expected some of two images at least")
    if not np.isfinite(xy).all():
        bad = int(np.flatnonzero(~np.isfinite(xy).all(axis=1))[0])
        raise InputError(f"{_SOURCE}: xy of observation {bad} is {xy[bad].tolist()}; expected finite numbers")
    if image.min() < 0:
        raise InputError(f"{_SOURCE}: image {image.min()} is below zero; expected indices from 0")
    count = len(names) if names is not None else int(image.max()) + 1
    if image.max() >= count:
        raise InputError(f"{_SOURCE}: image {image.max()} has no name; {count} names were given")
    order = np.argsort(image, kind="stable")
    keypoint = np.empty(len(image), dtype=np.int64)
    begin = np.searchsorted(image[order], np.arange(count + 1))
    keypoint[order] = np.arange(len(order)) - begin[image[order]]
    _check_kind(cameras)
    K = _matrices(cameras)
    if K is not None and ((K[..., 0, 0] > 0.0) & (K[..., 0, 0] < LEAST_FOCAL)).all():
        scale = FOCAL_OF_RAYS / K[..., 0, 0].mean()
        xy, cameras = scale * xy, K * np.array([[scale], [scale], [1.0]])
    if cameras is None and np.ptp(xy, axis=0).max() < LEAST_FOCAL:
        raise InputError(
            f"{_SOURCE}: xy spans {np.ptp(xy, axis=0).tolist()}; expected pixels, or K of normalised coordinates"
        )
    shape = _sizes(sizes, count, xy)
    models, of_image, given = _cameras(cameras, count, shape)
    labels = [f"image{k:05d}" for k in range(count)] if names is None else [str(name) for name in names]
    images = [Image(labels[k], k + 1, of_image[k], xy[order[begin[k] : begin[k + 1]]]) for k in range(count)]
    if intrinsics is None:
        intrinsics = "known" if given else "unknown"
    elif intrinsics != "unknown" and not given:
        raise InputError(f"{_SOURCE}: intrinsics are {intrinsics!r}, but no cameras were given")
    found = observe(_SOURCE, images, models, image, landmark, keypoint, intrinsics=intrinsics)
    if sizes is not None or given:
        return found
    return replace(found, sizes_guessed=True, notes=(guessed_sizes(f"{_SOURCE} have no sizes", shape[0], "sizes"),))


def flattened(xy: Any, visible: Any = None) -> tuple[Index, Index, Array]:
    """image, landmark and xy of a tracker's array (frames, points, 2), without points that are NaN or not `visible`."""
    xy = _real("the array", xy)
    if xy.ndim != 3 or xy.shape[2] != 2:
        raise InputError(f"{_SOURCE}: the array has shape {xy.shape}; expected (frames, points, 2)")
    seen = np.isfinite(xy).all(axis=2)
    if visible is not None:
        visible = np.asarray(visible)
        if visible.shape != xy.shape[:2]:
            raise InputError(f"{_SOURCE}: visibility has shape {visible.shape}; expected {xy.shape[:2]}")
        seen &= visible.astype(bool)
    frame, point = np.nonzero(seen)
    return frame, point, xy[frame, point]


def _numbers(name: str, values: Any) -> Index:
    values = np.asarray(values)
    if values.ndim != 1 or (len(values) and not np.issubdtype(values.dtype, np.integer)):
        raise InputError(f"{_SOURCE}: {name} has shape {values.shape} and type {values.dtype}; expected whole numbers, (n,)")
    return values.astype(np.int64)


def _real(name: str, values: Any) -> Array:
    try:
        found = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"{_SOURCE}: {name} is no array: {error}") from error
    if not (np.issubdtype(found.dtype, np.floating) or np.issubdtype(found.dtype, np.integer)):
        raise InputError(f"{_SOURCE}: {name} is of type {found.dtype}; expected real numbers")
    return np.ascontiguousarray(found, dtype=np.float64)


def _check_kind(cameras: Any) -> None:
    import pycolmap

    kinds = pycolmap.Camera, Sequence, np.ndarray
    if isinstance(cameras, str) or not (cameras is None or isinstance(cameras, kinds)):
        raise InputError(
            f"{_SOURCE}: cameras is {cameras!r}; expected K matrices (3x3) or pycolmap.Camera objects, one or one per image"
        )


def _matrices(cameras: Any) -> Array | None:
    """K matrices, (3, 3) or (images, 3, 3); None if `cameras` is of another kind, or mixed."""
    try:
        found = np.asarray(cameras, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return found if found.shape[-2:] == (3, 3) else None


def _sizes(sizes: Any, count: int, xy: Array) -> Index:
    """(images, 2) width and height; by default the range of all observations."""
    if sizes is not None:
        given = np.asarray(sizes)
        if given.shape not in ((2,), (count, 2)) or not np.issubdtype(given.dtype, np.number):
            raise InputError(f"{_SOURCE}: sizes has shape {given.shape}; expected (width, height), or {count} of them")
        shape = np.broadcast_to(given, (count, 2)).astype(np.int64)
        if len(shape) and shape.min() < 1:
            raise InputError(f"{_SOURCE}: an image has size {shape[shape.min(axis=1) < 1][0].tolist()}; expected positive")
        return shape
    span = np.ceil(xy.max(axis=0, initial=1.0)).astype(np.int64) + 1
    return np.broadcast_to(span, (count, 2))


def _cameras(cameras: Any, count: int, shape: Index) -> tuple[dict[int, Any], list[int], bool]:
    """pycolmap cameras by id, the id of each image, and whether they were given.

    One K (3x3) or pycolmap.Camera for all images, or one each; None: unknown, one for all images of a size.
    """
    import pycolmap

    if cameras is None:
        kinds, kind = np.unique(shape, axis=0, return_inverse=True)
        models = {
            c + 1: pycolmap.Camera(
                camera_id=c + 1, model="SIMPLE_PINHOLE", width=int(w), height=int(h),
                params=[float(max(w, h)), w / 2.0, h / 2.0],
            )
            for c, (w, h) in enumerate(kinds)
        }  # fmt: skip
        return models, [int(k) + 1 for k in kind.reshape(-1)], False
    mixed = not isinstance(cameras, pycolmap.Camera) and any(isinstance(one, pycolmap.Camera) for one in cameras)
    single = isinstance(cameras, pycolmap.Camera) or (not mixed and np.ndim(cameras) == 2)
    several: Any = [cameras] if single else cameras
    listed = list(several)
    for one in listed:
        if isinstance(one, str):
            _check_kind(one)
    if not single and len(listed) != count:
        raise InputError(f"{_SOURCE}: {len(listed)} cameras were given for {count} images; expected one, or one each")
    models = {}
    for c, camera in enumerate(listed):
        if isinstance(camera, pycolmap.Camera):
            model = pycolmap.Camera(camera.todict())
            model.camera_id = c + 1
        else:
            model = _pinhole(c + 1, np.asarray(camera, dtype=np.float64), shape[c if not single else 0])
        models[c + 1] = model
    return models, [1 if single else k + 1 for k in range(count)], True


def _pinhole(camera_id: int, K: Array, size: Index) -> Any:
    import pycolmap

    if K.shape != (3, 3) or abs(K[0, 1]) > 1e-6 * abs(K[0, 0]) or not np.allclose(K[[1, 2, 2], [0, 0, 1]], 0.0):
        raise InputError(
            f"{_SOURCE}: camera {camera_id} is {K.tolist()}; expected K = [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]"
        )
    params = [K[0, 0], K[1, 1], K[0, 2], K[1, 2]]
    return pycolmap.Camera(camera_id=camera_id, model="PINHOLE", width=int(size[0]), height=int(size[1]), params=params)
