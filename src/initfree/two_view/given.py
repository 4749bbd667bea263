"""Two-view geometries that the input brings along: verified once, not estimated again.

A database of matches has, for every verified pair, the matches that agreed with one geometry and, if the intrinsics were
believed, the relative pose itself. The pose is taken as it is where it explains the verified matches as this problem sees
them (its focal lengths may be other ones than those of the verification); otherwise it is estimated, which takes few
trials, because nearly all matches of a verified pair agree.
"""

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.pairs import VerifiedPairs
from initfree.problem import Problem
from initfree.tracks import Array, Index
from initfree.two_view.geometry import (
    MAX_ERROR,
    MIN_MATCHES,
    OnPair,
    Pair,
    TwoView,
    estimated,
    shared_matches,
    two_view_geometries,
)

_AGREEING = 0.8
"""share of the verified matches that a pose from the input must explain"""
_TRIALS = (30, 1000)
"""of an essential matrix, at least and at most: as good rotations of the South Building as a hundred trials"""


def two_view_geometries_of(
    problem: Problem, seed: int, *, most: int | None = None, on_pair: OnPair | None = None
) -> list[TwoView]:
    """`two_view_geometries`, with what the input has verified already; the same where it has verified nothing.

    Pairs of images that were not verified are left out: the input's matcher looked at them and found nothing.
    """
    pairs = problem.observations.pairs
    if pairs is None or not problem.calibrated:
        return two_view_geometries(problem, seed, most=most, on_pair=on_pair)
    verified = _Verified(problem, pairs)
    focal = float(np.median(problem.unit))
    camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=1, height=1, params=[focal, 0.0, 0.0])
    options = pycolmap.RANSACOptions(
        max_error=MAX_ERROR, random_seed=seed, min_num_trials=_TRIALS[0], max_num_trials=_TRIALS[1], confidence=0.9999
    )

    def geometry(pair: Pair) -> TwoView | None:
        k, l, matches = pair
        number = verified.number.get((k, l))
        if number is None:
            return None
        sure = verified.among(number, matches)
        if np.count_nonzero(sure) < MIN_MATCHES:
            return None
        xk, xl = problem.m[matches[:, 0]], problem.m[matches[:, 1]]
        limit = MAX_ERROR / focal
        R, t = verified.pose(number, k)
        inlier = _sampson(R, t, xl, xk) <= limit**2
        if np.mean(inlier[sure]) < _AGREEING:
            found = pycolmap.estimate_essential_matrix(xl * focal, xk * focal, camera, camera, options)
            if found is None:
                return None
            pose = found["cam2_from_cam1"]
            R, t = pose.rotation.matrix(), pose.translation
            inlier = _sampson(R, t, xl, xk) <= limit**2
        return TwoView(k, l, R, matches, inlier)

    return estimated(geometry, list(shared_matches(problem.tracks, MIN_MATCHES, most)), on_pair)


class _Verified:
    """The input's pairs in the numbers of a problem: its cameras k > l and its observations."""

    def __init__(self, problem: Problem, pairs: VerifiedPairs) -> None:
        self._pairs = pairs
        camera = np.full(len(problem.observations.images), -1)
        camera[problem.images] = np.arange(len(problem.images))
        self._camera = camera[pairs.image]
        solved = np.flatnonzero((self._camera >= 0).all(axis=1))
        self.number = {(int(max(c)), int(min(c))): int(n) for n, c in zip(solved, self._camera[solved], strict=True)}
        self._keypoint = problem.keypoint

    def among(self, number: int, matches: Index) -> NDArray[np.bool_]:
        """Which matches (observations in k and in l, k > l) the pair's verified ones contain.

        By keypoint of the first image and then of the second: a keypoint is matched once, or joined with its duplicates.
        """
        mine = self._pairs.keypoint[self._pairs.ptr[number] : self._pairs.ptr[number + 1]]
        if self._camera[number, 0] < self._camera[number, 1]:
            mine = mine[:, ::-1]
        width = int(self._keypoint.max()) + int(mine.max()) + 1
        ours = self._keypoint[matches]
        return np.isin(ours[:, 0] * width + ours[:, 1], mine[:, 0] * width + mine[:, 1])

    def pose(self, number: int, k: int) -> tuple[Array, Array]:
        """x_k = R x_l + t."""
        R, t = self._pairs.R[number], self._pairs.t[number]
        return (R, t) if self._camera[number, 1] == k else (R.T, -R.T @ t)


def _sampson(R: Array, t: Array, xl: Array, xk: Array) -> Array:
    """Squared Sampson errors (x_k' E x_l)² / (|E x_l|² + |E' x_k|²), first two coordinates, E = [t]x R; infinite without a
    pose."""
    if not np.isfinite(R).all():
        return np.full(len(xl), np.inf)
    a, b, c = t
    E = np.array([[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]]) @ R
    one = np.ones((len(xl), 1))
    xl, xk = np.hstack([xl, one]), np.hstack([xk, one])
    Exl, Etxk = xl @ E.T, xk @ E
    residual = np.einsum("ij,ij->i", xk, Exl)
    return residual**2 / np.maximum((Exl[:, :2] ** 2).sum(axis=1) + (Etxk[:, :2] ** 2).sum(axis=1), 1e-300)
