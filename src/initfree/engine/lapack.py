"""BLAS and LAPACK in place, without the interpreter lock, by the addresses that SciPy has for Cython.

BLAS has one thread (`parallel.one_blas_thread`): its own ones spin while they wait. `threads.run` shares panels out, which
do not depend on the number of threads, so neither do results, bit for bit. Matrices are symmetric or lower triangular, rows
first; LAPACK reads columns first and sees their transposes.
"""

from ctypes import CFUNCTYPE, byref, c_char, c_double, c_int, c_void_p
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

from initfree.data.tracks import Array, Index
from initfree.engine import threads

_PANEL = 192
"""Rows of a panel: enough for BLAS to be fast, few enough for all threads to have some"""
_SMALL = 768
"""Rows up to which LAPACK factorises alone"""


def _routine(module: str, name: str, arguments: int) -> Any:
    return CFUNCTYPE(None, *[c_void_p] * arguments)(get_cython_function_address(f"scipy.linalg.{module}", name))


_dpotrf = _routine("cython_lapack", "dpotrf", 5)
_dpbtrf = _routine("cython_lapack", "dpbtrf", 6)
_dpbtrs = _routine("cython_lapack", "dpbtrs", 9)
_dtrsm = _routine("cython_blas", "dtrsm", 11)
_dsyrk = _routine("cython_blas", "dsyrk", 10)
_dgemm = _routine("cython_blas", "dgemm", 13)
_U, _L, _T, _N = (c_char(letter) for letter in (b"U", b"L", b"T", b"N"))
_ONE, _MINUS = c_double(1.0), c_double(-1.0)


def band_cholesky(A: Array) -> bool:
    """A <- L, A = L L', where A[q, p - q] is the number in row p and column q. False where A is not positive definite."""
    info, n, width = c_int(), c_int(len(A)), c_int(A.shape[1] - 1)
    _dpbtrf(byref(_L), byref(n), byref(width), *_matrix(A), byref(info))
    return info.value == 0 and bool(np.isfinite(A[:, 0]).all())


def band_solve(L: Array, b: Array) -> None:
    """b <- (L L')^-1 b."""
    info, n, width = c_int(), c_int(len(L)), c_int(L.shape[1] - 1)
    x = c_void_p(b.ctypes.data)
    _dpbtrs(byref(_L), byref(n), byref(width), byref(c_int(1)), *_matrix(L), x, byref(n), byref(info))


def cholesky(A: Array) -> bool:
    """A's lower triangle becomes L, A = L L'; what is above is not read. False where A is not positive definite."""
    size = len(A)
    width = _SMALL if size <= _SMALL else _PANEL
    for begin in range(0, size, width):
        end = min(begin + width, size)
        if not _factorised(A[begin:end, begin:end]):
            return False
        if end < size:
            below = A[end:, begin:end]
            divide(below, A[begin:end, begin:end])
            subtract_square(A[end:, end:], below)
    return True


def _factorised(A: Array) -> bool:
    info = c_int()
    _dpotrf(byref(_U), byref(c_int(len(A))), *_matrix(A), byref(info))
    return info.value == 0 and bool(np.isfinite(np.diagonal(A)).all())


def divide(B: Array, L: Array, *, transposed: bool = True) -> None:
    """B <- B L'^-1, or B L^-1 where not `transposed`."""
    if B.size:
        threads.run(_divide, _panels(np.full(-(-len(B) // _PANEL), L.size)), B, L, _T if transposed else _N)


def _divide(first: int, last: int, B: Array, L: Array, transposed: c_char) -> None:
    rows = B[first * _PANEL : last * _PANEL]
    sizes = byref(c_int(len(L))), byref(c_int(len(rows)))
    _dtrsm(byref(_L), byref(_U), byref(transposed), byref(_N), *sizes, byref(_ONE), *_matrix(L), *_matrix(rows))


def subtract_square(C: Array, A: Array) -> None:
    """The lower triangle of C <- C - A A'."""
    if A.size:
        threads.run(_subtract, _panels(A.shape[1] * np.arange(1, -(-len(A) // _PANEL) + 1)), C, A)


def _subtract(first: int, last: int, C: Array, A: Array) -> None:
    inner = byref(c_int(A.shape[1]))
    for panel in range(first, last):
        begin, end = panel * _PANEL, min((panel + 1) * _PANEL, len(A))
        left, own = byref(c_int(begin)), byref(c_int(end - begin))
        here, to = _matrix(A[begin:end]), C[begin:end]
        if begin:
            sizes = left, own, inner
            _dgemm(byref(_T), byref(_N), *sizes, byref(_MINUS), *_matrix(A), *here, byref(_ONE), *_matrix(to))
        _dsyrk(byref(_U), byref(_T), own, inner, byref(_MINUS), *here, byref(_ONE), *_matrix(to[:, begin:end]))


def product(A: Array, B: Array) -> Array:
    """A B."""
    result = np.empty((len(A), B.shape[1]))
    threads.run(_product, _panels(np.full(-(-len(A) // _PANEL), B.size)), A, B, result)
    return result


def _product(first: int, last: int, A: Array, B: Array, result: Array) -> None:
    for panel in range(first, last):
        rows = slice(panel * _PANEL, (panel + 1) * _PANEL)
        np.matmul(A[rows], B, out=result[rows])


def _panels(work: Array) -> Index:
    """Cumulative work of panels, for `threads.run`."""
    return np.concatenate([[0], np.cumsum(work)]).astype(np.int64)


def _matrix(A: Array) -> tuple[c_void_p, Any]:
    """Where it begins, and how far apart its rows are."""
    assert A.strides[1] == A.itemsize == 8, "rows of doubles"
    return c_void_p(A.ctypes.data), byref(c_int(max(A.strides[0] // 8, 1)))
