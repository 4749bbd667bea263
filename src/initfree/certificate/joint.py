"""Where do the images hold together least? Two parts that are right in themselves can be joined wrongly.

All that joins them is then wrong, and all of it may be a small share of the observations, even of every single camera's:
nothing looks bad but the cut between the parts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from initfree.camera_graph import smoothest, without_diagonal
from initfree.tracks import Array, Index, Tracks

_UNFITTING = 0.01
"""weight of a shared landmark that does not fit both, so that the graph stays connected"""


@dataclass(frozen=True)
class Joint:
    """A cut of the images into two parts, and the landmarks that images of both see."""

    smaller: NDArray[np.bool_]
    """cameras of the smaller part"""
    joining: int
    """landmarks across the cut"""
    fitting: int
    """of these, that fit an image on either side"""

    @property
    def share(self) -> float:
        return self.fitting / max(self.joining, 1)


def weakest_joint(tracks: Tracks, fits: NDArray[np.bool_], expected: Callable[[Array], Array], least: int = 0) -> Joint:
    """The cut that holds least: with fewer than `least` fitting landmarks, else with a share most below the expected.

    Tried are the sweep cuts of the Fiedler vector of the graph of cameras, weighted by the landmarks that fit in both (one
    that k cameras see joins each two of them with weight 1/(k - 1)); `expected` says which share of so many should fit.
    """
    length = np.diff(tracks.ptr)[tracks.landmark]
    weight = np.where(length > 1, 1.0 / np.maximum(length - 1, 1), 0.0) ** 0.5
    shared, fitting = (tracks.sharing(weight * chosen) for chosen in (np.ones_like(fits), fits))
    graph = without_diagonal(csr_array(fitting + _UNFITTING * shared))
    # The weak cuts of a graph are cuts of the order of its Fiedler vector.
    order = np.argsort(smoothest(graph, 1)[:, 0], kind="stable")
    place = np.empty(tracks.cameras, dtype=np.int64)
    place[order] = np.arange(tracks.cameras)
    joining, good = (_across(tracks, place, chosen) for chosen in (np.ones_like(fits), fits))
    share = good / np.maximum(joining, 1)
    # Cuts that nothing holds come first, the emptiest before others.
    below = np.where(good < least, good - least - 1.0, share - expected(np.maximum(joining, 1).astype(np.float64)))
    k = int(np.argmin(below))
    smaller = np.zeros(tracks.cameras, dtype=bool)
    smaller[order[: k + 1] if 2 * (k + 1) <= tracks.cameras else order[k + 1 :]] = True
    return Joint(smaller, int(joining[k]), int(good[k]))


def _across(tracks: Tracks, place: Index, chosen: NDArray[np.bool_]) -> Index:
    """Landmarks with a chosen observation among the first k cameras and one among the others, k = 1 ... cameras - 1.

    Each is across all cuts between the first and the last place that it has.
    """
    where, landmark = place[tracks.cam[chosen]], tracks.landmark[chosen]
    first, last = np.full(tracks.landmarks, tracks.cameras), np.zeros(tracks.landmarks, dtype=np.int64)
    np.minimum.at(first, landmark, where)
    np.maximum.at(last, landmark, where)
    some = first < last
    ends = np.bincount(first[some], minlength=tracks.cameras) - np.bincount(last[some], minlength=tracks.cameras)
    return np.cumsum(ends)[:-1]
