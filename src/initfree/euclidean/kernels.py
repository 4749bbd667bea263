"""Compiled kernels of the Euclidean stage: what touches every observation of a metric camera.

A camera sees landmark X through  x = R X + t,  π = (x1, x2)/x3,  n = |π|²,

    r = [ f π (1 + k1 n + k2 n²) - m ] · pixels        (Agarwal and others 2010, m in normalised units)

and moves by (ω, τ, log f, k1, k2): x <- exp([ω]×) x + τ. Rotating about the camera's own centre, in its own frame, makes
every derivative free of the world's origin and orientation:

    dr/dω = x × (dr/dx),   dr/dτ = dr/dx,   dr/dX = (dr/dx) R.

An observation at or behind the camera's plane, or further off than `WORST` normalised units, has that error and no
derivative: the cost of a point never falls by passing through the principal plane, and stays finite there.

Observations are sorted by landmark as everywhere (see `varpro.kernels`). A camera's moving parameters are named by
`slots`, a tuple, so that its length is known to the compiler and the innermost loops unroll.
"""

import numpy as np

from initfree.varpro.kernels import _whitening, kernel

PARAMETERS = 9
"""Numbers by which a camera can move: ω, τ, log f, k1, k2."""

WORST = 2.0
"""Largest error of an observation in normalised units: beyond the other edge of an image of 90 degrees."""


@kernel(inline="always")
def _residual(x, y, z, f, k1, k2, m, pixels, cheirality):
    """(valid, r0, r1); not valid where the observation has the worst error and no derivative."""
    valid = z > 0.0 or (z < 0.0 and not cheirality)
    r0 = r1 = 0.0
    if valid:
        a, b = x / z, y / z
        n = a * a + b * b
        d = f * (1.0 + n * (k1 + n * k2))
        e0, e1 = a * d - m[0], b * d - m[1]
        # Written so that NaN is not valid.
        valid = e0 * e0 + e1 * e1 < WORST * WORST
        r0, r1 = e0 * pixels[0], e1 * pixels[1]
    return valid, r0, r1


@kernel()
def squared_residuals(ptr, cam, R, t, focal, radial, xyz, m, pixels, cheirality, squared):
    """|r|² of every observation, in pixels²."""
    for j in range(ptr.size - 1):
        X0, X1, X2 = xyz[j, 0], xyz[j, 1], xyz[j, 2]
        for a in range(ptr[j], ptr[j + 1]):
            k = cam[a]
            q = R[k]
            x = q[0, 0] * X0 + q[0, 1] * X1 + q[0, 2] * X2 + t[k, 0]
            y = q[1, 0] * X0 + q[1, 1] * X1 + q[1, 2] * X2 + t[k, 1]
            z = q[2, 0] * X0 + q[2, 1] * X1 + q[2, 2] * X2 + t[k, 2]
            valid, r0, r1 = _residual(x, y, z, focal[k], radial[k, 0], radial[k, 1], m[a], pixels[a], cheirality)
            if valid:
                squared[a] = r0 * r0 + r1 * r1
            else:
                squared[a] = 0.5 * WORST * WORST * (pixels[a, 0] ** 2 + pixels[a, 1] ** 2)


@kernel(inline="always")
def _linearise(R, t, f, k1, k2, X, m, pixels, root, cheirality, J, B, r):
    """Residual r (2), dr/d(camera) J (2x9) and dr/dX B (2x3), all times `root`; zeros where not valid."""
    X0, X1, X2 = X[0], X[1], X[2]
    x = R[0, 0] * X0 + R[0, 1] * X1 + R[0, 2] * X2 + t[0]
    y = R[1, 0] * X0 + R[1, 1] * X1 + R[1, 2] * X2 + t[1]
    z = R[2, 0] * X0 + R[2, 1] * X1 + R[2, 2] * X2 + t[2]
    valid, r0, r1 = _residual(x, y, z, f, k1, k2, m, pixels, cheirality)
    if not valid or root == 0.0:
        J[:, :] = 0.0
        B[:, :] = 0.0
        r[:] = 0.0
        return
    r[0], r[1] = root * r0, root * r1
    a, b = x / z, y / z
    n = a * a + b * b
    d = 1.0 + n * (k1 + n * k2)
    slope = 2.0 * (k1 + 2.0 * n * k2)
    for row in range(2):
        scale = root * pixels[row] * f
        c = a if row == 0 else b
        # dr/dπ; π does not change with the scale of x, which gives the third column of dr/dx.
        pa = scale * (slope * c * a + (d if row == 0 else 0.0))
        pb = scale * (slope * c * b + (d if row == 1 else 0.0))
        j0, j1 = pa / z, pb / z
        j2 = -(a * j0 + b * j1)
        J[row, 0], J[row, 1], J[row, 2] = y * j2 - z * j1, z * j0 - x * j2, x * j1 - y * j0
        J[row, 3], J[row, 4], J[row, 5] = j0, j1, j2
        J[row, 6], J[row, 7], J[row, 8] = scale * c * d, scale * c * n, scale * c * n * n
        for e in range(3):
            B[row, e] = j0 * R[0, e] + j1 * R[1, e] + j2 * R[2, e]


