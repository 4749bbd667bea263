"""Compiled kernels of the Euclidean stage: what touches every observation of a metric camera.

A camera sees landmark X through  x = R X + t,  π = (x1, x2)/x3,  n = |π|²,

    r = [ f π (1 + k1 n + k2 n²) - m ] · pixels        (Agarwal and others 2010, m in normalised units)

and moves by (ω, τ, log f, k1, k2): x <- exp([ω]×) x + τ. Rotating about the camera's own centre, in its own frame, makes
every derivative free of the world's origin and orientation:

    dr/dω = x × (dr/dx),   dr/dτ = dr/dx,   dr/dX = (dr/dx) R.

An observation at or behind the camera's plane, or further off than `WORST` normalised units, has that error and no
derivative: the cost of a point never falls by passing through the principal plane, and stays finite there.

Observations are sorted by landmark as everywhere (see `engine.kernels`). A camera's free parameters are named by
`slots`, a tuple, so that its length is known to the compiler and the innermost loops unroll.
"""

import numpy as np

from initfree.engine.kernels import damp, kernel, unwhitened, whitened, whitening
from initfree.engine.vectors import room

PARAMETERS = 9
"""Numbers by which a camera can move: ω, τ, log f, k1, k2."""

WORST = 2.0
"""Largest error of an observation in normalised units: beyond the other edge of an image of 90 degrees."""


@kernel(inline="always")
def in_camera(R, t, k, X0, X1, X2):
    """R_k X + t_k."""
    return (
        R[k, 0, 0] * X0 + R[k, 0, 1] * X1 + R[k, 0, 2] * X2 + t[k, 0],
        R[k, 1, 0] * X0 + R[k, 1, 1] * X1 + R[k, 1, 2] * X2 + t[k, 1],
        R[k, 2, 0] * X0 + R[k, 2, 1] * X1 + R[k, 2, 2] * X2 + t[k, 2],
    )


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


@kernel(inline="always")
def measured(a, k, j, cameras, xyz, image):
    """r in pixels of observation a of landmark j in camera k, and its depth; the worst error there is, along the diagonal,
    where it is not valid."""
    R, t, focal, radial = cameras
    m, unit, cheirality = image
    x, y, z = in_camera(R, t, k, xyz[j, 0], xyz[j, 1], xyz[j, 2])
    u0, u1 = unit[a, 0], unit[a, 1]
    valid, r0, r1 = residual(x, y, z, focal[k], radial[k, 0], radial[k, 1], m[a, 0], m[a, 1], u0, u1, cheirality)
    if not valid:
        r0, r1 = np.sqrt(0.5) * WORST * u0, np.sqrt(0.5) * WORST * u1
    return r0, r1, z


@kernel()
def squared_residuals(begin, end, ptr, cam, cameras, xyz, image, squared):
    """|r|² of every observation, in pixels²; cameras is (R, t, focal, radial), image (m, pixels, cheirality)."""
    for j in range(begin, end):
        for a in range(ptr[j], ptr[j + 1]):
            r0, r1, _ = measured(a, cam[a], j, cameras, xyz, image)
            squared[a] = r0 * r0 + r1 * r1


@kernel()
def points(begin, end, ptr, cam, R, t, xyz, x):
    """x = R X + t of every observation, (observations, 3)"""
    for j in range(begin, end):
        for a in range(ptr[j], ptr[j + 1]):
            x[a, 0], x[a, 1], x[a, 2] = in_camera(R, t, cam[a], xyz[j, 0], xyz[j, 1], xyz[j, 2])


@kernel()
def residual_vectors(begin, end, ptr, cam, cameras, xyz, image, r, depth):
    """r in pixels and depth of every observation."""
    for j in range(begin, end):
        for a in range(ptr[j], ptr[j + 1]):
            r[a, 0], r[a, 1], depth[a] = measured(a, cam[a], j, cameras, xyz, image)


@kernel(inline="always")
def linearise(a, k, j, cameras, xyz, image, root, i, J, B, r):
    """Of observation a, camera k, landmark j: residual r[a] (2), dr/d(camera) J[i] (2x9) and dr/dX B[a] (2x3).

    All times `root`; zeros where not valid. Indices come with whole arrays: a view costs more than the arithmetic.
    """
    R, t, focal, radial = cameras
    m, unit, cheirality = image
    X0, X1, X2 = xyz[j, 0], xyz[j, 1], xyz[j, 2]
    x, y, z = in_camera(R, t, k, X0, X1, X2)
    f, k1, k2 = focal[k], radial[k, 0], radial[k, 1]
    valid, r0, r1 = residual(x, y, z, f, k1, k2, m[a, 0], m[a, 1], unit[a, 0], unit[a, 1], cheirality)
    if not valid:
        x, y, z, root = 0.0, 0.0, 1.0, 0.0
    r[a, 0], r[a, 1] = root * r0, root * r1
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
            B[a, row, e] = j0 * R[k, 0, e] + j1 * R[k, 1, e] + j2 * R[k, 2, e]


@kernel()
def jacobians(ptr, cam, cameras, xyz, image, weight, J, B, r):
    """`linearise` for all observations at once: (observations, 2, 9), (observations, 2, 3) and (observations, 2)."""
    for j in range(ptr.size - 1):
        for a in range(ptr[j], ptr[j + 1]):
            linearise(a, cam[a], j, cameras, xyz, image, np.sqrt(weight[a]), a, J, B, r)


