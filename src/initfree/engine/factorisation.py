"""Cholesky factorisation of a reduced camera system that comes in blocks of camera pairs."""

from typing import Protocol

import numpy as np
from scipy.linalg import get_lapack_funcs

from initfree.engine.blocks import scatter
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.panels import SMALL, cholesky, cholesky_above
from initfree.engine.sparse_cholesky import SparseFactorisation
from initfree.tracks import Array, Index

_SPARSE = 500
"""Rows from which on a dissection pays for itself"""
_WORTHWHILE = 0.3
"""Share of the dense factorisation's multiply-adds below which many small matrices are faster than one"""
(_potrs,) = get_lapack_funcs(("potrs",), dtype=np.float64)


class Factorisation(Protocol):
    """H + diag(shift), H in blocks (pairs, slots, slots), factorised many times for the same pairs."""

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        """Whether the matrix is positive definite in floating point."""
        ...

    def solve(self, b: Array) -> Array:
        """The solution of the matrix last factorised."""
        ...


class DenseFactorisation:
    """LAPACK on the whole matrix."""

    def __init__(self, pairs: CameraPairs, column: Index, size: int) -> None:
        self._pairs, self._column = pairs, column
        self._H = np.empty((size, size))
        self._above = size <= SMALL

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        scatter(self._pairs.row, self._pairs.column, self._column, blocks, self._above, self._H)
        self._H.flat[:: len(self._H) + 1] += shift
        return cholesky_above(self._H) if self._above else cholesky(self._H)

    def solve(self, b: Array) -> Array:
        # LAPACK reads columns first: it sees the transpose, and of that the other triangle, without a copy.
        x, _ = _potrs(self._H.T, b, lower=self._above)
        return x


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
