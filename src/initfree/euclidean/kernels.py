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

from initfree.engine.kernels import kernel, whitening

PARAMETERS = 9
"""Numbers by which a camera can move: ω, τ, log f, k1, k2."""

WORST = 2.0
"""Largest error of an observation in normalised units: beyond the other edge of an image of 90 degrees."""


@kernel(inline="always")
def residual(x, y, z, f, k1, k2, m0, m1, unit0, unit1, cheirality):
    """(valid, r0, r1); not valid where the observation has the worst error and no derivative."""
    valid = z > 0.0 or (z < 0.0 and not cheirality)
    r0 = r1 = 0.0
    if valid:
        a, b = x / z, y / z
        n = a * a + b * b
        d = f * (1.0 + n * (k1 + n * k2))
        e0, e1 = a * d - m0, b * d - m1
        # Written so that NaN is not valid.
        valid = e0 * e0 + e1 * e1 < WORST * WORST
        r0, r1 = e0 * unit0, e1 * unit1
    return valid, r0, r1


@kernel()
def squared_residuals(ptr, cam, cameras, xyz, image, squared):
    """|r|² of every observation, in pixels²; cameras is (R, t, focal, radial), image (m, pixels, cheirality)."""
    R, t, focal, radial = cameras
    m, unit, cheirality = image
    for j in range(ptr.size - 1):
        X0, X1, X2 = xyz[j, 0], xyz[j, 1], xyz[j, 2]
        for a in range(ptr[j], ptr[j + 1]):
            k = cam[a]
            x = R[k, 0, 0] * X0 + R[k, 0, 1] * X1 + R[k, 0, 2] * X2 + t[k, 0]
            y = R[k, 1, 0] * X0 + R[k, 1, 1] * X1 + R[k, 1, 2] * X2 + t[k, 1]
            z = R[k, 2, 0] * X0 + R[k, 2, 1] * X1 + R[k, 2, 2] * X2 + t[k, 2]
            f, k1, k2 = focal[k], radial[k, 0], radial[k, 1]
            p0, p1 = unit[a, 0], unit[a, 1]
            valid, r0, r1 = residual(x, y, z, f, k1, k2, m[a, 0], m[a, 1], p0, p1, cheirality)
            if valid:
                squared[a] = r0 * r0 + r1 * r1
            else:
                squared[a] = 0.5 * WORST * WORST * (p0 * p0 + p1 * p1)


@kernel(inline="always")
def linearise(a, k, j, cameras, xyz, image, root, i, J, B, r):
    """Of observation a, camera k, landmark j: residual r[i] (2), dr/d(camera) J[i] (2x9) and dr/dX B[i] (2x3).

    All times `root`; zeros where not valid. Indices come with whole arrays: a view costs more than the arithmetic.
    """
    R, t, focal, radial = cameras
    m, unit, cheirality = image
    X0, X1, X2 = xyz[j, 0], xyz[j, 1], xyz[j, 2]
    x = R[k, 0, 0] * X0 + R[k, 0, 1] * X1 + R[k, 0, 2] * X2 + t[k, 0]
    y = R[k, 1, 0] * X0 + R[k, 1, 1] * X1 + R[k, 1, 2] * X2 + t[k, 1]
    z = R[k, 2, 0] * X0 + R[k, 2, 1] * X1 + R[k, 2, 2] * X2 + t[k, 2]
    f, k1, k2 = focal[k], radial[k, 0], radial[k, 1]
    valid, r0, r1 = residual(x, y, z, f, k1, k2, m[a, 0], m[a, 1], unit[a, 0], unit[a, 1], cheirality)
    if not valid:
        x, y, z, root = 0.0, 0.0, 1.0, 0.0
    r[i, 0], r[i, 1] = root * r0, root * r1
    inverse = 1.0 / z
    u, v = x * inverse, y * inverse
    n = u * u + v * v
    d = 1.0 + n * (k1 + n * k2)
    slope = 2.0 * (k1 + 2.0 * n * k2)
    for row in range(2):
        scale = root * unit[a, row] * f
        c = u if row == 0 else v
        # dr/dπ; π does not change with the scale of x, which gives the third column of dr/dx.
        j0 = inverse * scale * (slope * c * u + (d if row == 0 else 0.0))
        j1 = inverse * scale * (slope * c * v + (d if row == 1 else 0.0))
        j2 = -(u * j0 + v * j1)
        J[i, row, 0], J[i, row, 1], J[i, row, 2] = y * j2 - z * j1, z * j0 - x * j2, x * j1 - y * j0
        J[i, row, 3], J[i, row, 4], J[i, row, 5] = j0, j1, j2
        J[i, row, 6], J[i, row, 7], J[i, row, 8] = scale * c * d, scale * c * n, scale * c * n * n
        for e in range(3):
            B[i, row, e] = j0 * R[k, 0, e] + j1 * R[k, 1, e] + j2 * R[k, 2, e]


@kernel()
def jacobians(ptr, cam, cameras, xyz, image, weight, J, B, r):
    """`linearise` for all observations at once: (observations, 2, 9), (observations, 2, 3) and (observations, 2)."""
    for j in range(ptr.size - 1):
        for a in range(ptr[j], ptr[j + 1]):
            linearise(a, cam[a], j, cameras, xyz, image, np.sqrt(weight[a]), a, J, B, r)


