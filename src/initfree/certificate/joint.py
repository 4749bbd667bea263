"""Where do the images hold together least? Two parts that are right in themselves can be joined wrongly.

All that joins them is then wrong, and all of it may be a small share of the observations, even of every single camera's:
nothing looks bad but the cut between the parts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from initfree.tracks import Array, Tracks

_UNFITTING = 0.01
"""weight of a shared landmark that does not fit both, so that the graph stays connected"""
_NOTHING = 1e-9
"""landmarks: sums of weights round"""


@dataclass(frozen=True)
class Joint:
    """A cut of the images into two parts. A landmark that k cameras see joins each two of them with weight 1/(k - 1), so
    that a single camera is joined to all others by one for each of its observations."""

    smaller: NDArray[np.bool_]
    """cameras of the smaller part"""
    joining: float
    """landmarks across the cut"""
    fitting: float
    """of these, on both sides"""

    @property
    def share(self) -> float:
        return self.fitting / max(self.joining, _NOTHING)


def weakest_joint(tracks: Tracks, fits: NDArray[np.bool_], expected: Callable[[Array], Array], least: float = 0.0) -> Joint:
    """The cut that holds least: with fewer than `least` fitting landmarks, else with a share most below the expected.

    Tried are the sweep cuts of the Fiedler vector of the graph of cameras, weighted by the landmarks that fit in both;
    `expected` says which share of so many joining landmarks should fit.
    """
    length = np.diff(tracks.ptr)[tracks.landmark]
    weight = np.where(length > 1, 1.0 / np.maximum(length - 1, 1), 0.0) ** 0.5
    shared, fitting = (_between(tracks.shared_by(weight * chosen)) for chosen in (np.ones_like(fits), fits))
    graph = fitting + _UNFITTING * shared
    degree = graph.sum(axis=0)
    scale = np.where(degree > 0.0, degree, 1.0) ** -0.5
    laplacian = np.diag(degree * scale**2) - scale[:, None] * graph * scale
    _, vectors = eigh(laplacian, subset_by_index=(0, 1))
    order = np.argsort(vectors[:, 1] * scale, kind="stable")
    joining, good = (_across(counts[np.ix_(order, order)]) for counts in (shared, fitting))
    share = good / np.maximum(joining, _NOTHING)
    # Cuts that nothing holds come first, the emptiest before others.
    below = np.where(good < least - _NOTHING, good - least - 1.0, share - expected(np.maximum(joining, _NOTHING)))
    k = int(np.argmin(below))
    smaller = np.zeros(tracks.cameras, dtype=bool)
    smaller[order[: k + 1] if 2 * (k + 1) <= tracks.cameras else order[k + 1 :]] = True
    return Joint(smaller, float(joining[k]), float(good[k]))


def _between(counts: Array) -> Array:
    counts = counts.copy()
    np.fill_diagonal(counts, 0.0)
    return counts


def _across(counts: Array) -> Array:
    """Sums over the blocks that join the first k cameras with the others, k = 1 ... cameras - 1."""
    within = np.diagonal(counts.cumsum(axis=0).cumsum(axis=1))
    return (np.cumsum(counts.sum(axis=1)) - within)[:-1]
