"""Projective landmarks for given cameras: the null vectors of what their observations say, by inverse iteration."""

import numpy as np

from initfree.data.tracks import Array, Tracks
from initfree.engine import threads
from initfree.engine.kernels import kernel
from initfree.engine.vectors import room

_SHIFT = 1e-14
"""of the trace, that keeps the matrix of an exact landmark from being singular"""
_ITERATIONS = 50
_SAME = 1e-15
"""squared sine of the angle by which a last iteration turns a landmark"""


def triangulate_projective(tracks: Tracks, m: Array, P: Array) -> Array:
    """Landmarks (landmarks, 4) that minimise sum |a'X|² on the unit sphere, a the rows p1 - m1 p3 and p2 - m2 p3 of every
    observation, of unit length, for given projective cameras P (cameras, 3, 4)."""
    unit = np.ascontiguousarray(P / np.linalg.norm(P, axis=(1, 2), keepdims=True))
    X = np.empty((tracks.landmarks, 4))
    threads.run(_null_vectors, tracks.ptr, tracks.ptr, tracks.cam, np.ascontiguousarray(m), unit, X)
    return X


@kernel()
def _null_vectors(begin, end, ptr, cam, m, P, X):
    V, L = room((4, 4)), room((4, 4))
    row, x, best = room((4,)), room((4,)), room((4,))
    for j in range(begin, end):
        V[:, :] = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            k = cam[a]
            for side in range(2):
                norm = 0.0
                for e in range(4):
                    row[e] = P[k, side, e] - m[a, side] * P[k, 2, e]
                    norm += row[e] * row[e]
                if norm > 0.0:
                    for e in range(4):
                        for f in range(e + 1):
                            V[e, f] += row[e] * row[f] / norm
        _factorise(V, _SHIFT * (V[0, 0] + V[1, 1] + V[2, 2] + V[3, 3]) + 1e-300, L)
        # From the best of the four axes: one of them is no further than 60 degrees away.
        largest = -1.0
        for e in range(4):
            x[:] = 0.0
            x[e] = 1.0
            length = _solve(L, x)
            if length > largest:
                largest = length
                _copy(x, best)
        for _ in range(_ITERATIONS):
            _copy(best, x)
            _solve(L, x)
            along = x[0] * best[0] + x[1] * best[1] + x[2] * best[2] + x[3] * best[3]
            _copy(x, best)
            if 1.0 - along * along <= _SAME:
                break
        _copy(best, X[j])


@kernel(inline="always")
def _copy(x, into):
    into[0], into[1], into[2], into[3] = x[0], x[1], x[2], x[3]


@kernel(inline="always")
def _factorise(V, shift, L):
    """Cholesky of V + shift I from the lower triangle; a pivot that rounding made negative is as good as zero."""
    for e in range(4):
        for f in range(e + 1):
            total = V[e, f] + (shift if e == f else 0.0)
            for g in range(f):
                total -= L[e, g] * L[f, g]
            L[e, f] = np.sqrt(max(total, shift)) if e == f else total / L[f, f]


@kernel(inline="always")
def _solve(L, x):
    """x <- (LL')^-1 x, of unit length; returns the length that it had."""
    for e in range(4):
        for f in range(e):
            x[e] -= L[e, f] * x[f]
        x[e] /= L[e, e]
    for back in range(4):
        e = 3 - back
        for f in range(e + 1, 4):
            x[e] -= L[f, e] * x[f]
        x[e] /= L[e, e]
    length = np.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3])
    for e in range(4):
        x[e] /= length
    return length
