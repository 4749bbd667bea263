"""Intrinsics of any COLMAP camera model as numbers that can move: pycolmap projects, differences derive."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.data.observations import FocalPrior, heavy_tailed
from initfree.data.tracks import Array, Index
from initfree.engine.losses import MEDIAN_TO_SIGMA
from initfree.errors import InputError

_STEP = 6e-6
"""cube root of the rounding error: where truncation and rounding of a central difference are of one size"""
_RATIONAL = {"FULL_OPENCV": (9, 10, 11)}
"""denominators: nearly the same as k1, k2, k3 to first order, so that they move only where they are given"""
WORST = 2.0
"""focal lengths: largest error of an observation, as in the other Euclidean stage"""


@dataclass(frozen=True)
class Deviations:
    """How weakly intrinsics are held: standard deviations, each as a residual of one pixel."""

    focal: float = 0.2
    """as a share of the focal length"""
    principal_point: float = 0.1
    """as a share of the image's longer side"""
    distortion: float = 0.3
    """radial"""
    tangential: float = 0.003
    """tangential and thin-prism coefficients: lenses stand straight, and principal points look much like them"""
    aspect: float = 0.01
    """of the ratio of two focal lengths to what it is about: pixels are known better than lenses"""

    def __post_init__(self) -> None:
        if not all(sigma > 0.0 for sigma in astuple(self)):
            raise InputError(f"the deviations of intrinsics are {self}; expected positive numbers")


@dataclass(frozen=True)
class Prior:
    """Residuals (θ - about)/deviation of all free numbers, and (fx/fx0 - fy/fy0)/aspect of two focal lengths."""

    about: Array
    deviation: Array
    aspect: float


