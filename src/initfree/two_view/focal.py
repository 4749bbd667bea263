"""Initial focal lengths from the fundamental matrices of image pairs.

A fundamental matrix F between images k and l is diag(1/f_k, 1/f_k, 1) E diag(1/f_l, 1/f_l, 1) with E essential, and E has
two equal singular values (Fetzer and others 2020). A rough guess suffices: relative rotations hardly depend on the focal
length, so uncalibrated images can then use everything that calibrated ones do. The Euclidean adjustment estimates the
focal lengths afterwards.
"""

from dataclasses import dataclass, replace

import numpy as np
import pycolmap

from initfree.data.problem import Problem
from initfree.data.tracks import Array, Index, evenly
from initfree.stages.upgrade.linear import TYPICAL_FOCAL
from initfree.two_view.geometry import MAX_ERROR, OnPair, Pair, estimated, shared_matches

_FOCALS = np.geomspace(0.3, 6.0, 61)
"""in units of the largest observation: fields of view from 147 to 19 degrees"""
_NEIGHBOURS = 6
"""pairs of each camera; eight give no better guess on BAL and real tracks"""
_MATCHES = 150
"""of a pair, at most: twice as many give the same focal lengths"""
_LEAST_INLIERS = 16
"""twice what defines a fundamental matrix"""
_MOST_WEIGHT = 100.0
"""inliers beyond which a pair does not count more"""
_SCALE = 0.05
"""relative difference of the singular values at which a pair counts half"""
_PRIOR = 0.04
"""weight of log(f/f_typical)², then of log(f/f_shared)²: decides where the pairs do not"""
_ROUNDS = 5


@dataclass(frozen=True)
class _Pairs:
    """Fundamental matrices x_k' F x_l = 0 in normalised coordinates."""

    k: Index
    l: Index
    F: Array
    weight: Array

    def of_group(self, group: Index, g: int) -> Index:
        return np.flatnonzero((group[self.k] == g) | (group[self.l] == g))


def guess_focals(problem: Problem, seed: int, on_pair: OnPair | None = None) -> Array | None:
    """Focal lengths (cameras,) in normalised units, the same for cameras that share an id; None without usable pairs.

    A grid search finds one for all cameras, then one for each camera id in turn with the others fixed.
    """
    pairs = _given_matrices(problem)
    pairs = _fundamental_matrices(problem, seed, on_pair) if pairs is None else pairs
    if pairs is None:
        return None
    typical = 1.0 if problem.rays else TYPICAL_FOCAL
    everywhere = np.broadcast_to(_FOCALS, (len(pairs.F), len(_FOCALS)))
    shared = _best(pairs.weight, _cost(pairs.F, everywhere, everywhere), typical)
    ids, group = np.unique(problem.camera_ids, return_inverse=True)
    focal = np.full(len(ids), shared)
    mine_of = [pairs.of_group(group, g) for g in range(len(ids))]
    for _ in range(_ROUNDS):
        before = focal.copy()
        for g, mine in enumerate(mine_of):
            sides = [
                np.where((group[side] == g)[:, None], _FOCALS, focal[group[side]][:, None])
                for side in (pairs.k[mine], pairs.l[mine])
            ]
            focal[g] = _best(pairs.weight[mine], _cost(pairs.F[mine], *sides), shared)
        if (focal == before).all():
            break
    return focal[group]


def _best(weight: Array, cost: Array, typical: float) -> float:
    """The focal length of least weighted cost (pairs, focals) plus prior; without pairs the typical one."""
    prior = _PRIOR * max(weight.sum(), 1.0) * np.log(_FOCALS / typical) ** 2
    return float(_FOCALS[np.argmin(weight @ cost + prior)])


def with_focals(problem: Problem, focal: Array) -> Problem:
    """The problem as if it were calibrated, with these focal lengths and no distortion."""
    scale = focal[problem.tracks.cam][:, None]
    return replace(problem, m=problem.m / scale, unit=problem.unit * scale, intrinsics="found")


def _cost(F: Array, fk: Array, fl: Array) -> Array:
    """s/(s + 0.05²), s = `unequal`; (pairs, focals)."""
    s = unequal(F, fk, fl)
    return s / (s + _SCALE**2)