@kernel(inline="always")
def accumulate(B, r, a, V, h):
    """V += B[a]'B[a] (lower triangle), h += B[a]'r[a]."""
    for row in range(3):
        h[row] += B[a, 0, row] * r[a, 0] + B[a, 1, row] * r[a, 1]
        for column in range(row + 1):
            V[row, column] += B[a, 0, row] * B[a, 0, column] + B[a, 1, row] * B[a, 1, column]


@kernel(inline="always")
def landmark_out(j, V, h, damping, M, u, shift):
    """shift_j, M_j and u_j = M_j h_j of the landmark (`eliminate_landmarks`)."""
    shift[j] = damp(V, damping)
    whitening(V, M[j])
    u0, u1, u2 = whitened(M[j], h[0], h[1], h[2])
    u[j, 0], u[j, 1], u[j, 2] = u0, u1, u2
    return u0, u1, u2


@kernel(inline="always")
def projected_out(a, Q, m, u0, u1, u2, e):
    """Q_a = B m' in place of B and e_a = r - Q u in place of r, of an observation (`eliminate_landmarks`)."""
    p0, p1, p2 = whitened(m, Q[a, 0, 0], Q[a, 0, 1], Q[a, 0, 2])
    q0, q1, q2 = whitened(m, Q[a, 1, 0], Q[a, 1, 1], Q[a, 1, 2])
    e[a, 0] -= p0 * u0 + p1 * u1 + p2 * u2
    e[a, 1] -= q0 * u0 + q1 * u1 + q2 * u2
    Q[a, 0, 0], Q[a, 0, 1], Q[a, 0, 2] = p0, p1, p2
    Q[a, 1, 0], Q[a, 1, 1], Q[a, 1, 2] = q0, q1, q2


@kernel(inline="always")
def eliminate_landmarks(begin, end, ptr, cam, slots, cameras, xyz, image, weight, damping, G, Q, e, M, u, shift):
    """Landmarks out of the normal equations: the contribution of each observation and landmark to the reduced system.

    With V_j = sum_i B_i'B_i + shift_j I, shift_j = λ trace/3, M_j'M_j = V_j^-1, Q_i = B_i M_j', G_i the free columns of
    J_i and h_j = sum_i B_i'r_i, block (i, k) is G_i'(δ_ik I - Q_i Q_k')G_k and the gradient G_i'e_i, e_i = r_i - Q_i u_j,
    u_j = M_j h_j. Left are G_i, Q_i and e_i.
    1/2 |u|² = 1/2 h' V_j^-1 h is what the landmark alone gains at fixed cameras.
    """
    skipping = False
    for s in range(len(slots)):
        skipping |= slots[s] != s
    J, V, h = room((1, 2, PARAMETERS)), room((3, 3)), room((3,))
    for j in range(begin, end):
        V[:, :] = 0.0
        h[:] = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            linearise(a, cam[a], j, cameras, xyz, image, np.sqrt(weight[a]), 0, J, Q, e)
            accumulate(Q, e, a, V, h)
            if skipping:
                for s in range(6, len(slots)):
                    J[0, 0, s], J[0, 1, s] = J[0, 0, slots[s]], J[0, 1, slots[s]]
            for s in range(len(slots)):
                G[a, 0, s], G[a, 1, s] = J[0, 0, s], J[0, 1, s]
        u0, u1, u2 = landmark_out(j, V, h, damping, M, u, shift)
        for a in range(ptr[j], ptr[j + 1]):
            projected_out(a, Q, M[j], u0, u1, u2, e)


@kernel()
def back_substitute(begin, end, ranges, ptr, cam, G, Q, M, u, shift, xyz, step, moved, gain):
    """Landmarks of ranges begin ... end (`engine.reduction`) after the joint step, from what `eliminate_landmarks` left:
    X_j <- X_j - M_j'(u_j + sum_i Q_i'G_i step_i).

    1/2 |u_j|² + 1/2 shift_j |δ_j|² is the landmark's share of the predicted decrease, gain its sum over a range.
    """
    for t in range(begin, end):
        gain[t] = _back_substitute(ranges[t], ranges[t + 1], ptr, cam, G, Q, M, u, shift, xyz, step, moved)


@kernel(inline="always")
def _back_substitute(begin, end, ptr, cam, G, Q, M, u, shift, xyz, step, moved):
    gain = 0.0
    for j in range(begin, end):
        u0, u1, u2 = u[j, 0], u[j, 1], u[j, 2]
        gain += 0.5 * (u0 * u0 + u1 * u1 + u2 * u2)
        for a in range(ptr[j], ptr[j + 1]):
            k = cam[a]
            r0 = r1 = 0.0
            for s in range(step.shape[1]):
                r0 += G[a, 0, s] * step[k, s]
                r1 += G[a, 1, s] * step[k, s]
            u0 += Q[a, 0, 0] * r0 + Q[a, 1, 0] * r1
            u1 += Q[a, 0, 1] * r0 + Q[a, 1, 1] * r1
            u2 += Q[a, 0, 2] * r0 + Q[a, 1, 2] * r1
        d0, d1, d2 = unwhitened(M[j], u0, u1, u2)
        moved[j, 0], moved[j, 1], moved[j, 2] = xyz[j, 0] - d0, xyz[j, 1] - d1, xyz[j, 2] - d2
        gain += 0.5 * shift[j] * (d0 * d0 + d1 * d1 + d2 * d2)
    return gain


@kernel()
def stay_in_front(begin, end, ptr, cam, weight, R, t, xyz, moved):
    """Halve a landmark's step while it leads behind a camera (R, t) that still sees the old position in front.

    One landmark that runs through infinity then does not cost all others their step.
    """
    for j in range(begin, end):
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
