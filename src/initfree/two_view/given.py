"""Two-view geometries of the input.

A database of matches has the inlier matches of every verified pair and, for trusted intrinsics, the relative pose. The
pose is used if it explains the verified matches with the problem's own focal lengths. Else it is estimated again, which
takes few trials, because nearly all matches of a verified pair agree.
"""

import numpy as np
from numpy.typing import NDArray

from initfree.data.pairs import VerifiedPairs
from initfree.data.problem import Problem
from initfree.data.tracks import Array, Index
from initfree.two_view.geometry import (
    MIN_MATCHES,
    MOST_MATCHES,
    Estimator,
    OnPair,
    Pair,
    TwoView,
    estimated,
    shared_matches,
    two_view_geometries,
)

_AGREEING = 0.8
"""share of the verified matches that a pose from the input must explain"""


def two_view_geometries_of(
    problem: Problem, seed: int, *, most: int = MOST_MATCHES, on_pair: OnPair | None = None
) -> list[TwoView]:
    """`two_view_geometries`, from the verified pairs of the input if it has any.

    Pairs that are not verified are then left out: the input's matcher rejected them.
    """
    pairs = problem.observations.pairs
    if pairs is None or not problem.calibrated:
        return two_view_geometries(problem, seed, most=most, on_pair=on_pair)
    verified, estimate = _Verified(problem, pairs), Estimator(problem, seed, most)

    def geometry(pair: Pair) -> TwoView | None:
        k, l, matches = pair
        number = verified.number.get((k, l))
        sure = None if number is None else verified.among(number, matches)
        if number is None or sure is None or np.count_nonzero(sure) < MIN_MATCHES:
            return None
        pose = verified.pose(number, k)
        inlier = estimate.inliers(*pose, matches)
        if np.mean(inlier[sure]) < _AGREEING:
            pose = estimate(matches[sure])
            if pose is None:
                return None
            inlier = estimate.inliers(*pose, matches)
        return TwoView(k, l, pose[0], matches, inlier)

    return estimated(geometry, list(shared_matches(problem.tracks, MIN_MATCHES)), on_pair)


class _Verified:
    """The input's pairs in terms of a problem's cameras k > l and observations."""

    def __init__(self, problem: Problem, pairs: VerifiedPairs) -> None:
        self._pairs = pairs
        camera = np.full(len(problem.observations.images), -1)
        camera[problem.images] = np.arange(len(problem.images))
        self._camera = camera[pairs.image]
        solved = np.flatnonzero((self._camera >= 0).all(axis=1))
        self.number = {(int(max(c)), int(min(c))): int(n) for n, c in zip(solved, self._camera[solved], strict=True)}
        self._keypoint = problem.keypoint

    def among(self, number: int, matches: Index) -> NDArray[np.bool_]:
        """Whether each match (observations in k and in l, k > l) is a verified match of the pair.

        Matches are looked up by the keypoint of the first image, then of the second.
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