@kernel()
def jacobians(ptr, cam, R, t, focal, radial, xyz, m, pixels, weight, cheirality, J, B, r):
    """The parts of `_linearise` for all observations at once."""
    for j in range(ptr.size - 1):
        for a in range(ptr[j], ptr[j + 1]):
            k = cam[a]
            _linearise(
                R[k], t[k], focal[k], radial[k, 0], radial[k, 1], xyz[j], m[a], pixels[a],
                np.sqrt(weight[a]), cheirality, J[a], B[a], r[a],
            )  # fmt: skip


@kernel(inline="always")
def _damp(V, damping):
    """V + damping trace(V)/3 I with both triangles filled from the lower one; returns the shift."""
    shift = damping * (V[0, 0] + V[1, 1] + V[2, 2]) / 3.0
    for row in range(3):
        V[row, row] += shift
        for column in range(row):
            V[column, row] = V[row, column]
    return shift


@kernel()
def assemble(
    ptr, cam, pair, slots, R, t, focal, radial, xyz, m, pixels, weight, cheirality, damping, blocks, diagonal, gradient
):  # fmt: skip
    """Blocks of the reduced camera system, diag(J'J) of the cameras and the reduced gradient, in one pass.

    With V_j = sum_i B_i'B_i + λ trace/3 I, M_j'M_j = V_j^-1 and Z_i = J_i'B_i M_j' (slots x 3), block (i, k) is
    δ_ik J_i'J_i - Z_i Z_k' and the gradient J_i'r_i - Z_i M_j h_j, h_j = sum_i B_i'r_i.
    Returns 1/2 sum_j h' V_j^-1 h: what the landmarks alone gain at fixed cameras.
    """
    width = len(slots)
    longest = 0
    for j in range(ptr.size - 1):
        longest = max(longest, ptr[j + 1] - ptr[j])
    full = np.empty((2, PARAMETERS))
    J = np.empty((longest, 2, width))
    B = np.empty((longest, 2, 3))
    r = np.empty((longest, 2))
    Z = np.empty((longest, 3, width))
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    q = np.empty((2, 3))
    blocks[:] = 0.0
    diagonal[:] = 0.0
    gradient[:] = 0.0
    gain = 0.0
    for j in range(ptr.size - 1):
        start = ptr[j]
        count = ptr[j + 1] - start
        V[:, :] = 0.0
        h0 = h1 = h2 = 0.0
        for i in range(count):
            a = start + i
            k = cam[a]
            b = B[i]
            _linearise(
                R[k], t[k], focal[k], radial[k, 0], radial[k, 1], xyz[j], m[a], pixels[a],
                np.sqrt(weight[a]), cheirality, full, b, r[i],
            )  # fmt: skip
            for s in range(width):
                J[i, 0, s], J[i, 1, s] = full[0, slots[s]], full[1, slots[s]]
            for row in range(3):
                for column in range(row + 1):
                    V[row, column] += b[0, row] * b[0, column] + b[1, row] * b[1, column]
            h0 += b[0, 0] * r[i, 0] + b[1, 0] * r[i, 1]
            h1 += b[0, 1] * r[i, 0] + b[1, 1] * r[i, 1]
            h2 += b[0, 2] * r[i, 0] + b[1, 2] * r[i, 1]
        _damp(V, damping)
        _whitening(V, M)
        u0 = M[0, 0] * h0 + M[0, 1] * h1 + M[0, 2] * h2
        u1 = M[1, 0] * h0 + M[1, 1] * h1 + M[1, 2] * h2
        u2 = M[2, 0] * h0 + M[2, 1] * h1 + M[2, 2] * h2
        gain += 0.5 * (u0 * u0 + u1 * u1 + u2 * u2)
        for i in range(count):
            k = cam[start + i]
            for row in range(2):
                for e in range(3):
                    q[row, e] = B[i, row, 0] * M[e, 0] + B[i, row, 1] * M[e, 1] + B[i, row, 2] * M[e, 2]
            e0 = r[i, 0] - (q[0, 0] * u0 + q[0, 1] * u1 + q[0, 2] * u2)
            e1 = r[i, 1] - (q[1, 0] * u0 + q[1, 1] * u1 + q[1, 2] * u2)
            for e in range(3):
                for s in range(width):
                    Z[i, e, s] = J[i, 0, s] * q[0, e] + J[i, 1, s] * q[1, e]
            block = blocks[pair[k, k]]
            for s in range(width):
                j0, j1 = J[i, 0, s], J[i, 1, s]
                z0, z1, z2 = Z[i, 0, s], Z[i, 1, s], Z[i, 2, s]
                gradient[k, s] += j0 * e0 + j1 * e1
                diagonal[k, s] += j0 * j0 + j1 * j1
                for c in range(width):
                    block[s, c] += j0 * J[i, 0, c] + j1 * J[i, 1, c] - z0 * Z[i, 0, c] - z1 * Z[i, 1, c] - z2 * Z[i, 2, c]
            for l in range(i):
                # Tracks are sorted by camera, so rows belong to the later one, as in `pair`.
                block = blocks[pair[k, cam[start + l]]]
                for s in range(width):
                    z0, z1, z2 = Z[i, 0, s], Z[i, 1, s], Z[i, 2, s]
                    for c in range(width):
                        block[s, c] -= z0 * Z[l, 0, c] + z1 * Z[l, 1, c] + z2 * Z[l, 2, c]
    return gain


