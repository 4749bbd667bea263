"""Compiled kernels of the adjustment with any camera model: the reduced system of poses and lenses.

Of every observation a the projection's derivatives are given, A_a = dr/dx (2x3) and T_a = dr/dθ (2 x numbers of its lens).
Poses move as in `euclidean.kernels`, x <- exp([ω]×) x + τ, so that with x in the camera's frame

    dr/dω = x × A,   dr/dτ = A,   dr/dX = A R.

With Z_a = J_a'B_a M_j' of the pose and S_g = sum_a T_a'B_a M_j' over the observations of lens g, landmark j takes
Z_a Z_b', S_g Z_a' and S_g S_h' from the system: a shared lens costs one block a landmark, not one a pair of images.
"""

import numpy as np

from initfree.engine.kernels import damp, kernel, unwhitened, whitened, whitening
from initfree.euclidean.kernels import accumulate


@kernel(inline="always")
def _pose(a, k, R, x, A, root, i, J, B):
    """dr/d(ω, τ) J[i] (2x6) and dr/dX B[i] (2x3) of observation a in camera k, times `root`."""
    x0, x1, x2 = x[a, 0], x[a, 1], x[a, 2]
    for row in range(2):
        j0, j1, j2 = root * A[a, row, 0], root * A[a, row, 1], root * A[a, row, 2]
        J[i, row, 0], J[i, row, 1], J[i, row, 2] = x1 * j2 - x2 * j1, x2 * j0 - x0 * j2, x0 * j1 - x1 * j0
        J[i, row, 3], J[i, row, 4], J[i, row, 5] = j0, j1, j2
        for e in range(3):
            B[i, row, e] = j0 * R[k, 0, e] + j1 * R[k, 1, e] + j2 * R[k, 2, e]


