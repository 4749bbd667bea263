"""Compiled kernel of the adjustment with any camera model: poses and lenses of each observation, landmarks eliminated.

Of every observation a the projection's derivatives are given, A_a = dr/dx (2x3) and T_a = dr/dθ (2 x numbers of its lens).
Poses move as in `euclidean.kernels`, x <- exp([ω]×) x + τ, so that with x in the camera's frame

    dr/dω = x × A,   dr/dτ = A,   dr/dX = A R.
"""

import numpy as np

from initfree.engine.kernels import kernel
from initfree.euclidean.kernels import accumulate, eliminate


@kernel()
def condense(begin, end, ptr, cam, R, x, residual, A, T, weight, damping, G, Q, e, M, u, shift):
    """As `euclidean.kernels.condense`, with G_a = [dr/dω, dr/dτ, T_a]."""
    V = np.empty((3, 3))
    h = np.empty(3)
    for j in range(begin, end):
        V[:, :] = 0.0
        h[:] = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            k = cam[a]
            root = np.sqrt(weight[a])
            x0, x1, x2 = x[a, 0], x[a, 1], x[a, 2]
            for row in range(2):
                j0, j1, j2 = root * A[a, row, 0], root * A[a, row, 1], root * A[a, row, 2]
                G[a, row, 0], G[a, row, 1], G[a, row, 2] = x1 * j2 - x2 * j1, x2 * j0 - x0 * j2, x0 * j1 - x1 * j0
                G[a, row, 3], G[a, row, 4], G[a, row, 5] = j0, j1, j2
                for s in range(T.shape[2]):
                    G[a, row, 6 + s] = root * T[a, row, s]
                for c in range(3):
                    Q[a, row, c] = j0 * R[k, 0, c] + j1 * R[k, 1, c] + j2 * R[k, 2, c]
                e[a, row] = root * residual[a, row]
            accumulate(Q, e, a, V, h)
        eliminate(j, ptr, V, h, damping, Q, e, M, u, shift)