@kernel()
def scatter(pairs, column, blocks, H):
    """Add the blocks into the dense symmetric H; slot s of camera k is column[k, s], which cameras may share."""
    H[:, :] = 0.0
    for n in range(pairs.shape[0]):
        i, k = pairs[n, 0], pairs[n, 1]
        for s in range(column.shape[1]):
            for c in range(column.shape[1]):
                H[column[i, s], column[k, c]] += blocks[n, s, c]
                if i != k:
                    H[column[k, c], column[i, s]] += blocks[n, s, c]


@kernel()
def back_substitute(
    ptr, cam, slots, R, t, focal, radial, xyz, m, pixels, weight, cheirality, damping, step, moved
):  # fmt: skip
    """Landmarks after the joint step: X_j <- X_j - V_j^-1 (h_j + sum_i B_i'J_i step_i).

    Returns 1/2 λ sum_j trace(V_j)/3 |δ_j|², the landmarks' share of the damping in the predicted decrease.
    """
    full = np.empty((2, PARAMETERS))
    b = np.empty((2, 3))
    r = np.empty(2)
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    damped = 0.0
    for j in range(ptr.size - 1):
        V[:, :] = 0.0
        h0 = h1 = h2 = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            k = cam[a]
            _linearise(
                R[k], t[k], focal[k], radial[k, 0], radial[k, 1], xyz[j], m[a], pixels[a],
                np.sqrt(weight[a]), cheirality, full, b, r,
            )  # fmt: skip
            e0, e1 = r[0], r[1]
            for s in range(len(slots)):
                e0 += full[0, slots[s]] * step[k, s]
                e1 += full[1, slots[s]] * step[k, s]
            for row in range(3):
                for column in range(row + 1):
                    V[row, column] += b[0, row] * b[0, column] + b[1, row] * b[1, column]
            h0 += b[0, 0] * e0 + b[1, 0] * e1
            h1 += b[0, 1] * e0 + b[1, 1] * e1
            h2 += b[0, 2] * e0 + b[1, 2] * e1
        shift = _damp(V, damping)
        _whitening(V, M)
        u0 = M[0, 0] * h0 + M[0, 1] * h1 + M[0, 2] * h2
        u1 = M[1, 0] * h0 + M[1, 1] * h1 + M[1, 2] * h2
        u2 = M[2, 0] * h0 + M[2, 1] * h1 + M[2, 2] * h2
        d0 = M[0, 0] * u0 + M[1, 0] * u1 + M[2, 0] * u2
        d1 = M[0, 1] * u0 + M[1, 1] * u1 + M[2, 1] * u2
        d2 = M[0, 2] * u0 + M[1, 2] * u1 + M[2, 2] * u2
        moved[j, 0], moved[j, 1], moved[j, 2] = xyz[j, 0] - d0, xyz[j, 1] - d1, xyz[j, 2] - d2
        damped += 0.5 * shift * (d0 * d0 + d1 * d1 + d2 * d2)
    return damped


@kernel()
def stay_in_front(ptr, cam, weight, R, t, xyz, moved):
    """Halve a landmark's step while it leads behind a camera (R, t) that still sees the old position in front.

    One landmark that runs through infinity then does not cost all others their step.
    """
    for j in range(ptr.size - 1):
        for attempt in range(5):
            crosses = False
            for a in range(ptr[j], ptr[j + 1]):
                k = cam[a]
                q0, q1, q2, q3 = R[k, 2, 0], R[k, 2, 1], R[k, 2, 2], t[k, 2]
                crosses |= (
                    weight[a] > 0.0
                    and q0 * moved[j, 0] + q1 * moved[j, 1] + q2 * moved[j, 2] + q3 <= 0.0
                    and q0 * xyz[j, 0] + q1 * xyz[j, 1] + q2 * xyz[j, 2] + q3 > 0.0
                )
            if not crosses:
                break
            for e in range(3):
                moved[j, e] = xyz[j, e] if attempt == 4 else 0.5 * (moved[j, e] + xyz[j, e])