@dataclass(frozen=True)
class Lenses:
    """Cameras of several images: the camera of each image, and the free parameters of each, which an adjustment changes."""

    cameras: tuple[pycolmap.Camera, ...]
    """by lens"""
    lens: Index
    """(images,) the lens of each image"""
    free: tuple[tuple[int, ...], ...]
    """by lens: indices of the free parameters"""

    @classmethod
    def of(
        cls, cameras: Mapping[int, pycolmap.Camera], camera_ids: Index, *, focal: bool = True,
        distortion: bool = True, principal_point: bool = False, shared: bool = False,
    ) -> "Lenses":  # fmt: skip
        """One lens a camera id, or with `shared` one for all ids with the same camera; `focal` and so on: what is free."""
        ids, lens = np.unique(camera_ids, return_inverse=True)
        chosen = [cameras[int(k)] for k in ids]
        if shared:
            keys = [(c.model_name, c.width, c.height, *(float(p) for p in c.params)) for c in chosen]
            distinct = list(dict.fromkeys(keys))
            lens = np.array([distinct.index(key) for key in keys])[lens]
            chosen = [chosen[keys.index(key)] for key in distinct]
        free = tuple(_free(c, focal, distortion, principal_point) for c in chosen)
        return cls(tuple(chosen), lens.astype(np.int64), free)

    def split(self, camera_ids: Index) -> "Lenses":
        """One lens a camera id, with the values and free parameters of the lens that it shared."""
        _, first, lens = np.unique(camera_ids, return_index=True, return_inverse=True)
        old = self.lens[first]
        return Lenses(tuple(self.cameras[g] for g in old), lens.astype(np.int64), tuple(self.free[g] for g in old))

    def by_id(self, camera_ids: Index) -> dict[int, pycolmap.Camera]:
        """The camera of every camera id."""
        ids, first = np.unique(camera_ids, return_index=True)
        return {
            int(k): with_parameters(self.cameras[g], self.cameras[g].params, int(k))
            for k, g in zip(ids, self.lens[first], strict=True)
        }

    def with_principal_points(self, least_images: int = 1) -> "Lenses":
        """The same with free principal points, of lenses that have so many images."""
        images = np.bincount(self.lens, minlength=len(self.cameras))
        return replace(self, free=tuple(
            tuple(sorted({*k, *c.principal_point_idxs()})) if n >= least_images else k
            for c, k, n in zip(self.cameras, self.free, images, strict=True)
        ))  # fmt: skip

    @property
    def numbers(self) -> Index:
        """Number of free parameters of each lens."""
        return np.array([len(m) for m in self.free], dtype=np.int64)

    @property
    def values(self) -> Array:
        """Of all free parameters, lens after lens."""
        parts = [np.asarray(c.params, dtype=np.float64)[list(m)] for c, m in zip(self.cameras, self.free, strict=True)]
        return np.concatenate(parts) if parts else np.empty(0)

    def at(self, values: Array) -> "Lenses":
        """The same lenses with other values of the free parameters."""
        cameras, start = [], 0
        for camera, free in zip(self.cameras, self.free, strict=True):
            params = np.array(camera.params, dtype=np.float64)
            params[list(free)] = values[start : start + len(free)]
            start += len(free)
            size = max(camera.width, camera.height)
            for k in camera.focal_length_idxs():
                params[k] = min(max(params[k], 0.1 * size), 10.0 * size)
            cameras.append(with_parameters(camera, params))
        return replace(self, cameras=tuple(cameras))

    def prior(
        self, deviations: Deviations, about: Array | None = None, focal: Sequence[FocalPrior] | None = None
    ) -> "Prior":
        """About the values that the lenses have, or others; focal lengths about what is known of them, by image."""
        sigma: list[float] = []
        about = (self.values if about is None else about).copy()
        for lens, (camera, free) in enumerate(zip(self.cameras, self.free, strict=True)):
            lengths, middle = set(camera.focal_length_idxs()), set(camera.principal_point_idxs())
            known = None if focal is None else focal[int(np.flatnonzero(self.lens == lens)[0])]
            for k in free:
                if k in lengths and known is not None:
                    about[len(sigma)] = known.pixels
                    off = np.log(camera.params[k] / known.pixels)
                    sigma.append(float(heavy_tailed(known.deviation, off)) * known.pixels)
                elif k in lengths:
                    sigma.append(deviations.focal * camera.params[k])
                elif k in middle:
                    sigma.append(deviations.principal_point * max(camera.width, camera.height))
                else:
                    name = camera.params_info.split(", ")[k]
                    sigma.append(deviations.tangential if name[0] in "ps" else deviations.distortion)
        return Prior(about, np.array(sigma, dtype=np.float64), deviations.aspect)

    def alike(self, deviations: Deviations) -> "Prior":
        """About the median of lenses of one model and image size, as far as three or more are alike at all.

        Cameras of one make differ little, and a ring of them, each seen by its neighbours alone, hardly shows a slow drift
        of focal lengths from one of the angles between them. Where they do differ, 1.5 median deviations are more than
        `deviations` and hold nothing.
        """
        prior = self.prior(deviations)
        about, sigma = prior.about.copy(), prior.deviation.copy()
        starts = np.concatenate([[0], np.cumsum(self.numbers)])
        classes: dict[tuple[object, ...], list[int]] = {}
        for n, (camera, free) in enumerate(zip(self.cameras, self.free, strict=True)):
            classes.setdefault((camera.model_name, camera.width, camera.height, free), []).append(n)
        for members in classes.values():
            if len(members) < 3:
                continue
            place = starts[members][:, None] + np.arange(self.numbers[members[0]])
            middle = np.median(about[place], axis=0)
            spread = MEDIAN_TO_SIGMA * np.median(np.abs(about[place] - middle), axis=0)
            about[place], sigma[place] = middle, np.maximum(sigma[place], spread)
        return Prior(about, sigma, prior.aspect)

    @property
    def aspects(self) -> Index:
        """(n, 2): places among `values` of two focal lengths of one lens that both move."""
        starts = np.concatenate([[0], np.cumsum(self.numbers)])
        pairs = [
            [start + free.index(k) for k in camera.focal_length_idxs()]
            for start, camera, free in zip(starts[:-1], self.cameras, self.free, strict=True)
            if len(camera.focal_length_idxs()) == 2 and set(camera.focal_length_idxs()) <= set(free)
        ]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _free(camera: pycolmap.Camera, focal: bool, distortion: bool, principal_point: bool) -> tuple[int, ...]:
    chosen: list[int] = []
    chosen += camera.focal_length_idxs() if focal else []
    chosen += camera.principal_point_idxs() if principal_point else []
    if distortion:
        absent = [k for k in _RATIONAL.get(camera.model_name, ()) if camera.params[k] == 0.0]
        chosen += [k for k in camera.extra_params_idxs() if k not in absent]
    return tuple(sorted(chosen))


def with_parameters(
    camera: pycolmap.Camera, params: Sequence[float] | Array, camera_id: int | None = None
) -> pycolmap.Camera:
    """The same camera with other parameters, and another id."""
    return pycolmap.Camera(
        camera_id=camera.camera_id if camera_id is None else camera_id, model=camera.model,
        width=camera.width, height=camera.height, params=list(params),
        has_prior_focal_length=camera.has_prior_focal_length,
    )  # fmt: skip


