"""Wrong matches before any reconstruction: image pairs vote on their common observations."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from initfree.data.tracks import Array, Index, Tracks
from initfree.two_view.geometry import TwoView

MAX_OUTLIER_SHARE = 0.34
"""Share of outlier votes, weighted, above which an observation is removed."""
_CHANCE = 6
"""Random matches that agree with an essential matrix: five define it, one more fits by chance."""


def vote(tracks: Tracks, pairs: list[TwoView]) -> NDArray[np.bool_]:
    """Observations that survive: the worst of a track is removed, with its votes, while its outlier share exceeds 0.34.

    A pair's votes have the weight (inliers - 6)/matches. Of a track that any pair voted on, only the largest part
    connected by inlier matches stays, which separates two merged tracks.
    """
    keep = np.ones(tracks.observations, dtype=bool)
    if not pairs:
        return keep
    matches = np.concatenate([pair.matches for pair in pairs])
    inlier = np.concatenate([pair.inlier for pair in pairs])
    weight = np.concatenate([np.full(len(p.matches), max(p.inliers - _CHANCE, 0) / len(p.matches)) for p in pairs])
    heard = weight > 0.0
    matches, inlier, weight = matches[heard], inlier[heard], weight[heard]
    while True:
        alive = keep[matches].all(axis=1)
        share = _outlier_share(tracks, matches[alive], inlier[alive], weight[alive])
        share[~keep] = -1.0
        order = np.lexsort((-share, tracks.landmark))
        worst = order[tracks.ptr[:-1]]
        worst = worst[share[worst] > MAX_OUTLIER_SHARE]
        if len(worst) == 0:
            break
        keep[worst] = False
    alive = keep[matches].all(axis=1) & inlier
    return keep & _largest_parts(tracks, matches[alive], keep)


def _outlier_share(tracks: Tracks, matches: Index, inlier: NDArray[np.bool_], weight: Array) -> Array:
    total, against = np.zeros(tracks.observations), np.zeros(tracks.observations)
    for side in range(2):
        np.add.at(total, matches[:, side], weight)
        np.add.at(against, matches[:, side], weight * ~inlier)
    return against / np.maximum(total, 1e-12)


def _largest_parts(tracks: Tracks, edges: Index, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Observations in the largest connected part of their track; all of a track without any edge."""
    n = tracks.observations
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    _, part = connected_components(graph, directed=False)
    size = np.bincount(part, weights=keep)[part]
    largest = np.maximum.reduceat(size, tracks.ptr[:-1])[tracks.landmark]
    first = np.full(tracks.landmarks, n)
    chosen = np.flatnonzero((size == largest) & keep)
    np.minimum.at(first, tracks.landmark[chosen], chosen)
    return (largest <= 1.0) | (part == part[np.minimum(first, n - 1)][tracks.landmark])
