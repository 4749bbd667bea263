"""Cholesky factorisation of a reduced camera system that comes in blocks of camera pairs."""

from typing import Protocol

import numpy as np

from initfree.data.tracks import Array, Index
from initfree.engine.band_cholesky import BandFactorisation
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.sparse_cholesky import SparseFactorisation

_SPARSE = 500
"""Rows from which on a dissection pays for itself"""
_WORTHWHILE = 0.7
"""Share of the band's multiply-adds below which many small matrices are faster (benchmarks/sparse_factorisation.py)"""


class Factorisation(Protocol):
    """H + diag(shift), H in blocks (pairs, slots, slots), factorised many times for the same pairs."""

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        """Whether the matrix is positive definite in floating point."""
        ...

    def solve(self, b: Array) -> Array:
        """The solution of the matrix last factorised."""
        ...


def multiply_adds(pairs: CameraPairs, width: int) -> float:
    """Of one sparse factorisation with so many numbers a camera."""
    column = np.arange(width * pairs.cameras).reshape(-1, width)
    return SparseFactorisation(pairs, column, column.size).flops


def factorisation(pairs: CameraPairs, column: Index, size: int) -> Factorisation:
    """For slot s of camera k in row column[k, s] of `size`; cameras may share rows (intrinsics)."""
    band = BandFactorisation(pairs, column, size)
    if size >= _SPARSE:
        sparse = SparseFactorisation(pairs, column, size)
        if sparse.flops < _WORTHWHILE * band.flops:
            return sparse
    return band
