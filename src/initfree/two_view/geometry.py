"""Two-view geometry of calibrated image pairs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.data.camera_graph import neighbours
from initfree.data.problem import Problem
from initfree.data.tracks import Array, Index, Tracks, evenly
from initfree.engine.parallel import in_order
from initfree.errors import InputError
from initfree.formulations.pose_rot import RelativeRotations

NEIGHBOURS = 8
MAX_ERROR = 2.0
"""pixels, for an inlier of the essential matrix"""
MIN_MATCHES = 10
"""of a pair whose geometry is estimated"""
MIN_INLIERS = 12
"""of a pair whose rotation is used"""
MOST_MATCHES = 150
"""of a pair in the estimate of its geometry; twice as many take much longer, and rotations are hardly better"""
TRIALS = (15, 5000)
"""of RANSAC, at least and at most: as good rotations of BAL's problems as thirty, of the South Building as a hundred"""
OnPair = Callable[[int, int], None]
"""called with the number of the finished pair"""


Pair = tuple[int, int, Index]
"""cameras k > l and the observations in k and in l of their common landmarks, (matches, 2)"""
Value = TypeVar("Value")


@dataclass(frozen=True)
class TwoView:
    """An essential matrix between cameras k and l, k > l, and their matches."""

    k: int
    l: int
    R: Array
    """R_k R_l'"""
    matches: Index
    """(matches, 2): observations in k and in l of their common landmarks"""
    inlier: NDArray[np.bool_]
    """(matches,)"""

    @property
    def inliers(self) -> int:
        return int(np.count_nonzero(self.inlier))


def two_view_geometries(
    problem: Problem, seed: int, *, most: int = MOST_MATCHES, on_pair: OnPair | None = None
) -> list[TwoView]:
    """Essential matrices (pycolmap, LO-RANSAC at 2 px) between each camera and those it shares most landmarks with.

    Pairs that share fewer than ten landmarks, or have no essential matrix, are left out. A geometry is estimated from at
    most `most` evenly spaced matches; all matches are then classified as inliers or not.
    """
    if not problem.calibrated:
        raise InputError("two-view geometry needs known intrinsics; this problem has none")
    estimate = Estimator(problem, seed, most)

    def geometry(pair: Pair) -> TwoView | None:
        k, l, matches = pair
        pose = estimate(matches)
        return None if pose is None else TwoView(k, l, pose[0], matches, estimate.inliers(*pose, matches))

    return estimated(geometry, list(shared_matches(problem.tracks, MIN_MATCHES)), on_pair)


class Estimator:
    """Relative poses x_k = R x_l + t of a calibrated problem's cameras from matches (observations in k and in l)."""

    def __init__(self, problem: Problem, seed: int, most: int = MOST_MATCHES) -> None:
        self._m, self._most = problem.m, most
        self._focal = float(np.median(problem.unit))
        self._camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=1, height=1, params=[self._focal, 0.0, 0.0])
        self._options = pycolmap.RANSACOptions(
            max_error=MAX_ERROR, random_seed=seed, min_num_trials=TRIALS[0], max_num_trials=TRIALS[1], confidence=0.9999
        )

    def __call__(self, matches: Index) -> tuple[Array, Array] | None:
        """R and t, or None without an essential matrix."""
        xk, xl = (self._m[side] * self._focal for side in evenly(matches, self._most).T)
        found = pycolmap.estimate_essential_matrix(xl, xk, self._camera, self._camera, self._options)
        if found is None:
            return None
        pose = found["cam2_from_cam1"]
        return pose.rotation.matrix(), pose.translation

    def inliers(self, R: Array, t: Array, matches: Index) -> NDArray[np.bool_]:
        """Matches within 2 px of the geometry, x_k' [t]x R x_l = 0; no match without a pose."""
        xk, xl = (self._m[side] for side in matches.T)
        return sampson(np.cross(t[:, None], R, axis=0), xl, xk) <= MAX_ERROR / self._focal


def sampson(E: Array, x: Array, y: Array) -> Array:
    """Sampson distance |y' E x| / sqrt(|(E x)_12|² + |(E'y)_12|²) of matches (x, y), for one E or one of each match;
    (n,)."""
    one = np.ones((len(x), 1))
    x, y = np.hstack([x, one]), np.hstack([y, one])
    Ex = np.einsum("...ij,...j->...i", E, x)
    Ey = np.einsum("...ji,...j->...i", E, y)
    slope = np.sqrt(np.sum(Ex[:, :2] ** 2, axis=1) + np.sum(Ey[:, :2] ** 2, axis=1))
    return np.abs(np.sum(y * Ex, axis=1)) / np.maximum(slope, 1e-300)


def estimated(geometry: Callable[[Pair], Value | None], pairs: list[Pair], on_pair: OnPair | None) -> list[Value]:
    """The geometries of the pairs, estimated in parallel; pairs without one are left out."""
    found = []
    for n, value in enumerate(in_order(geometry, pairs)):
        if on_pair is not None:
            on_pair(n, len(pairs))
        if value is not None:
            found.append(value)
    return found


def shared_matches(tracks: Tracks, min_matches: int, most: int = NEIGHBOURS) -> Iterator[Pair]:
    """(k, l, matches) of the neighbour pairs k > l."""
    for k, l in neighbour_pairs(tracks, min_matches, most):
        yield k, l, tracks.matches(k, l)


def relative_rotations(pairs: list[TwoView]) -> RelativeRotations | None:
    """The rotations of the pairs with enough inliers, weighted by their number; None where there is no such pair."""
    good = [pair for pair in pairs if pair.inliers >= MIN_INLIERS]
    if not good:
        return None
    return RelativeRotations(
        np.array([(pair.k, pair.l) for pair in good]),
        np.array([pair.R for pair in good]),
        np.array([float(pair.inliers) for pair in good]),
    )


def neighbour_pairs(tracks: Tracks, min_matches: int, most: int = NEIGHBOURS) -> list[tuple[int, int]]:
    """(k, l), k > l: every camera with the given number of others, those that share most landmarks with it."""
    closest = neighbours(tracks.covisible, most)
    k, l = np.repeat(np.arange(tracks.cameras), closest.shape[1]), closest.reshape(-1)
    enough = tracks.covisible[k, l] >= min_matches
    return sorted({(max(pair), min(pair)) for pair in zip(k[enough].tolist(), l[enough].tolist(), strict=True)})
