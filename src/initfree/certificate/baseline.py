"""Baselines: whether the observations need cameras that move, or only rotate.

A reconstruction of purely rotating cameras fits its observations with a baseline made from their noise. So the test uses
the observations alone: the residuals of the best rotation between the rays of two images. If focal lengths are unknown,
it uses the best homography, which explains rotating cameras and planar landmarks. Both leave the focal lengths
undetermined (a plane in calibrated images does not).
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.thresholds import MIN_BASELINE
from initfree.data.camera_graph import neighbours
from initfree.data.problem import Problem
from initfree.data.reconstruction import nearest_rotation
from initfree.data.tracks import Array, evenly

NEIGHBOURS = 6
ASKED = 300
"""evenly spaced cameras in the test, enough for a median"""
_LEAST_SHARED = 5
_LEAST_FOR_HOMOGRAPHY = 10
MOST_MATCHES = 200
"""of two cameras, evenly spaced, in the test"""
_AT_A_TIME = 256
"""pairs"""
_ROUNDS = 6
_FAR_APART = 10.0
"""pixels from which residuals need not be exact"""


@dataclass(frozen=True)
class Baselines:
    """Residuals of rotations (known intrinsics) or homographies (unknown) between images that share most landmarks."""

    turning: float
    """pixels: median over cameras of the largest median residual with a neighbour; infinite where none shares enough"""
    three_places: float
    """pixels: the least of the three residuals between some three cameras, for the three where it is largest"""
    calibrated: bool

    def reasons(self, limit: float = MIN_BASELINE) -> list[str]:
        """Reasons in words why the observations do not determine the reconstruction, if any. Residuals up to `limit`
        pixels are noise."""
        if _FAR_APART < self.turning < limit:
            return [f"cameras that only turn fit no worse ({self.turning:.0f} px) than those that were found"]
        if self.turning < limit and self.calibrated:
            return [
                f"rotations alone explain the images to {self.turning:.2g} px: the cameras only turn, and nothing tells how "
                "far away anything is"
            ]
        if self.turning < limit:
            return [
                f"homographies alone explain the images to {self.turning:.2g} px: the landmarks lie on a plane or the "
                "cameras only turn, and nothing tells the unknown focal lengths"
            ]
        if self.three_places < limit:
            return ["the images were taken from two places, which do not check each other; expected at least three"]
        return []


def baselines(problem: Problem) -> Baselines:
    """Residuals that rotating cameras leave in the problem's observations.

    A neighbour is one of the six cameras that share most landmarks. For `turning` the largest residual counts, because a
    camera needs a baseline to one of them only.
    """
    tracks, calibrated = problem.tracks, _rotations_tell(problem)
    shared = tracks.covisible
    known: dict[tuple[int, int], float] = {}

    def needed(pairs: list[tuple[int, int]]) -> list[float]:
        """Median residuals; NaN for cameras that share too few landmarks."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        for some in range(0, len(new), _AT_A_TIME):
            chosen = new[some : some + _AT_A_TIME]
            known.update(zip(chosen, _left_over(problem, chosen), strict=True))
        return [known[pair] for pair in pairs]

    asked = np.unique(np.linspace(0, tracks.cameras - 1, ASKED).astype(np.int64))
    closest = neighbours(shared, NEIGHBOURS)[asked]
    pairs = [(int(k), int(l)) for k, near in zip(asked, closest, strict=True) for l in near]
    by_camera = np.array(needed(pairs)).reshape(closest.shape)
    measured = by_camera[np.isfinite(by_camera).any(axis=1)]
    turning = float(np.median(np.nanmax(measured, axis=1))) if len(measured) else np.inf
    # Where cameras share too little to tell, nothing says that they are in one place.
    apart = np.where(np.isfinite(by_camera), by_camera, np.inf)
    three = 0.0
    for k in range(len(asked)):
        # The pairs that could raise it, the most promising first.
        order = np.argsort(-apart[k], kind="stable")
        for i, j in combinations(order, 2):
            if min(apart[k, i], apart[k, j]) <= three:
                continue
            other = needed([(int(closest[k, i]), int(closest[k, j]))])[0]
            three = max(three, min(float(apart[k, i]), float(apart[k, j]), other if np.isfinite(other) else np.inf))
        if three > _FAR_APART:
            break
    return Baselines(turning, three, calibrated)


def _rotations_tell(problem: Problem) -> bool:
    """Whether rotations decide: only with the input's intrinsics, because those found on a plane, or for rotating
    cameras, are arbitrary."""
    return problem.calibrated and problem.observations.intrinsics == "known"


