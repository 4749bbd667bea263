"""Products with the reduced system without its blocks: about 60 multiply-adds an observation, in linear memory.

With x_i (3x4) a vector's part of camera i, y_a = x_i X_j and what `elimination.condense` left, camera i's part of H x is

    sum_a ( S_a y_a - Z_a q_j ) ⊗ X_j,     q_j = sum_b Z_b' y_b,

and with projected-residual weights  sum_a ( w_a S_a y_a + Z_a (K_j q_j - sum_b w_b Z_b' y_b - w_a q_j) ) ⊗ X_j.
"""

from initfree.engine.kernels import kernel, projection, symmetric
from initfree.engine.simd import room


@kernel()
def collect(begin, end, ptr, cam, weight, X, Z, K, x, q, r):
    """Over landmarks: q_j, and r_j, the rest of what Z_a multiplies: -q_j, with weights K_j q_j - sum_b w_b Z_b' y_b."""
    weighted = weight.size > 0
    for j in range(begin, end):
        q0 = q1 = q2 = p0 = p1 = p2 = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            y0, y1, y2 = projection(x[cam[a]], X[j, 0], X[j, 1], X[j, 2], X[j, 3])
            z0 = Z[a, 0, 0] * y0 + Z[a, 0, 1] * y1 + Z[a, 0, 2] * y2
            z1 = Z[a, 1, 0] * y0 + Z[a, 1, 1] * y1 + Z[a, 1, 2] * y2
            z2 = Z[a, 2, 0] * y0 + Z[a, 2, 1] * y1 + Z[a, 2, 2] * y2
            q0, q1, q2 = q0 + z0, q1 + z1, q2 + z2
            if weighted:
                w = weight[a]
                p0, p1, p2 = p0 + w * z0, p1 + w * z1, p2 + w * z2
        q[j, 0], q[j, 1], q[j, 2] = q0, q1, q2
        r[j, 0], r[j, 1], r[j, 2] = -q0, -q1, -q2
        if weighted:
            for e in range(3):
                r[j, e] = K[j, e, 0] * q0 + K[j, e, 1] * q1 + K[j, e, 2] * q2 - (p0, p1, p2)[e]


@kernel()
def distribute(begin, end, tracks, S, weight, X, Z, q, r, x, own, product):
    """Over cameras: the product (cameras, 3, 4); `own` multiplies the part of S, zero leaves the coupling alone."""
    _, _, landmark, camera_ptr, by_camera = tracks
    weighted = weight.size > 0
    sums = room((3, 4))
    for i in range(begin, end):
        sums[:, :] = 0.0
        for index in range(camera_ptr[i], camera_ptr[i + 1]):
            a = by_camera[index]
            j = landmark[a]
            w = weight[a] if weighted else 1.0
            v = w if weighted else 0.0
            x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
            y0, y1, y2 = projection(x[i], x0, x1, x2, x3)
            f = symmetric(S[a], y0, y1, y2)
            r0, r1, r2 = r[j, 0] - v * q[j, 0], r[j, 1] - v * q[j, 1], r[j, 2] - v * q[j, 2]
            for e in range(3):
                value = own * w * f[e] + Z[a, 0, e] * r0 + Z[a, 1, e] * r1 + Z[a, 2, e] * r2
                sums[e, 0] += value * x0
                sums[e, 1] += value * x1
                sums[e, 2] += value * x2
                sums[e, 3] += value * x3
        for e in range(3):
            for k in range(4):
                product[i, e, k] = sums[e, k]
