"""The weakest joint: the cut between images with the fewest fitting landmarks across it.

Two right parts can be joined wrongly. The landmarks that join them are then wrong, but may be a small share of the
observations, even of each camera's. Only the cut between the parts shows it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from initfree.certificate.thresholds import LEAST_PART, MIN_CONSENSUS, MIN_JOINING
from initfree.data.camera_graph import smoothest, without_diagonal
from initfree.data.tracks import Array, Index, Tracks

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
    observations: int
    """number of counted observations"""
    overall: float
    """share of these that fit"""

    @property
    def share(self) -> float:
        return self.fitting / max(self.joining, 1)

    @property
    def least(self) -> int:
        """Landmarks that must fit on both sides."""
        return int(least_joining(np.count_nonzero(self.smaller, keepdims=True))[0])


def least_joining(part: Index) -> Index:
    """Least number of landmarks that must join a smaller part of so many cameras with the others."""
    return np.where(part < LEAST_PART, MIN_CONSENSUS, MIN_JOINING)


def sweep_order(tracks: Tracks, fits: NDArray[np.bool_]) -> Index:
    """Cameras in the order of the Fiedler vector of their graph: the weak cuts of a graph are cuts of this order.

    Its weights are the landmarks that fit in both cameras; one that k cameras see joins each two of them with 1/(k - 1).
    """
    length = np.diff(tracks.ptr)[tracks.landmark]
    weight = np.where(length > 1, 1.0 / np.maximum(length - 1, 1), 0.0) ** 0.5
    shared, fitting = (tracks.sharing(weight * chosen) for chosen in (np.ones_like(fits), fits))
    graph = without_diagonal(csr_array(fitting + _UNFITTING * shared))
    return np.argsort(smoothest(graph, 1)[:, 0], kind="stable")


def weakest_joint(tracks: Tracks, fits: NDArray[np.bool_], expected: Callable[[Array], Array]) -> Joint:
    """The weakest cut: with fewer fitting landmarks than required, else with a share most below the expected.

    Candidates are the cuts of `sweep_order`; `expected` is the share of so many landmarks that should fit.
    """
    order = sweep_order(tracks, fits)
    joining, good = (across(tracks, *reach(tracks, order, chosen)) for chosen in (np.ones_like(fits), fits))
    share = good / np.maximum(joining, 1)
    first = np.arange(1, tracks.cameras)
    least = least_joining(np.minimum(first, tracks.cameras - first))
    # Cuts with too few landmarks come first, in ascending order.
    below = np.where(good < least, good - least - 1.0, share - expected(np.maximum(joining, 1).astype(np.float64)))
    k = int(np.argmin(below))
    return Joint(smaller_part(order, k), int(joining[k]), int(good[k]), len(fits), float(np.mean(fits)))


def smaller_part(order: Index, k: int) -> NDArray[np.bool_]:
    """(cameras,): the smaller of the two parts of the cut after place k of the order."""
    smaller = np.zeros(len(order), dtype=bool)
    smaller[order[: k + 1] if 2 * (k + 1) <= len(order) else order[k + 1 :]] = True
    return smaller


def reach(tracks: Tracks, order: Index, chosen: NDArray[np.bool_]) -> tuple[Index, Index]:
    """Of every landmark the first and the last place in the order of cameras among its chosen observations.

    It is across all cuts between the two; a landmark without any has its first place behind its last.
    """
    place = np.empty(tracks.cameras, dtype=np.int64)
    place[order] = np.arange(tracks.cameras)
    where, landmark = place[tracks.cam[chosen]], tracks.landmark[chosen]
    first, last = np.full(tracks.landmarks, tracks.cameras), np.zeros(tracks.landmarks, dtype=np.int64)
    np.minimum.at(first, landmark, where)
    np.maximum.at(last, landmark, where)
    return first, last


def across(tracks: Tracks, first: Index, last: Index) -> Index:
    """Landmarks that reach across the cut after place k, k = 0 ... cameras - 2."""
    some = first < last
    ends = np.bincount(first[some], minlength=tracks.cameras) - np.bincount(last[some], minlength=tracks.cameras)
    return np.cumsum(ends)[:-1]
