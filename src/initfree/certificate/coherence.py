"""Do errors of neighbouring observations point the same way? Noise does not; a bent reconstruction does.

A reconstruction that is bent where few tracks hold it looks, in every histogram of errors, like one with more noise. But the
noise of one keypoint says nothing of the next, while what a wrong camera does to its image changes slowly across it.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from initfree.tracks import Array, Tracks

NEIGHBOURS = 3
MOST_A_CAMERA = 500
"""observations whose neighbours are asked, evenly taken: enough to tell a coherence of a few percent"""


def coherence(tracks: Tracks, xy: Array, residuals: Array, chosen: NDArray[np.bool_]) -> tuple[float, float]:
    """Mean cosine between the residual of an observation and those of its neighbours in the image, and its deviation.

    (1/n) Σ r_i·r_j / |r_i||r_j|, over the n pairs of a chosen observation i and one of its three nearest chosen ones j in
    the same image (positions `xy` in pixels; none at the same place): 0 for independent errors of any size, 1 where all
    of an image move together. The deviation is (2/n)^½: short tracks leave errors along one line, whose cosines ±1 have
    variance 1, and most pairs count twice.
    """
    length = np.linalg.norm(residuals, axis=1)
    kept = np.flatnonzero(chosen & (length > 0.0))
    kept = kept[np.argsort(tracks.cam[kept], kind="stable")]
    direction = residuals[kept] / length[kept, None]
    total, pairs = 0.0, 0
    edges = np.searchsorted(tracks.cam[kept], np.arange(tracks.cameras + 1))
    for first, last in pairwise(edges):
        if last - first <= NEIGHBOURS:
            continue
        points, unit = xy[kept[first:last]], direction[first:last]
        some = np.arange(0, last - first, -(-(last - first) // MOST_A_CAMERA))
        distance, near = KDTree(points).query(points[some], k=NEIGHBOURS + 1)
        # One place, one keypoint: the observation itself, or its twin of another orientation, which errs alike.
        elsewhere = distance > 0.0
        total += float(np.einsum("ij,ik,ijk->", elsewhere, unit[some], unit[near]))
        pairs += int(np.count_nonzero(elsewhere))
    if pairs == 0:
        return 0.0, 1.0
    return total / pairs, float((2.0 / pairs) ** 0.5)
