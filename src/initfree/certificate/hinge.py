"""Hinges: two parts joined along a line or at a spot, about which they can turn.

Two parts joined along a pole have several optima, each rotated about it. The covariance (`modes`) describes only the
neighbourhood of one, and the noise of the pole's landmarks can make it look certain. The positions of the joining
landmarks show a hinge: their deviation from the best line, relative to their extent along it, and to the size of the
parts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.joint import across, reach, smaller_part, sweep_order
from initfree.certificate.thresholds import LEAST_PART, MIN_HINGE_LEVER, MIN_HINGE_THICKNESS
from initfree.data.tracks import Array, Tracks

FEW = 60
"""landmarks; with more, their noise cannot hide a hinge from the covariance"""
_FAR = 0.1
"""share of the landmarks, the farthest from the line, that are ignored as wrong matches"""


@dataclass(frozen=True)
class Hinge:
    """The cut of the images whose joining landmarks are nearest to a line or a spot."""

    smaller: NDArray[np.bool_]
    """(cameras,): the smaller part; empty if many landmarks join all parts"""
    joining: int
    """landmarks that fit in both parts"""
    thickness: float
    """their deviation from the best line over the deviation along it; 1 without such a cut"""
    lever: float
    """the same deviation over the size of the smaller of the two parts"""

    @property
    def hold(self) -> float:
        """Above one if the landmarks are neither on a line nor at a spot."""
        return min(self.thickness / MIN_HINGE_THICKNESS, self.lever / MIN_HINGE_LEVER)

    @property
    def shape(self) -> str:
        thin = self.thickness / MIN_HINGE_THICKNESS < self.lever / MIN_HINGE_LEVER
        return "along a line" if thin else "at a spot"


def thinnest_hinge(tracks: Tracks, agrees: NDArray[np.bool_], xyz: Array) -> Hinge:
    """Of the weak cuts between images the one nearest to a hinge; `agrees` are the agreeing observations."""
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
    """Deviations of points along the best line and from it, without the farthest few."""
    _, off = _about_line(points)
    along, off = _about_line(points[off <= np.quantile(off, 1.0 - _FAR)])
    return float(np.sqrt(np.mean(along**2))), float(np.sqrt(np.mean(off**2)))


def _about_line(points: Array) -> tuple[Array, Array]:
    """Positions of points along the best line, relative to their centre, and distances from it."""
    centred = points - points.mean(axis=0)
    direction = np.linalg.svd(centred, full_matrices=False)[2][0]
    along = centred @ direction
    return along, np.linalg.norm(centred - np.outer(along, direction), axis=1)
