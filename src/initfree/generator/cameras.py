"""Intrinsics: COLMAP's camera models through pycolmap, and where their projection is one-to-one."""

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.streams import stream

Floats = NDArray[np.float64]


def intrinsics(camera: config.Camera, moment: Floats, seed: int) -> list[pycolmap.Camera]:
    """One shared camera, or one for each image where the focal length varies; ids count from 1. `moment`: of each image, 0
    the first of the trajectory, 1 the last."""
    nominal = _camera(camera, 1)
    if camera.focal_variation == 0 and camera.focal_drift == 0:
        return [nominal]
    factors = 1 + camera.focal_variation * stream(seed, "focal lengths").uniform(-1, 1, len(moment))
    factors = factors * (1 + camera.focal_drift * moment)
    cameras = []
    for number, factor in enumerate(factors, start=1):
        varied = _camera(camera, number)
        params = np.array(varied.params)
        params[list(varied.focal_length_idxs())] *= factor
        varied.params = params.tolist()
        cameras.append(varied)
    return cameras


def _camera(camera: config.Camera, number: int) -> pycolmap.Camera:
    models = [name for name in pycolmap.CameraModelId.__members__ if name not in ("INVALID", "EQUIRECTANGULAR")]
    if camera.model not in models:
        raise InputError(f"camera.model = {camera.model}: expected one of {', '.join(models)}")
    made = pycolmap.Camera.create_from_model_name(number, camera.model, camera.focal, camera.width, camera.height)
    if camera.params is not None:
        if len(camera.params) != len(made.params):
            raise InputError(f"camera.params has {len(camera.params)} numbers; {camera.model} takes {made.params_info}")
        made.params = list(camera.params)
    elif camera.k1 != 0:
        names = [name.strip() for name in made.params_info.split(",")]
        place = next((names.index(name) for name in ("k", "k1") if name in names), None)
        if place is None:
            raise InputError(f"camera.k1 = {camera.k1}: {camera.model} has no radial term ({made.params_info})")
        params = np.array(made.params)
        params[place] = camera.k1
        made.params = params.tolist()
    made.has_prior_focal_length = True
    return made


def project(camera: pycolmap.Camera, points: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Pixels of points in camera coordinates, and which are seen: in front, unfolded, in the image."""
    seen = points[:, 2] > 0
    radius = np.full(len(points), np.inf)
    np.divide(np.hypot(points[:, 0], points[:, 1]), points[:, 2], out=radius, where=seen)
    seen &= radius < fold_radius(camera)
    pixels = np.full((len(points), 2), np.nan)
    pixels[seen] = pixels_of(camera, points[seen])
    with np.errstate(invalid="ignore"):
        seen &= ((pixels >= 0) & (pixels < [camera.width, camera.height])).all(axis=1)
    if camera.model_name not in _POLYNOMIAL and seen.any():
        back = directions_of(camera, pixels[seen])
        away = np.linalg.norm(back - points[seen, :2] / points[seen, 2:], axis=1)
        # NaN, where undistortion has no answer, must count as folded.
        seen[seen] = away <= 1e-6 * (1 + radius[seen])
    return pixels, seen


def pixels_of(camera: pycolmap.Camera, points: Floats) -> Floats:
    """COLMAP's projection of points in camera coordinates (NaN where it has none)."""
    return np.asarray(camera.img_from_cam(np.ascontiguousarray(points)))


def directions_of(camera: pycolmap.Camera, pixels: Floats) -> Floats:
    """COLMAP's undistortion of pixels to normalised directions (x, y) (NaN where it has none)."""
    return np.asarray(camera.cam_from_img(np.ascontiguousarray(pixels)))


_POLYNOMIAL = ("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL")


def fold_radius(camera: pycolmap.Camera) -> float:
    """Where the distorted radius r (1 + k1 r^2 + k2 r^4) stops growing: 1 + 3 k1 r^2 + 5 k2 r^4 = 0.

    For SIMPLE_RADIAL with k1 < 0 this is r^2 = -1/(3 k1). Beyond it two directions share a pixel. Models
    that are not a radial polynomial have no such radius here and are checked by undistorting.
    """
    if camera.model_name not in ("SIMPLE_RADIAL", "RADIAL"):
        return float("inf")
    terms = [float(camera.params[k]) for k in camera.extra_params_idxs()]
    k1, k2 = ([*terms, 0.0])[:2]
    roots = np.roots([5 * k2, 3 * k1, 1.0])
    real = roots[np.isreal(roots)].real
    return float(np.sqrt(real[real > 0].min())) if (real > 0).any() else float("inf")


def view_radius(camera: pycolmap.Camera) -> float:
    """No direction seen in the image is farther from the optical axis than this (in normalised units)."""
    across, down = np.linspace(0, camera.width, 33), np.linspace(0, camera.height, 33)
    edge = [(x, y) for x in across for y in (0, camera.height)] + [(x, y) for y in down for x in (0, camera.width)]
    directions = directions_of(camera, np.array(edge, float))
    if not np.isfinite(directions).all():
        return float("inf")
    return float(1.05 * np.linalg.norm(directions, axis=1).max())
