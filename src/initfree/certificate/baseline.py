"""Do the cameras move, or do they only turn? Asked of the observations, not of the reconstruction.

A reconstruction of cameras that only turn fits its observations and invents a baseline out of their noise. Whether two
images need one is seen without it: by the best rotation from the rays of one to those of the other. Where focal lengths
are unknown, by the best homography: it explains cameras that only turn and landmarks on a plane, which both leave the
focal lengths open (a plane seen by calibrated cameras is no problem).
"""

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from initfree.camera_graph import neighbours
from initfree.certificate.thresholds import MIN_BASELINE
from initfree.problem import Problem
from initfree.reconstruction import nearest_rotation
from initfree.tracks import Array

NEIGHBOURS = 6
ASKED = 300
"""cameras, evenly taken, whose neighbours are asked: their median needs no more"""
_LEAST_SHARED = 5
_LEAST_FOR_HOMOGRAPHY = 10
_ROUNDS = 6
_FAR_APART = 10.0
"""pixels: more need not be known"""


@dataclass(frozen=True)
class Baselines:
    """What rotations (known intrinsics) or homographies (unknown) between images that share most landmarks leave over."""

    turning: float
    """pixels: median over cameras of the largest median residual with a neighbour; infinite where none shares enough"""
    three_places: float
    """pixels: the least of the three residuals between some three cameras, for the three where it is largest"""
    calibrated: bool

    def reasons(self, limit: float = MIN_BASELINE) -> list[str]:
        """Why the observations leave the reconstruction open, in plain words; empty if they do not. What is left over up to
        `limit` pixels is noise."""
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
    """What turning cameras leave unexplained of the problem's observations.

    A neighbour is one of the six cameras that share most landmarks. For `turning` the largest residual counts, because a
    camera needs a baseline to one of them only.
    """
    tracks, m, unit, calibrated = problem.tracks, problem.m, problem.unit, problem.calibrated
    rays = np.column_stack([m, np.ones(len(m))])
    if calibrated:
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    residual = _rotation_residuals if calibrated else _homography_residuals
    least = _LEAST_SHARED if calibrated else _LEAST_FOR_HOMOGRAPHY
    shared = tracks.covisible
    mean_unit = unit.mean(axis=1)

    @cache
    def needed(k: int, l: int) -> float:
        """Median residual, NaN where two cameras share too little."""
        if shared[k, l] < least:
            return np.nan
        a, b = tracks.seen_by(k), tracks.seen_by(l)
        _, i, j = np.intersect1d(tracks.landmark[a], tracks.landmark[b], assume_unique=True, return_indices=True)
        a, b = a[i], b[j]
        return float(np.median(mean_unit[a] * residual(rays[a], rays[b])))

    asked = np.unique(np.linspace(0, tracks.cameras - 1, ASKED).astype(np.int64))
    closest = neighbours(shared, NEIGHBOURS)[asked]
    by_camera = np.array([[needed(int(k), int(l)) for l in near] for k, near in zip(asked, closest, strict=True)])
    known = by_camera[np.isfinite(by_camera).any(axis=1)]
    turning = float(np.median(np.nanmax(known, axis=1))) if len(known) else np.inf
    # Where cameras share too little to tell, nothing says that they are in one place.
    apart = np.where(np.isfinite(by_camera), by_camera, np.inf)
    three = 0.0
    for k in range(len(asked)):
        # The pairs that could raise it, the most promising first.
        order = np.argsort(-apart[k], kind="stable")
        for i, j in combinations(order, 2):
            if min(apart[k, i], apart[k, j]) <= three:
                continue
            other = needed(int(closest[k, i]), int(closest[k, j]))
            three = max(three, min(float(apart[k, i]), float(apart[k, j]), other if np.isfinite(other) else np.inf))
        if three > _FAR_APART:
            break
    return Baselines(turning, three, calibrated)


def _rotation_residuals(a: Array, b: Array) -> Array:
    """Angles between a and R b for the R that makes most of them small (Kabsch, reweighted towards the median)."""
    weight = np.ones(len(a))
    angles = weight
    for _ in range(_ROUNDS):
        R = nearest_rotation((a * weight[:, None]).T @ b)
        angles = np.linalg.norm(a - b @ R.T, axis=1)
        weight = _towards_median(angles)
    return angles


def _homography_residuals(a: Array, b: Array) -> Array:
    """Distances from a to π(H b) for the H that makes most of them small (DLT, reweighted towards the median)."""
    n = len(a)
    rows = np.zeros((n, 2, 9))
    rows[:, 0, 0:3] = rows[:, 1, 3:6] = b
    rows[:, :, 6:] = -a[:, :2, None] * b[:, None, :]
    rows = rows.reshape(-1, 9)
    weight = np.ones(n)
    distance = weight
    for _ in range(_ROUNDS):
        normal = rows.T @ (np.repeat(weight, 2)[:, None] * rows)
        H = np.linalg.eigh(normal)[1][:, 0].reshape(3, 3)
        y = b @ H.T
        depth = np.where(np.abs(y[:, 2]) < 1e-12, 1e-12, y[:, 2])
        distance = np.linalg.norm(y[:, :2] / depth[:, None] - a[:, :2], axis=1)
        # The algebraic error is the distance times the depth.
        weight = _towards_median(distance) / np.maximum(depth**2, 1e-12)
    return distance


def _towards_median(residual: Array) -> Array:
    return 1.0 / np.maximum(residual, 0.1 * float(np.median(residual)) + 1e-12)