@kernel(inline="always")
def accumulate(B, r, i, V, h):
    """V += B[i]'B[i] (lower triangle), h += B[i]'r[i]."""
    for row in range(3):
        h[row] += B[i, 0, row] * r[i, 0] + B[i, 1, row] * r[i, 1]
        for column in range(row + 1):
            V[row, column] += B[i, 0, row] * B[i, 0, column] + B[i, 1, row] * B[i, 1, column]


@kernel(inline="always")
def damp(V, damping):
    """V + damping trace(V)/3 I with both triangles filled from the lower one; returns the shift."""
    shift = damping * (V[0, 0] + V[1, 1] + V[2, 2]) / 3.0
    for row in range(3):
        V[row, row] += shift
        for column in range(row):
            V[column, row] = V[row, column]
    return shift


@kernel()
def assemble(ptr, cam, pair, slots, cameras, xyz, image, weight, damping, blocks, diagonal, gradient):
    """Blocks of the reduced camera system, diag(J'J) of the cameras and the reduced gradient, in one pass.

    With V_j = sum_i B_i'B_i + λ trace/3 I, M_j'M_j = V_j^-1 and Z_i = J_i'B_i M_j' (slots x 3), block (i, k) is
    δ_ik J_i'J_i - Z_i Z_k' and the gradient J_i'r_i - Z_i M_j h_j, h_j = sum_i B_i'r_i.
    Returns 1/2 sum_j h' V_j^-1 h: what the landmarks alone gain at fixed cameras.
    """
    width = len(slots)
    longest = 0
    for j in range(ptr.size - 1):
        longest = max(longest, ptr[j + 1] - ptr[j])
    J = np.empty((longest, 2, PARAMETERS))
    B = np.empty((longest, 2, 3))
    r = np.empty((longest, 2))
    Z = np.empty((longest, 3, width))
    G = np.empty((2, width))
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    Q = np.empty((2, 3))
    h = np.empty(3)
    blocks[:] = 0.0
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
            linearise(a, cam[a], j, cameras, xyz, image, np.sqrt(weight[a]), i, J, B, r)
            accumulate(B, r, i, V, h)
        damp(V, damping)
        whitening(V, M)
        u0 = M[0, 0] * h[0] + M[0, 1] * h[1] + M[0, 2] * h[2]
        u1 = M[1, 0] * h[0] + M[1, 1] * h[1] + M[1, 2] * h[2]
        u2 = M[2, 0] * h[0] + M[2, 1] * h[1] + M[2, 2] * h[2]
        gain += 0.5 * (u0 * u0 + u1 * u1 + u2 * u2)
        for i in range(count):
            k = cam[start + i]
            for row in range(2):
                for e in range(3):
                    Q[row, e] = B[i, row, 0] * M[e, 0] + B[i, row, 1] * M[e, 1] + B[i, row, 2] * M[e, 2]
            e0 = r[i, 0] - (Q[0, 0] * u0 + Q[0, 1] * u1 + Q[0, 2] * u2)
            e1 = r[i, 1] - (Q[1, 0] * u0 + Q[1, 1] * u1 + Q[1, 2] * u2)
            for s in range(width):
                j0, j1 = J[i, 0, slots[s]], J[i, 1, slots[s]]
                G[0, s], G[1, s] = j0, j1
                for e in range(3):
                    Z[i, e, s] = j0 * Q[0, e] + j1 * Q[1, e]
                gradient[k, s] += j0 * e0 + j1 * e1
                diagonal[k, s] += j0 * j0 + j1 * j1
            n = pair[k, k]
            for s in range(width):
                for c in range(width):
                    blocks[n, s, c] += G[0, s] * G[0, c] + G[1, s] * G[1, c]
            for l in range(i + 1):
                # Tracks are sorted by camera, so rows belong to the later one, as in `pair`.
                n = pair[k, cam[start + l]]
                for s in range(width):
                    z0, z1, z2 = Z[i, 0, s], Z[i, 1, s], Z[i, 2, s]
                    for c in range(width):
                        blocks[n, s, c] -= z0 * Z[l, 0, c] + z1 * Z[l, 1, c] + z2 * Z[l, 2, c]
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
def back_substitute(ptr, cam, slots, cameras, xyz, image, weight, damping, step, moved):
    """Landmarks after the joint step: X_j <- X_j - V_j^-1 (h_j + sum_i B_i'J_i step_i).

    Returns 1/2 λ sum_j trace(V_j)/3 |δ_j|², the landmarks' share of the damping in the predicted decrease.
    """
    J = np.empty((1, 2, PARAMETERS))
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
            linearise(a, k, j, cameras, xyz, image, np.sqrt(weight[a]), 0, J, B, r)
            for s in range(len(slots)):
                r[0, 0] += J[0, 0, slots[s]] * step[k, s]
                r[0, 1] += J[0, 1, slots[s]] * step[k, s]
            accumulate(B, r, 0, V, h)
        shift = damp(V, damping)
        whitening(V, M)
        u0 = M[0, 0] * h[0] + M[0, 1] * h[1] + M[0, 2] * h[2]
        u1 = M[1, 0] * h[0] + M[1, 1] * h[1] + M[1, 2] * h[2]
        u2 = M[2, 0] * h[0] + M[2, 1] * h[1] + M[2, 2] * h[2]
        length = 0.0
        for e in range(3):
            d = M[0, e] * u0 + M[1, e] * u1 + M[2, e] * u2
            moved[j, e] = xyz[j, e] - d
            length += d * d
        damped += 0.5 * shift * length
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