def unequal(F: Array, fk: Array, fl: Array) -> Array:
    """((σ1² - σ2²)/(σ1² + σ2²))² of E = diag(f_k, f_k, 1) F diag(f_l, f_l, 1), whose third singular value is zero;
    (pairs, focals).

    With M = EE', A = σ1² + σ2² = tr M and B = σ1² σ2² = (A² - tr M²)/2 it is 1 - 4B/A². M is
    G = f_l² (F1 F1' + F2 F2') + F3 F3', F1, F2, F3 the columns of F, with its first two rows and columns times f_k.
    """
    p, q = fk**2, fl**2

    def G(i: int, j: int) -> Array:
        return q * (F[:, i, :2] * F[:, j, :2]).sum(axis=1)[:, None] + (F[:, i, 2] * F[:, j, 2])[:, None]

    g00, g11, g22 = G(0, 0), G(1, 1), G(2, 2)
    A = p * (g00 + g11) + g22
    squared = p * (p * (g00**2 + 2.0 * G(0, 1) ** 2 + g11**2) + 2.0 * (G(0, 2) ** 2 + G(1, 2) ** 2)) + g22**2
    return np.maximum(1.0 - 2.0 * (A**2 - squared) / A**2, 0.0)


def has_fundamental_matrices(problem: Problem) -> bool:
    """Whether the input has enough fundamental matrices for a guess."""
    return _given_matrices(problem) is not None


def _given_matrices(problem: Problem) -> _Pairs | None:
    """Fundamental matrices of the input, in normalised coordinates; None if there are fewer than cameras.

    Pixels are T (m, 1), distortion aside, with T = [unit, middle]: the middle of the image, or the given principal point.
    """
    o = problem.observations
    if o.pairs is None:
        return None
    camera = np.full(len(o.images), -1)
    camera[problem.images] = np.arange(len(problem.images))
    inliers = np.diff(o.pairs.ptr)
    usable = np.isfinite(o.pairs.F).all(axis=(1, 2)) & (camera[o.pairs.image] >= 0).all(axis=1) & (inliers >= _LEAST_INLIERS)
    number = np.flatnonzero(usable)
    if len(number) < problem.tracks.cameras:
        return None
    T = np.zeros((len(o.images), 3, 3))
    T[:, 0, 0], T[:, 1, 1] = o.image_unit.T
    T[:, :, 2] = [(*_middle(o.cameras[image.camera_id], not problem.rays), 1.0) for image in o.images]
    i, j = o.pairs.image[number].T
    F = T[j].transpose(0, 2, 1) @ o.pairs.F[number] @ T[i]
    F /= np.linalg.norm(F, axis=(1, 2), keepdims=True)
    return _Pairs(camera[j], camera[i], F, np.minimum(inliers[number], _MOST_WEIGHT))


def _middle(camera: pycolmap.Camera, of_image: bool) -> tuple[float, float]:
    return (camera.width / 2.0, camera.height / 2.0) if of_image else (camera.principal_point_x, camera.principal_point_y)


def _fundamental_matrices(problem: Problem, seed: int, on_pair: OnPair | None) -> _Pairs | None:
    """Fundamental matrices between each camera and those it shares most landmarks with (pycolmap, LO-RANSAC at 2 px)."""
    unit = float(np.median(problem.unit))
    to_pixels = np.diag([unit, unit, 1.0])
    options = pycolmap.RANSACOptions(
        max_error=MAX_ERROR, random_seed=seed, min_num_trials=30, max_num_trials=2000, confidence=0.999
    )

    def fundamental_matrix(pair: Pair) -> tuple[int, int, Array, float] | None:
        k, l, matches = pair
        xk, xl = (problem.m[side] * unit for side in evenly(matches, _MATCHES).T)
        estimate = pycolmap.estimate_fundamental_matrix(xl, xk, options)
        if estimate is None or estimate["num_inliers"] < _LEAST_INLIERS:
            return None
        F = to_pixels @ estimate["F"] @ to_pixels
        return k, l, F / np.linalg.norm(F), min(float(estimate["num_inliers"]), _MOST_WEIGHT)

    found = estimated(fundamental_matrix, list(shared_matches(problem.tracks, _LEAST_INLIERS, _NEIGHBOURS)), on_pair)
    if not found:
        return None
    k, l, F, weight = zip(*found, strict=True)
    return _Pairs(np.array(k), np.array(l), np.array(F), np.array(weight))
