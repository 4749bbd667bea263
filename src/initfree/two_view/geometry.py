"""Two-view geometry of calibrated image pairs: who agrees with whom, before there is any reconstruction."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.camera_graph import neighbours
from initfree.errors import InputError
from initfree.formulations.pose_rot import RelativeRotations
from initfree.parallel import in_order
from initfree.problem import Problem
from initfree.tracks import Array, Index, Tracks

NEIGHBOURS = 8
MAX_ERROR = 2.0
"""pixels, for an inlier of the essential matrix"""
MIN_MATCHES = 10
"""of a pair whose geometry is estimated"""
MIN_INLIERS = 12
"""of a pair whose rotation counts: fewer say nothing"""
MOST_MATCHES = 300
"""of a pair, where a geometry is all that is asked for"""
OnPair = Callable[[int], None]
"""called with the number of the pair that is done"""


Pair = tuple[int, int, Index]
"""cameras k > l and the observations in k and in l of each landmark that both see, (matches, 2)"""
Value = TypeVar("Value")


@dataclass(frozen=True)
class TwoView:
    """An essential matrix between cameras k and l, k > l, and the matches that it was estimated from."""

    k: int
    l: int
    R: Array
    """R_k R_l'"""
    matches: Index
    """(matches, 2): the observations in k and in l of each landmark that both see"""
    inlier: NDArray[np.bool_]
    """(matches,)"""

    @property
    def inliers(self) -> int:
        return int(np.count_nonzero(self.inlier))


def two_view_geometries(
    problem: Problem, seed: int, *, most: int | None = None, on_pair: OnPair | None = None
) -> list[TwoView]:
    """Essential matrices (pycolmap, LO-RANSAC at 2 px) between each camera and those it shares most landmarks with.

    Pairs that share fewer than ten landmarks, or of which no essential matrix is found, are left out. At most `most`
    matches of a pair are looked at: enough for its rotation, not for a vote on every match.
    """
    if not problem.calibrated:
        raise InputError("two-view geometry needs known intrinsics; this problem has none")
    tracks = problem.tracks
    focal = float(np.median(problem.unit))
    camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=1, height=1, params=[focal, 0.0, 0.0])
    options = pycolmap.RANSACOptions(
        max_error=MAX_ERROR, random_seed=seed, min_num_trials=100, max_num_trials=5000, confidence=0.9999
    )

    def geometry(pair: Pair) -> TwoView | None:
        k, l, matches = pair
        xk, xl = problem.m[matches[:, 0]] * focal, problem.m[matches[:, 1]] * focal
        essential = pycolmap.estimate_essential_matrix(xl, xk, camera, camera, options)
        if essential is None:
            return None
        inlier = np.asarray(essential["inlier_mask"], dtype=bool)
        return TwoView(k, l, essential["cam2_from_cam1"].rotation.matrix(), matches, inlier)

    return estimated(geometry, list(shared_matches(tracks, MIN_MATCHES, most)), on_pair)


def estimated(geometry: Callable[[Pair], Value | None], pairs: list[Pair], on_pair: OnPair | None) -> list[Value]:
    """The geometries of pairs that have one, estimated side by side."""
    found = []
    for n, value in enumerate(in_order(geometry, pairs)):
        if on_pair is not None:
            on_pair(n)
        if value is not None:
            found.append(value)
    return found


def shared_matches(tracks: Tracks, min_matches: int, most: int | None = None) -> Iterator[Pair]:
    """(k, l, matches) of the neighbour pairs k > l; of more than `most` matches, evenly chosen ones."""
    for k, l in neighbour_pairs(tracks, min_matches):
        matches = matches_of(tracks, k, l)
        if most is not None and len(matches) > most:
            matches = matches[np.linspace(0, len(matches) - 1, most).astype(np.int64)]
        yield k, l, matches


def matches_of(tracks: Tracks, k: int, l: int) -> Index:
    """The observations in camera k and in camera l of each landmark that both see, (matches, 2)."""
    in_k, in_l = tracks.seen_by(k), tracks.seen_by(l)
    _, a, b = np.intersect1d(tracks.landmark[in_k], tracks.landmark[in_l], return_indices=True, assume_unique=True)
    return np.stack([in_k[a], in_l[b]], axis=1)


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


def neighbour_pairs(tracks: Tracks, min_matches: int) -> list[tuple[int, int]]:
    """(k, l), k > l: every camera with its most covisible others."""
    closest = neighbours(tracks.covisible, NEIGHBOURS)
    k, l = np.repeat(np.arange(tracks.cameras), closest.shape[1]), closest.reshape(-1)
    enough = tracks.covisible[k, l] >= min_matches
    return sorted({(max(pair), min(pair)) for pair in zip(k[enough].tolist(), l[enough].tolist(), strict=True)})
