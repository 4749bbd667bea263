"""Do errors of neighbouring observations point the same way? Noise does not; a bent reconstruction does.

In a histogram of errors, a bent reconstruction looks like one with more noise. But the noise of neighbouring keypoints is
independent, while the errors of a wrong camera change slowly across its image.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.data.tracks import Array, Index, Tracks
from initfree.engine import threads
from initfree.engine.kernels import kernel
from initfree.engine.vectors import room

NEIGHBOURS = 3
INCOHERENT = 2.0
"""deviations up to which the errors of one camera are noise"""
MOST_A_CAMERA = 500
"""evenly spaced observations in the test: enough for a coherence of a few percent"""
_A_CELL = 2
"""observations of a cell of the image, in the mean"""
_NEAREST = NEIGHBOURS + 1
"""with the observation itself"""


def coherence(
    tracks: Tracks, xy: Array, residuals: Array, chosen: NDArray[np.bool_]
) -> tuple[float, float, NDArray[np.bool_]]:
    """Mean cosine between the residual of an observation and those of its neighbours in the image, and its deviation.

    (1/n) Σ r_i·r_j / |r_i||r_j|, over the n pairs of a chosen observation i and one of its three nearest chosen ones j in
    the same image (positions `xy` in pixels; none at the same place): 0 for independent errors of any size, 1 where all
    of an image move together. The deviation is (2/n)^½: short tracks leave errors along one line, whose cosines ±1 have
    variance 1, and most pairs count twice.
    """
    length = np.linalg.norm(residuals, axis=1)
    kept = tracks.by_camera[(chosen & (length > 0.0))[tracks.by_camera]]
    edges = np.searchsorted(tracks.cam[kept], np.arange(tracks.cameras + 1))
    grid = _grid(xy[kept], edges)
    kept = kept[grid.order]
    unit = residuals[kept] / length[kept, None]
    total, pairs = np.zeros(tracks.cameras), np.zeros(tracks.cameras, dtype=np.int64)
    cells = grid.first, grid.across, grid.low, grid.size, grid.ptr
    asked = _asked(edges)[grid.order]
    threads.run(_cosines, edges, edges, *cells, xy[kept], unit, asked, total, pairs)
    count = int(pairs.sum())
    noise = (pairs > 0) & (total <= INCOHERENT * np.sqrt(2.0 * np.maximum(pairs, 1)))
    return (float(total.sum()) / count, float((2.0 / count) ** 0.5), noise) if count else (0.0, 1.0, noise)


def _asked(edges: Index) -> NDArray[np.bool_]:
    """Selected observations, by camera; none of a camera with too few."""
    count = np.diff(edges)
    every = np.repeat(np.maximum(-(-count // MOST_A_CAMERA), 1), count)
    place = np.arange(edges[-1]) - np.repeat(edges[:-1], count)
    return (place % every == 0) & np.repeat(count > NEIGHBOURS, count)


@dataclass(frozen=True)
class _Grid:
    """Each camera's image in across x across cells."""

    order: Index
    """observations, camera by camera as they were, cell by cell"""
    first: Index
    """cell of each camera, row by row the others follow"""
    across: Index
    low: Array
    """corner of each camera's first cell, (cameras, 2)"""
    size: Array
    """of its cells, (cameras, 2)"""
    ptr: Index
    """observations of cell c are ptr[c]:ptr[c + 1] of those in order"""


def _grid(xy: Array, edges: Index) -> _Grid:
    """Of observations that lie camera by camera."""
    count, cameras = np.diff(edges), len(edges) - 1
    low, high = np.full((cameras, 2), np.inf), np.full((cameras, 2), -np.inf)
    seeing = np.flatnonzero(count)
    if len(seeing):
        low[seeing] = np.minimum.reduceat(xy, edges[seeing])
        high[seeing] = np.maximum.reduceat(xy, edges[seeing])
    across = np.maximum(np.sqrt(count / _A_CELL).astype(np.int64), 1)
    size = np.maximum(high - low, 0.0) / across[:, None]
    size = np.where(size > 0.0, size, 1.0)
    first = np.concatenate([[0], np.cumsum(across**2)])
    camera = np.repeat(np.arange(cameras), count)
    cell = np.clip(((xy - low[camera]) / size[camera]).astype(np.int64), 0, across[camera, None] - 1)
    number = first[camera] + cell[:, 1] * across[camera] + cell[:, 0]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=first[-1]))])
    return _Grid(np.argsort(number, kind="stable"), first[:-1], across, low, size, ptr)


@kernel(inline="always")
def _reach(at, low, size, lowest, highest, across):
    """How far along an axis everything is inside cells lowest ... highest; beyond the last ones there is nothing."""
    below = np.inf if lowest <= 0 else at - (low + lowest * size)
    above = np.inf if highest >= across - 1 else low + (highest + 1) * size - at
    return min(below, above)


@kernel(strict=True)  # distances are infinite where there is nothing
def _cosines(begin, end, edges, first, across, low, size, ptr, xy, unit, asked, total, pairs):
    """Of cameras begin ... end the sum of cosines with the nearest, and how many these are.

    The search visits rings of cells around an observation until none outside can be nearer than the fourth found. The
    first is the observation itself; another at the same place is its duplicate with another orientation, and does not
    count.
    """
    distance, cosine = room((_NEAREST,)), room((_NEAREST,))
    for k in range(begin, end):
        n = across[k]
        for i in range(edges[k], edges[k + 1]):
            if not asked[i]:
                continue
            x, y = xy[i, 0], xy[i, 1]
            column = min(max(int((x - low[k, 0]) / size[k, 0]), 0), n - 1)
            row = min(max(int((y - low[k, 1]) / size[k, 1]), 0), n - 1)
            distance[:] = np.inf
            ring = 0
            while True:
                for r in range(max(row - ring, 0), min(row + ring, n - 1) + 1):
                    step = 1 if abs(r - row) == ring else 2 * ring
                    for c in range(column - ring, column + ring + 1, step):
                        if c < 0 or c >= n:
                            continue
                        cell = first[k] + r * n + c
                        for j in range(ptr[cell], ptr[cell + 1]):
                            d = (xy[j, 0] - x) ** 2 + (xy[j, 1] - y) ** 2
                            if d >= distance[_NEAREST - 1]:
                                continue
                            place = _NEAREST - 1
                            while place > 0 and distance[place - 1] > d:
                                distance[place], cosine[place] = distance[place - 1], cosine[place - 1]
                                place -= 1
                            distance[place], cosine[place] = d, unit[i, 0] * unit[j, 0] + unit[i, 1] * unit[j, 1]
                reach = min(
                    _reach(x, low[k, 0], size[k, 0], column - ring, column + ring, n),
                    _reach(y, low[k, 1], size[k, 1], row - ring, row + ring, n),
                )
                ring += 1
                if ring >= n or distance[_NEAREST - 1] <= reach * reach:
                    break
            for p in range(_NEAREST):
                if 0.0 < distance[p] < np.inf:
                    total[k] += cosine[p]
                    pairs[k] += 1
