"""Where do the images hold together least? Two parts that are right in themselves can be joined wrongly.

All that joins them is then wrong, and all of it may be a small share of the observations, even of every single camera's:
nothing looks bad but the cut between the parts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.arrays import Array, Tracks

_WHATEVER_FITS = 0.01
"""weight of a shared landmark that does not fit both, so that the graph stays connected"""


@dataclass(frozen=True)
class Joint:
    """A cut of the images into two parts."""

    smaller: NDArray[np.bool_]
    """cameras of the smaller part"""
    pairs: int
    """pairs of observations of one landmark from both sides of the cut"""
    share: float
    """of these, both fitting"""


def weakest_joint(tracks: Tracks, fits: NDArray[np.bool_]) -> Joint:
    """The cut over which the smallest share of what joins the cameras fits.

    Of the sweep cuts of the Fiedler vector of the graph of cameras (edges: landmarks that fit in both), the one with the
    least share, a deviation added for cuts with few pairs.
    """
    shared, fitting = (_without_diagonal(tracks.shared_by(chosen)) for chosen in (np.ones_like(fits), fits))
    weight = fitting + _WHATEVER_FITS * shared
    degree = np.maximum(weight.sum(axis=0), _WHATEVER_FITS)
    scale = degree**-0.5
    laplacian = np.diag(weight.sum(axis=0) * scale**2) - scale[:, None] * weight * scale
    order = np.argsort(np.linalg.eigh(laplacian)[1][:, 1] * scale, kind="stable")
    pairs, good = (_across(counts[np.ix_(order, order)]) for counts in (shared, fitting))
    share = good / np.maximum(pairs, 1.0)
    # A cut that nothing crosses says nothing, one of few pairs little.
    k = int(np.argmin(np.where(pairs > 0.0, share + np.sqrt(share * (1.0 - share) / np.maximum(pairs, 1.0)), np.inf)))
    smaller = np.zeros(tracks.cameras, dtype=bool)
    smaller[order[: k + 1] if 2 * (k + 1) <= tracks.cameras else order[k + 1 :]] = True
    return Joint(smaller, int(pairs[k]), float(share[k]))


def _without_diagonal(counts: NDArray[np.int64]) -> Array:
    pairs = counts.astype(np.float64)
    np.fill_diagonal(pairs, 0.0)
    return pairs


def _across(counts: Array) -> Array:
    """Sums over the blocks that join the first k cameras with the others, k = 1 ... cameras - 1."""
    within = np.diagonal(counts.cumsum(axis=0).cumsum(axis=1))
    return (np.cumsum(counts.sum(axis=1)) - within)[:-1]
