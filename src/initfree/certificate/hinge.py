"""What joins two parts of a reconstruction: landmarks all over a place, or on a line or a spot, about which they may turn?

The covariance (`modes`) knows the neighbourhood of an optimum. Two parts that are joined along a pole have several optima,
each turned about it, and the noise of the pole's landmarks, which the optimum has moved to where they please it, can hold
one of them firmly. Where the landmarks lie is seen without it: how far they are from the line that fits them best, beside
how far they reach along it, and beside the size of the parts that they hold.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.joint import across, reach, smaller_part, sweep_order
from initfree.certificate.thresholds import LEAST_PART, MIN_HINGE_LEVER, MIN_HINGE_THICKNESS
from initfree.data.tracks import Array, Tracks

FEW = 60
"""landmarks; where more join two parts, their noise is no hinge, and the covariance tells"""
_FAR = 0.1
"""share of the landmarks, those farthest from the line, that do not count: wrong matches that happen to fit"""


@dataclass(frozen=True)
class Hinge:
    """The cut of the images whose joining landmarks lie most nearly on a line or at a spot."""

    smaller: NDArray[np.bool_]
    """(cameras,): the smaller part; none where more than a few landmarks join all parts"""
    joining: int
    """landmarks that fit in both parts"""
    thickness: float
    """their deviation from the line that fits them best, over the deviation along it; 1 where there is no such cut"""
    lever: float
    """the same deviation over the size of the smaller of the two parts"""

    @property
    def hold(self) -> float:
        """Above one where it is neither a line nor a spot."""
        return min(self.thickness / MIN_HINGE_THICKNESS, self.lever / MIN_HINGE_LEVER)

    @property
    def shape(self) -> str:
        thin = self.thickness / MIN_HINGE_THICKNESS < self.lever / MIN_HINGE_LEVER
        return "along a line" if thin else "at a spot"


def thinnest_hinge(tracks: Tracks, agrees: NDArray[np.bool_], xyz: Array) -> Hinge:
    """Of the weak cuts between images that with the thinnest joint; `agrees` are the observations that do."""
    order = sweep_order(tracks, agrees)
    first, last = reach(tracks, order, agrees)
    joining = across(tracks, first, last)
    thinnest = Hinge(np.zeros(tracks.cameras, dtype=bool), 0, 1.0, np.inf)
    for k in range(LEAST_PART - 1, tracks.cameras - LEAST_PART):
        if not LEAST_PART <= joining[k] < FEW:
            continue
        along, off = _line(xyz[(first <= k) & (k < last)])
        sizes = [
            np.median(np.linalg.norm(part - np.median(part, axis=0), axis=1)) for part in (xyz[first <= k], xyz[k < last])
        ]
        ratios = off / max(along, 1e-300), off / max(float(min(sizes)), 1e-300)
        thinnest = min(thinnest, Hinge(smaller_part(order, k), int(joining[k]), *ratios), key=lambda hinge: hinge.hold)
    return thinnest


def _line(points: Array) -> tuple[float, float]:
    """Deviations of points along the line that fits them best, and from it, the farthest few left out."""
    _, off = _about_line(points)
    along, off = _about_line(points[off <= np.quantile(off, 1.0 - _FAR)])
    return float(np.sqrt(np.mean(along**2))), float(np.sqrt(np.mean(off**2)))


def _about_line(points: Array) -> tuple[Array, Array]:
    """Where points lie along the line that fits them best, from their middle, and how far from it."""
    centred = points - points.mean(axis=0)
    direction = np.linalg.svd(centred, full_matrices=False)[2][0]
    along = centred @ direction
    return along, np.linalg.norm(centred - np.outer(along, direction), axis=1)
