"""Cholesky factorisation of a reduced camera system that comes in blocks of camera pairs."""

from typing import Protocol

import numpy as np

from initfree.engine import threads
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.sparse_cholesky import SparseFactorisation
from initfree.engine.tiles import Tiles, scatter
from initfree.tracks import Array, Index

_SPARSE = 500
"""Rows from which on a dissection pays for itself"""
_WORTHWHILE = 0.3
"""Share of the dense factorisation's multiply-adds below which many small matrices are faster than one"""


class Factorisation(Protocol):
    """H + diag(shift), H in blocks (pairs, slots, slots), factorised many times for the same pairs."""

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        """Whether the matrix is positive definite in floating point."""
        ...

    def solve(self, b: Array) -> Array:
        """The solution of the matrix last factorised."""
        ...


class DenseFactorisation:
    """The whole matrix, in tiles."""

    def __init__(self, pairs: CameraPairs, column: Index, size: int) -> None:
        self._pairs, self._column = pairs, column
        self._tiles = Tiles(size)
        self._place = self._tiles.place(column)
        self._work = pairs.work(column.shape[1])
        self._shared = len(np.unique(column)) < column.size

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        tiles, pairs = self._tiles, (self._pairs.row, self._pairs.column)
        tiles.clear()
        added = *pairs, self._column, self._place, len(tiles.lanes), blocks, tiles.flat
        if self._shared:  # two blocks may add to one number
            scatter(0, len(self._pairs), *added)
        else:
            threads.run(scatter, self._work, *added)
        tiles.flat[tiles.diagonal[: tiles.size]] += shift
        return tiles.factorise()

    def solve(self, b: Array) -> Array:
        return self._tiles.solve(b)


def multiply_adds(pairs: CameraPairs, width: int) -> float:
    """Of one sparse factorisation with so many numbers a camera."""
    column = np.arange(width * pairs.cameras).reshape(-1, width)
    return SparseFactorisation(pairs, column, column.size).flops


def factorisation(pairs: CameraPairs, column: Index, size: int) -> Factorisation:
    """For slot s of camera k in row column[k, s] of `size`; cameras may share rows (intrinsics)."""
    if size >= _SPARSE:
        sparse = SparseFactorisation(pairs, column, size)
        if sparse.flops < _WORTHWHILE * size**3 / 3.0:
            return sparse
    return DenseFactorisation(pairs, column, size)