def _left_over(problem: Problem, pairs: list[tuple[int, int]]) -> Array:
    """Median residual of each pair of cameras in pixels; NaN if they share too few landmarks."""
    tracks, unit = problem.tracks, problem.unit.mean(axis=1)
    matches = [evenly(tracks.matches(k, l), MOST_MATCHES) for k, l in pairs]
    count = np.array([len(one) for one in matches])
    # All pairs at once: those with fewer matches than others are filled up with ones that have no weight.
    row = np.zeros((len(pairs), int(count.max(initial=1)), 2), dtype=np.int64)
    real = np.arange(row.shape[1]) < count[:, None]
    row[real] = np.concatenate([np.empty((0, 2), dtype=np.int64), *matches])
    a, b = (np.concatenate([problem.m[side], np.ones((*side.shape, 1))], axis=2) for side in (row[..., 0], row[..., 1]))
    calibrated = _rotations_tell(problem)
    if calibrated:
        a, b = (rays / np.linalg.norm(rays, axis=2, keepdims=True) for rays in (a, b))
    residual = _rotation_residuals(a, b, real) if calibrated else _homography_residuals(a, b, real)
    least = _LEAST_SHARED if calibrated else _LEAST_FOR_HOMOGRAPHY
    return np.where(count >= least, _medians(unit[row[..., 0]] * residual, real), np.nan)


def _rotation_residuals(a: Array, b: Array, real: NDArray[np.bool_]) -> Array:
    """Angles between a and R b for the R that makes most of them small (Kabsch, reweighted towards the median); rays
    (pairs, matches, 3), of which those that are `real` count."""
    weight = real.astype(np.float64)
    angles = weight
    for _ in range(_ROUNDS):
        R = nearest_rotation((a * weight[:, :, None]).swapaxes(1, 2) @ b)
        angles = np.linalg.norm(a - b @ R.swapaxes(1, 2), axis=2)
        weight = _towards_median(angles, real)
    return angles


def _homography_residuals(a: Array, b: Array, real: NDArray[np.bool_]) -> Array:
    """Distances from a to π(H b) for the H that makes most of them small (DLT, reweighted towards the median).

    The two rows (b, 0, -a_0 b) and (0, b, -a_1 b) of a match have normal equations of four 3x3 blocks: sums of w bb', of
    w a_0 bb' and w a_1 bb', and of w (a_0² + a_1²) bb'.
    """
    outer = (b[:, :, :, None] * b[:, :, None, :]).reshape(*b.shape[:2], 9).swapaxes(1, 2)
    factors = np.stack([np.ones_like(a[..., 0]), a[..., 0], a[..., 1], a[..., 0] ** 2 + a[..., 1] ** 2], axis=2)
    weight = real.astype(np.float64)
    distance = weight
    for _ in range(_ROUNDS):
        plain, first, second, both = np.moveaxis(outer @ (weight[:, :, None] * factors), 2, 0).reshape(4, len(a), 3, 3)
        normal = np.zeros((len(a), 9, 9))
        normal[:, 0:3, 0:3] = normal[:, 3:6, 3:6] = plain
        normal[:, 0:3, 6:] = normal[:, 6:, 0:3] = -first
        normal[:, 3:6, 6:] = normal[:, 6:, 3:6] = -second
        normal[:, 6:, 6:] = both
        H = np.linalg.eigh(normal)[1][:, :, 0].reshape(-1, 3, 3)
        y = b @ H.swapaxes(1, 2)
        depth = np.where(np.abs(y[..., 2]) < 1e-12, 1e-12, y[..., 2])
        distance = np.linalg.norm(y[..., :2] / depth[..., None] - a[..., :2], axis=2)
        # The algebraic error is the distance times the depth.
        weight = _towards_median(distance, real) / np.maximum(depth**2, 1e-12)
    return distance


def _towards_median(residual: Array, real: NDArray[np.bool_]) -> Array:
    return real / np.maximum(residual, 0.1 * _medians(residual, real)[:, None] + 1e-12)


def _medians(values: Array, real: NDArray[np.bool_]) -> Array:
    """(pairs,): of the values that are `real`; zero of none."""
    ordered, count = np.sort(np.where(real, values, np.inf), axis=1), np.count_nonzero(real, axis=1)
    pair, last = np.arange(len(values)), np.maximum(count - 1, 0)
    middle = 0.5 * (ordered[pair, last // 2] + ordered[pair, (last + 1) // 2])
    return np.where(count > 0, middle, 0.0)
