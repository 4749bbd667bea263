"""Quotients and products of dense matrices on all threads: SciPy's BLAS, a panel of rows at a time.

BLAS has threads of its own, which spin while they wait: beside other work it took ten times as long with two of them as with
one. Here BLAS has one thread, calls let go of the interpreter lock, and `threads.run` shares panels out. Panels do not
depend on the number of threads, so neither do results, bit for bit.

Rows come first; BLAS reads columns first and sees transposes.
"""

from ctypes import CFUNCTYPE, byref, c_char, c_double, c_int, c_void_p
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

from initfree.data.tracks import Array
from initfree.engine import threads

_PANEL = 192
"""Rows of a panel: enough for BLAS to be fast, few enough for all threads to have some"""


def _routine(module: str, name: str, arguments: int) -> Any:
    return CFUNCTYPE(None, *[c_void_p] * arguments)(get_cython_function_address(f"scipy.linalg.{module}", name))


_dtrsm = _routine("cython_blas", "dtrsm", 11)
_U, _L, _T, _N = (c_char(letter) for letter in (b"U", b"L", b"T", b"N"))
_ONE = c_double(1.0)


def divide(B: Array, L: Array, *, transposed: bool = True) -> None:
    """B <- B L'^-1, or B L^-1 where not `transposed`."""
    if B.size:
        threads.run(_divide, _panels(np.full(-(-len(B) // _PANEL), L.size)), B, L, _T if transposed else _N)


def product(A: Array, B: Array) -> Array:
    """A B."""
    result = np.empty((len(A), B.shape[1]))
    threads.run(_product, _panels(np.full(-(-len(A) // _PANEL), B.size)), A, B, result)
    return result


def _panels(work: Array) -> Any:
    """Cumulative work of panels, for `threads.run`."""
    return np.concatenate([[0], np.cumsum(work)]).astype(np.int64)


def _divide(first: int, last: int, B: Array, L: Array, transposed: c_char) -> None:
    for panel in range(first, last):
        rows = B[panel * _PANEL : (panel + 1) * _PANEL]
        sizes = byref(c_int(len(L))), byref(c_int(len(rows)))
        _dtrsm(byref(_L), byref(_U), byref(transposed), byref(_N), *sizes, byref(_ONE), *_matrix(L), *_matrix(rows))


def _product(first: int, last: int, A: Array, B: Array, result: Array) -> None:
    for panel in range(first, last):
        rows = slice(panel * _PANEL, (panel + 1) * _PANEL)
        np.matmul(A[rows], B, out=result[rows])


def _matrix(A: Array) -> tuple[c_void_p, Any]:
    """Where it begins, and how far apart its rows are."""
    assert A.strides[1] == A.itemsize == 8, "rows of doubles"
    return c_void_p(A.ctypes.data), byref(c_int(max(A.strides[0] // 8, 1)))
