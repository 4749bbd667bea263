"""Which of two joints does the order of the photographs support? Photographers walk from one place to the next.

Two parts of a scene that look alike may be joined in two ways that fit equally well: as one place seen twice, or as two.
Names often number photographs as they were taken. Where consecutive ones stand near each other within either part, by more
than a chance order has, those on the two sides of the joint should too. How far two cameras are from each other is the angle
between them plus their distance over that of the scene.

Equal things, photographed one after the other, look in order if they are put on top of each other. So the order only speaks
for a joint that puts the cameras of one part farther from those of the other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Tracks

SHUFFLES, BY_CHANCE = 999, 0.01
"""orders by chance, and share of them that may have steps as short within the parts"""
LONGEST = 1.25
"""a step across the right joint over the longest within a part, at most;"""
CLEARLY = 1.5
"""one across the other joint, over either, at least"""


@dataclass(frozen=True)
class _Steps:
    """Of a joint: how it fits the order."""

    across: float
    """median step across the joint over the longest within the parts"""
    nearest: float
    """median distance of the smaller part's cameras from the nearest of the others"""


def joint_by_order(
    names: Sequence[str], tracks: Tracks, smaller: NDArray[np.bool_], own: Reconstruction, other: Reconstruction
) -> int:
    """1 if the order of the names speaks for `own` and against `other`, -1 the other way round, 0 if it says nothing.

    The two differ in the joint between the smaller part of the cameras and the others.
    """
    order = np.array(sorted(range(len(names)), key=lambda k: _by_number(names[k])))
    side = smaller[order]
    if (side[1:] == side[:-1]).all() or np.count_nonzero(side[1:] == side[:-1]) < 3:
        return 0
    depth = np.linalg.norm(own.xyz[tracks.landmark] - own.centres[tracks.cam], axis=1)
    unit = float(np.median(depth[np.isfinite(depth)]))
    apart = [_apart(one, unit)[np.ix_(order, order)] for one in (own, other)]
    if not _in_order(apart[0], side):
        return 0
    first, second = (_steps(one, side) for one in apart)
    return int(_better(first, second)) - int(_better(second, first))


def _better(one: _Steps, other: _Steps) -> bool:
    far = other.across >= CLEARLY * max(one.across, 1.0)
    return one.across <= LONGEST and far and one.nearest > other.nearest


def _by_number(name: str) -> list[tuple[bool, int, str]]:
    """Names with numbers in them in the order of these: 9 before 10."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name) if part]


def _apart(reconstruction: Reconstruction, unit: float) -> Array:
    """(cameras, cameras) radians and units between any two."""
    R, C = reconstruction.R, reconstruction.centres
    cosine = 0.5 * (np.einsum("iab,jab->ij", R, R) - 1.0)
    return np.arccos(np.clip(cosine, -1.0, 1.0)) + np.linalg.norm(C[:, None] - C[None], axis=2) / unit


def _in_order(apart: Array, side: NDArray[np.bool_]) -> bool:
    """Whether steps within the parts are shorter than in nearly all orders by chance."""
    rng = np.random.default_rng(0)
    parts = [np.flatnonzero(side), np.flatnonzero(~side)]

    def way(chosen: list[NDArray[np.int64]]) -> float:
        return float(sum(apart[one[:-1], one[1:]].sum() for one in chosen))

    own = way(parts)
    as_short = sum(way([rng.permutation(part) for part in parts]) <= own for _ in range(SHUFFLES))
    return (as_short + 1) / (SHUFFLES + 1) <= BY_CHANCE


def _steps(apart: Array, side: NDArray[np.bool_]) -> _Steps:
    step, across = np.diagonal(apart, 1), side[1:] != side[:-1]
    longest = max(float(step[~across].max()), 1e-300)
    nearest = apart[np.ix_(side, ~side)].min(axis=1)
    return _Steps(float(np.median(step[across])) / longest, float(np.median(nearest)))