class Projection:
    """Projects observations through lenses. They are sorted by lens once: pycolmap is called per lens, not per image."""

    def __init__(self, lenses: Lenses, cam: Index, keypoints: Array) -> None:
        """`cam` (observations,) is the image of each, `keypoints` (observations, 2) what it shows in pixels."""
        lens = lenses.lens[cam]
        self._order = np.argsort(lens, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(lens, minlength=len(lenses.cameras)))])
        self._spans = [slice(a, b) for a, b in pairwise(bounds)]
        self._keypoints = keypoints[self._order]
        # One size for all steps of a stage, so that a longer focal length does not change what the worst error costs.
        focal = np.array([camera.mean_focal_length() for camera in lenses.cameras])
        self._worst = (WORST * focal)[lens[self._order]]

    def squared_residuals(self, lenses: Lenses, x: Array) -> Array:
        """|r|² of every observation in pixels²; x (observations, 3) in the camera's frame."""
        residual, _ = self._residuals(lenses, x[self._order])
        result = np.empty(len(x))
        result[self._order] = np.einsum("nk,nk->n", residual, residual)
        return result

    def _residuals(self, lenses: Lenses, x: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Residuals, sorted, and where they are more than the worst error that there is."""
        residual = np.empty((len(x), 2))
        for camera, span in zip(lenses.cameras, self._spans, strict=True):
            residual[span] = _project(camera, x[span])
        residual -= self._keypoints
        # Written so that NaN, what pycolmap returns behind a camera, is not valid.
        valid = np.einsum("nk,nk->n", residual, residual) < self._worst**2
        invalid = np.flatnonzero(~valid)
        residual[invalid] = self._worst[invalid, None] * np.sqrt(0.5)
        return residual, valid

    def linearised(self, lenses: Lenses, x: Array) -> tuple[Array, Array, Array]:
        """Residuals r (n, 2), dr/dx (n, 2, 3) and dr/dθ (n, 2, most numbers of a lens); no derivative where not valid.

        A projection does not change with the length of x, so dr/dx has two directions only, those in which the ray turns:
        with a, b, x/|x| orthonormal, dr/dx = [dr/da a' + dr/db b'] / |x|. This holds at any angle, where differences of
        x/z would grow without bound.
        """
        x = x[self._order]
        residual, valid = self._residuals(lenses, x)
        length = np.linalg.norm(x, axis=1, keepdims=True)
        ray = x / np.maximum(length, 1e-300)
        a, b = _tangents(ray)
        by_x = np.zeros((len(x), 2, 3))
        by_lens = np.zeros((len(x), 2, max(lenses.numbers.max(initial=0), 1)))
        for camera, free, span in zip(lenses.cameras, lenses.free, self._spans, strict=True):
            here = ray[span]
            for tangent in (a[span], b[span]):
                ahead, behind = _project(camera, here + _STEP * tangent), _project(camera, here - _STEP * tangent)
                slope = (ahead - behind) / (2.0 * _STEP * length[span])
                by_x[span] += slope[:, :, None] * tangent[:, None, :]
            params = np.array(camera.params, dtype=np.float64)
            for n, k in enumerate(free):
                step = np.zeros_like(params)
                step[k] = _STEP * max(abs(params[k]), 1.0)
                further, nearer = with_parameters(camera, params + step), with_parameters(camera, params - step)
                by_lens[span, :, n] = (_project(further, here) - _project(nearer, here)) / (2.0 * step[k])
        # Where a neighbour of a valid ray has no projection, there is no derivative either.
        usable = valid & np.isfinite(by_x).all(axis=(1, 2)) & np.isfinite(by_lens).all(axis=(1, 2))
        by_x[~usable] = 0.0
        by_lens[~usable] = 0.0
        # An observation without derivative must not pull: its residual stays in the cost, not in the step.
        residual[~usable] = 0.0
        back = np.argsort(self._order)
        return residual[back], by_x[back], by_lens[back]


def _tangents(ray: Array) -> tuple[Array, Array]:
    """Two unit vectors orthogonal to each ray and to each other."""
    helper = np.zeros_like(ray)
    helper[np.arange(len(ray)), np.argmin(np.abs(ray), axis=1)] = 1.0
    a = np.cross(ray, helper)
    a /= np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-300)
    return a, np.asarray(np.cross(ray, a), dtype=np.float64)


def _project(camera: pycolmap.Camera, x: Array) -> Array:
    """Pixels (n, 2) of points (n, 3) in the camera's frame; NaN where there is none."""
    return np.asarray(camera.img_from_cam(x), dtype=np.float64)
