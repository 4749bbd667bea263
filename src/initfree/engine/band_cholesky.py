"""Cholesky factorisation in a band: LAPACK's dpbtrf, cameras in the reverse order of Cuthill and McKee.

Cameras one after the other along a street or across a survey share landmarks with the few before them, so rows begin late.
Where all share landmarks with all, the band is the whole triangle, which takes as long as a dense factorisation.
"""

import numpy as np

from initfree.data.tracks import Array, Index
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.kernels import kernel
from initfree.engine.lapack import band_cholesky, band_solve


class BandFactorisation:
    """A `factorisation.Factorisation` of a lower triangle: the number in row p and column q is at [q, p - q]."""

    def __init__(self, pairs: CameraPairs, column: Index, size: int) -> None:
        self._position = positions(pairs, column, size)
        self._row = self._position[column]
        self._pairs = pairs
        self._band = np.empty((size, bandwidth(pairs, self._row) + 1))
        self._definite = False

    @property
    def flops(self) -> float:
        """Multiply-adds of one factorisation."""
        size, width = map(float, self._band.shape)
        return size * width**2 - 2.0 / 3.0 * width**3

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        self._band[:] = 0.0
        stride = self._band.shape[1] - 1
        add_blocks(self._pairs.row, self._pairs.column, self._row, blocks, stride, self._band.reshape(-1))
        self._band[self._position, 0] += shift
        self._definite = band_cholesky(self._band)
        return self._definite

    def solve(self, b: Array) -> Array:
        if not self._definite:
            raise ValueError("there is no factorisation: the matrix was not positive definite, or not factorised")
        x = np.empty(len(b))
        x[self._position] = b
        band_solve(self._band, x)
        return x[self._position]


def positions(pairs: CameraPairs, column: Index, size: int) -> Index:
    """Of each row in the order of elimination: slot s of camera k is row column[k, s], rows that several cameras share come
    with the last of them. (size,)"""
    last = np.zeros(size, dtype=np.int64)
    np.maximum.at(last, column, pairs.place[:, None])
    position = np.empty(size, dtype=np.int64)
    position[np.lexsort((np.arange(size), last))] = np.arange(size)
    return position


def bandwidth(pairs: CameraPairs, row: Index) -> int:
    """The most by which a number's row comes after its column."""
    low, high = row.min(axis=1), row.max(axis=1)
    after = np.maximum(high[pairs.row] - low[pairs.column], high[pairs.column] - low[pairs.row])
    return int(after.max(initial=0))


@kernel(strict=True)
def add_blocks(one, other, row, blocks, stride, flat):
    """Add the blocks of camera pairs (one[n], other[n]) to a lower triangle whose number in row p and column q is at
    p + stride q; slot s of camera k is row[k, s], which cameras may share."""
    slots = row.shape[1]
    for n in range(one.size):
        i, k = one[n], other[n]
        for s in range(slots):
            p = row[i, s]
            for c in range(slots):
                q = row[k, c]
                if p >= q:
                    twice = 2.0 if i != k and p == q else 1.0
                    flat[p + stride * q] += twice * blocks[n, s, c]
                elif i != k:
                    flat[q + stride * p] += blocks[n, s, c]
