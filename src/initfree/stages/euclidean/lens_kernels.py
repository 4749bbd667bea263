"""Compiled kernel of the adjustment with any camera model: poses and lenses of each observation, landmarks eliminated.

Of every observation a the projection's derivatives are given, A_a = dr/dx (2x3) and T_a = dr/dθ (2 x numbers of its lens).
Poses move as in `euclidean.kernels`, x <- exp([ω]×) x + τ, so that with x in the camera's frame

    dr/dω = x × A,   dr/dτ = A,   dr/dX = A R.
"""

import numpy as np

from initfree.engine.kernels import kernel
from initfree.engine.vectors import room
from initfree.stages.euclidean.kernels import accumulate, landmark_out, projected_out

FIXED = 1e80
"""of a matrix whose inverse is as good as zero"""


@kernel(inline="always")
def _pose(a, k, R, x, A, root, J, B):
    """dr/d(ω, τ) J[a] (2x6) and dr/dX B[a] (2x3) of observation a in camera k, times `root`."""
    x0, x1, x2 = x[a, 0], x[a, 1], x[a, 2]
    for row in range(2):
        j0, j1, j2 = root * A[a, row, 0], root * A[a, row, 1], root * A[a, row, 2]
        J[a, row, 0], J[a, row, 1], J[a, row, 2] = x1 * j2 - x2 * j1, x2 * j0 - x0 * j2, x0 * j1 - x1 * j0
        J[a, row, 3], J[a, row, 4], J[a, row, 5] = j0, j1, j2
        for e in range(3):
            B[a, row, e] = j0 * R[k, 0, e] + j1 * R[k, 1, e] + j2 * R[k, 2, e]


@kernel(inline="always")
def eliminate_landmarks(begin, end, ptr, cam, R, x, residual, A, T, weight, damping, still, G, Q, e, M, u, shift):
    """Landmarks out of the normal equations, as in `euclidean.kernels`; a camera has numbers of its pose and its lens.
    A landmark that is `still` has a V beyond all others, so that it does not move."""
    V, h = room((3, 3)), room((3,))
    for j in range(begin, end):
        V[:, :] = 0.0
        h[:] = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            root = np.sqrt(weight[a])
            _pose(a, cam[a], R, x, A, root, G, Q)
            for s in range(T.shape[2]):
                G[a, 0, 6 + s], G[a, 1, 6 + s] = root * T[a, 0, s], root * T[a, 1, s]
            e[a, 0], e[a, 1] = root * residual[a, 0], root * residual[a, 1]
            accumulate(Q, e, a, V, h)
        if still[j]:
            V[:, :] = 0.0
            V[0, 0] = V[1, 1] = V[2, 2] = FIXED
        u0, u1, u2 = landmark_out(j, V, h, damping, M, u, shift)
        for a in range(ptr[j], ptr[j + 1]):
            projected_out(a, Q, M[j], u0, u1, u2, e)