@kernel()
def assemble(ptr, cam, lens, place, numbers, R, x, residual, A, T, weight, damping, H, diagonal, gradient):
    """Lower triangle of the reduced system H, diag(J'J) and the reduced gradient.

    Camera k has rows 6 k .. 6 k + 5, lens g rows place[g] .. place[g] + numbers[g] - 1, after all cameras.
    Returns 1/2 sum_j h' V_j^-1 h: what the landmarks alone gain.
    """
    longest = 0
    for j in range(ptr.size - 1):
        longest = max(longest, ptr[j + 1] - ptr[j])
    most = T.shape[2]
    J = np.empty((longest, 2, 6))
    B = np.empty((longest, 2, 3))
    r = np.empty((longest, 2))
    Z = np.empty((longest, 6, 3))
    S = np.empty((longest, most, 3))
    U = np.empty((2, most))
    present = np.empty(longest, dtype=np.int64)
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    Q = np.empty((2, 3))
    h = np.empty(3)
    H[:, :] = 0.0
    diagonal[:] = 0.0
    gradient[:] = 0.0
    gain = 0.0
    for j in range(ptr.size - 1):
        start = ptr[j]
        count = ptr[j + 1] - start
        V[:, :] = 0.0
        h[:] = 0.0
        for i in range(count):
            a = start + i
            root = np.sqrt(weight[a])
            _pose(a, cam[a], R, x, A, root, i, J, B)
            r[i, 0], r[i, 1] = root * residual[a, 0], root * residual[a, 1]
            accumulate(B, r, i, V, h)
        damp(V, damping)
        whitening(V, M)
        u0, u1, u2 = whitened(M, h[0], h[1], h[2])
        gain += 0.5 * (u0 * u0 + u1 * u1 + u2 * u2)
        lenses = 0
        for i in range(count):
            a = start + i
            k = cam[a]
            g = lens[k]
            root = np.sqrt(weight[a])
            for row in range(2):
                for e in range(3):
                    Q[row, e] = B[i, row, 0] * M[e, 0] + B[i, row, 1] * M[e, 1] + B[i, row, 2] * M[e, 2]
            e0 = r[i, 0] - (Q[0, 0] * u0 + Q[0, 1] * u1 + Q[0, 2] * u2)
            e1 = r[i, 1] - (Q[1, 0] * u0 + Q[1, 1] * u1 + Q[1, 2] * u2)
            for s in range(6):
                j0, j1 = J[i, 0, s], J[i, 1, s]
                gradient[6 * k + s] += j0 * e0 + j1 * e1
                diagonal[6 * k + s] += j0 * j0 + j1 * j1
                for e in range(3):
                    Z[i, s, e] = j0 * Q[0, e] + j1 * Q[1, e]
                for c in range(s + 1):
                    H[6 * k + s, 6 * k + c] += j0 * J[i, 0, c] + j1 * J[i, 1, c]
            n = 0
            while n < lenses and present[n] != g:
                n += 1
            if n == lenses:
                present[n] = g
                lenses += 1
                S[n, :, :] = 0.0
            first = place[g]
            for s in range(numbers[g]):
                U[0, s], U[1, s] = root * T[a, 0, s], root * T[a, 1, s]
                j0, j1 = U[0, s], U[1, s]
                gradient[first + s] += j0 * e0 + j1 * e1
                diagonal[first + s] += j0 * j0 + j1 * j1
                for e in range(3):
                    S[n, s, e] += j0 * Q[0, e] + j1 * Q[1, e]
                for c in range(6):
                    H[first + s, 6 * k + c] += j0 * J[i, 0, c] + j1 * J[i, 1, c]
                for c in range(s + 1):
                    H[first + s, first + c] += j0 * U[0, c] + j1 * U[1, c]
            for l in range(i + 1):
                # Tracks are sorted by camera, so that rows belong to the later one.
                column = 6 * cam[start + l]
                for s in range(6):
                    z0, z1, z2 = Z[i, s, 0], Z[i, s, 1], Z[i, s, 2]
                    for c in range(6 if l < i else s + 1):
                        H[6 * k + s, column + c] -= z0 * Z[l, c, 0] + z1 * Z[l, c, 1] + z2 * Z[l, c, 2]
        for n in range(lenses):
            first, rows = place[present[n]], numbers[present[n]]
            for s in range(rows):
                z0, z1, z2 = S[n, s, 0], S[n, s, 1], S[n, s, 2]
                for i in range(count):
                    column = 6 * cam[start + i]
                    for c in range(6):
                        H[first + s, column + c] -= z0 * Z[i, c, 0] + z1 * Z[i, c, 1] + z2 * Z[i, c, 2]
                for l in range(lenses):
                    column = place[present[l]]
                    if column > first:
                        continue
                    for c in range(s + 1 if l == n else numbers[present[l]]):
                        H[first + s, column + c] -= z0 * S[l, c, 0] + z1 * S[l, c, 1] + z2 * S[l, c, 2]
    return gain


@kernel()
def back_substitute(ptr, cam, lens, place, numbers, R, x, residual, A, T, weight, damping, step, xyz, moved):
    """Landmarks after the joint step: X_j <- X_j - V_j^-1 (h_j + sum_a B_a'(J_a step + T_a step)).

    Returns 1/2 λ sum_j trace(V_j)/3 |δ_j|², the landmarks' share of the damping in the predicted decrease.
    """
    J = np.empty((1, 2, 6))
    B = np.empty((1, 2, 3))
    r = np.empty((1, 2))
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    h = np.empty(3)
    damped = 0.0
    for j in range(ptr.size - 1):
        V[:, :] = 0.0
        h[:] = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            k = cam[a]
            root = np.sqrt(weight[a])
            _pose(a, k, R, x, A, root, 0, J, B)
            for row in range(2):
                moves = residual[a, row]
                for s in range(numbers[lens[k]]):
                    moves += T[a, row, s] * step[place[lens[k]] + s]
                moves *= root
                for s in range(6):
                    moves += J[0, row, s] * step[6 * k + s]
                r[0, row] = moves
            accumulate(B, r, 0, V, h)
        shift = damp(V, damping)
        whitening(V, M)
        u0, u1, u2 = whitened(M, h[0], h[1], h[2])
        d0, d1, d2 = unwhitened(M, u0, u1, u2)
        moved[j, 0], moved[j, 1], moved[j, 2] = xyz[j, 0] - d0, xyz[j, 1] - d1, xyz[j, 2] - d2
        damped += 0.5 * shift * (d0 * d0 + d1 * d1 + d2 * d2)
    return damped
