"""Landmarks out of the problem: VarPro's closed form, and each observation's contribution to the reduced camera system.

An observation's 3x3 matrices are kept column by column, a column in the lanes of a vector (`engine.simd`; the fourth is
room), and sums over a landmark's observations stay in vectors until its last one. Landmarks come in groups: the roots and
quotients of many are taken at once. Arrays over observations are flat. `columns` are those of the cameras P, (cameras, 4, 4)
flat, the fourth row zero.
"""

from initfree.engine.kernels import inverse_factor, kernel, pseudo_whitening, sphere_tangent, unwhitened, whitened
from initfree.engine.vectors import (
    LANES_3,
    LANES_4,
    LANES_6,
    add_product,
    add_products,
    arranged,
    difference,
    load,
    room,
    store,
    total,
    zeros,
)

_GROUP = 32
"""Landmarks of a group: what their observations leave stays in the nearest cache"""
_padded, _cut = arranged(0, 1, 2, 2), arranged(0, 1, 2)
_lane0, _lane1, _lane2 = arranged(0, 0, 0, 0), arranged(1, 1, 1, 1), arranged(2, 2, 2, 2)
# A symmetric matrix as 00 01 02 11 12 22: which of the six its columns are, and which two numbers of a column meet in each.
_column0, _column1, _column2 = arranged(0, 1, 2, 2), arranged(1, 3, 4, 4), arranged(2, 4, 5, 5)
_one, _other = arranged(0, 0, 0, 1, 1, 2), arranged(0, 1, 2, 1, 2, 2)


@kernel(inline="always")
def times(s, x):
    """S x, S as six numbers."""
    product = add_products(zeros(LANES_4), _column0(s), _lane0(x))
    product = add_products(product, _column1(s), _lane1(x))
    return add_products(product, _column2(s), _lane2(x))


@kernel(inline="always")
def combined(columns, at, step, x0, x1, x2):
    """The three columns from `at` on, each `step` numbers after the other, times x."""
    product = add_product(zeros(LANES_4), load(columns, at, LANES_4), x0)
    product = add_product(product, load(columns, at + step, LANES_4), x1)
    return add_product(product, load(columns, at + 2 * step, LANES_4), x2)


@kernel(inline="always")
def projected(columns, at, x0, x1, x2, x3):
    """P X."""
    return add_product(combined(columns, at, 4, x0, x1, x2), load(columns, at + 12, LANES_4), x3)


@kernel(inline="always")
def _mixed(t0, t1, t2, M, j, row):
    """T times a row of M_j."""
    product = add_product(add_product(zeros(LANES_4), t0, M[j, row, 0]), t1, M[j, row, 1])
    return add_product(product, t2, M[j, row, 2])


@kernel(inline="always")
def _keep(flat, a, c0, c1, c2):
    """The three columns of observation a."""
    store(flat, 9 * a, _cut(c0))
    store(flat, 9 * a + 3, _cut(c1))
    store(flat, 9 * a + 6, _cut(c2))


@kernel(inline="always")
def _six(y0, y1, y2, z0, z1, z2):
    """Y Z' where that is symmetric, as six numbers."""
    product = add_products(zeros(LANES_6), _one(y0), _other(z0))
    return add_products(add_products(product, _one(y1), _other(z1)), _one(y2), _other(z2))


@kernel(inline="always")
def _slope(s, y, anchor, g, a):
    """γ = S (y - ȳ) + g; an empty g is zero."""
    slope = times(s, difference(y, _padded(load(anchor, 3 * a, LANES_3))))
    if g.size > 0:
        slope = add_product(slope, _padded(load(g, 3 * a, LANES_3)), 1.0)
    return slope


@kernel(inline="always")
def _whiten(count, damping, sums, shift, full):
    """In place of each V the inverse factor of V + shift I, shift = damping trace(V)/3, where that has full rank."""
    for n in range(count):
        v00, v10, v11, v20, v21, v22 = sums[0, n], sums[1, n], sums[2, n], sums[3, n], sums[4, n], sums[5, n]
        more = damping * (v00 + v11 + v22) / 3.0
        v00, v11, v22 = v00 + more, v11 + more, v22 + more
        ok, m00, m10, m11, m20, m21, m22 = inverse_factor(v00, v10, v11, v20, v21, v22)
        shift[n], full[n] = more, 1.0 if ok else 0.0
        sums[0, n], sums[1, n], sums[2, n] = m00 if ok else v00, m10 if ok else v10, m11 if ok else v11
        sums[3, n], sums[4, n], sums[5, n] = m20 if ok else v20, m21 if ok else v21, m22 if ok else v22


@kernel(inline="always")
def _matrix(sums, n, M, j):
    """The whitening M_j from what `_whiten` left."""
    M[j, 0, 0], M[j, 0, 1], M[j, 0, 2] = sums[0, n], 0.0, 0.0
    M[j, 1, 0], M[j, 1, 1], M[j, 1, 2] = sums[1, n], sums[2, n], 0.0
    M[j, 2, 0], M[j, 2, 1], M[j, 2, 2] = sums[3, n], sums[4, n], sums[5, n]


@kernel()
def project(begin, end, ptr, cam, columns, X, y):
    """y = P_i X_j for every observation."""
    for j in range(begin, end):
        for a in range(ptr[j], ptr[j + 1]):
            store(y, 3 * a, _cut(projected(columns, 16 * cam[a], X[j, 0], X[j, 1], X[j, 2], X[j, 3])))


@kernel()
def eliminate(begin, end, ptr, cam, S, anchor, g, c, columns, X, squared, M):
    """VarPro's closed form v*(u): the landmarks [x; 1] that minimise the quadratic for fixed cameras, its value there, an
    observation's squared residual, and the whitening M_j of V_j. An empty g says that g and c are zero.

    V_j x = -sum_i P_d' (S (p4 - ȳ) + g), P = [P_d p4]; minimum-norm x where V_j has no full rank.
    """
    sums, x, shift, full = room((9, _GROUP)), room((3, _GROUP)), room((_GROUP,)), room((_GROUP,))
    for group in range(begin, end, _GROUP):
        count = min(_GROUP, end - group)
        for n in range(count):
            v00, v10, v11 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            v20, v21, v22 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            h0, h1, h2 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            for a in range(ptr[group + n], ptr[group + n + 1]):
                at = 16 * cam[a]
                s = load(S, 6 * a, LANES_6)
                b0, b1, b2 = load(columns, at, LANES_4), load(columns, at + 4, LANES_4), load(columns, at + 8, LANES_4)
                t0, t1, t2 = times(s, b0), times(s, b1), times(s, b2)
                k = _slope(s, load(columns, at + 12, LANES_4), anchor, g, a)
                v00, v10, v11 = add_products(v00, b0, t0), add_products(v10, b1, t0), add_products(v11, b1, t1)
                v20, v21, v22 = add_products(v20, b2, t0), add_products(v21, b2, t1), add_products(v22, b2, t2)
                h0, h1, h2 = add_products(h0, b0, k), add_products(h1, b1, k), add_products(h2, b2, k)
            sums[0, n], sums[1, n], sums[2, n] = total(v00), total(v10), total(v11)
            sums[3, n], sums[4, n], sums[5, n] = total(v20), total(v21), total(v22)
            sums[6, n], sums[7, n], sums[8, n] = total(h0), total(h1), total(h2)
        _whiten(count, 0.0, sums, shift, full)
        for n in range(count):
            u0 = sums[0, n] * sums[6, n]
            u1 = sums[1, n] * sums[6, n] + sums[2, n] * sums[7, n]
            u2 = sums[3, n] * sums[6, n] + sums[4, n] * sums[7, n] + sums[5, n] * sums[8, n]
            x[0, n] = sums[0, n] * u0 + sums[1, n] * u1 + sums[3, n] * u2
            x[1, n] = sums[2, n] * u1 + sums[4, n] * u2
            x[2, n] = sums[5, n] * u2
        for n in range(count):
            j = group + n
            _matrix(sums, n, M, j)
            if full[n] == 0.0:
                pseudo_whitening(M[j])
                u0, u1, u2 = whitened(M[j], sums[6, n], sums[7, n], sums[8, n])
                x[0, n], x[1, n], x[2, n] = unwhitened(M[j], u0, u1, u2)
            X[j, 0], X[j, 1], X[j, 2], X[j, 3] = -x[0, n], -x[1, n], -x[2, n], 1.0
        for j in range(group, group + count):
            for a in range(ptr[j], ptr[j + 1]):
                y = projected(columns, 16 * cam[a], X[j, 0], X[j, 1], X[j, 2], 1.0)
                e = difference(y, _padded(load(anchor, 3 * a, LANES_3)))
                k = times(load(S, 6 * a, LANES_6), e)
                constant = 0.0
                if g.size > 0:
                    k = add_product(k, _padded(load(g, 3 * a, LANES_3)), 2.0)
                    constant = c[a]
                squared[a] = constant + total(add_products(zeros(LANES_3), _cut(e), _cut(k)))


@kernel(inline="always")
def eliminate_landmarks(
    begin, end, ptr, cam, S, anchor, g, weight, columns, X, homogeneous, damping, left, whitens, M, u, shift, K
):
    """Landmarks out of the normal equations: the contribution of each observation and landmark to the reduced system.

    With projected-residual weights w (the paper's robust VarPro; an empty array means all ones), J* = (I - Jv Jv†) Ju,
    M_j a whitening of V_j (M'M = V^-1), Z_a = T_a M', K = M (sum_a w_a (P_a N)' S_a (P_a N)) M', block (a, b) of
    (W J*)'(W J*) is

        δ_ab w_a S_a + Z_a (K - (w_a + w_b) I) Z_b',    which is  δ_ab S_a - Z_a Z_b'  for w = 1,

    times X X', and the gradient is  e_a ⊗ X,  e_a = w_a γ_a - Z_a u,  u = M h  with  h = sum_a w_a (P_a N)' γ_a.
    Left are Z_a, column by column; D_a, six numbers, the block (a, a); the ten distinct numbers of X X', row by row; with
    weights also A_a = w_a Z_a - Z_a K, so that block (a, b) is -(A_a + w_b Z_a) Z_b'.
    h vanishes at v* of the unweighted problem. `damping` adds shift_j = damping * trace(V_j)/3 to V_j's diagonal and to
    nothing else; VarPro leaves its landmarks undamped (weights and damping do not go together).
    1/2 |u|² = 1/2 h' V_j^-1 h is what the landmark alone gains at fixed cameras. An empty g is zero. `left` is
    (Z, A, D, e, XX). Where M `whitens` already, as `eliminate` left it of these very quadratics and cameras, V_j is not
    summed again and h is zero (that goes together with neither weights nor damping).
    """
    Z, A, D, e, XX = left
    weighted = weight.size > 0
    sums, more, full = room((9, _GROUP)), room((_GROUP,)), room((_GROUP,))
    N, B, C = room((4, 3)), room((3, 3)), room((3, 3))
    for group in range(begin, end, _GROUP):
        count = min(_GROUP, end - group)
        for n in range(count):
            j = group + n
            x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
            XX[10 * j], XX[10 * j + 1], XX[10 * j + 2], XX[10 * j + 3] = x0 * x0, x0 * x1, x0 * x2, x0 * x3
            XX[10 * j + 4], XX[10 * j + 5], XX[10 * j + 6] = x1 * x1, x1 * x2, x1 * x3
            XX[10 * j + 7], XX[10 * j + 8], XX[10 * j + 9] = x2 * x2, x2 * x3, x3 * x3
            if homogeneous:
                sphere_tangent(x0, x1, x2, x3, N)
            v00, v10, v11 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            v20, v21, v22 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            w00, w10, w11 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            w20, w21, w22 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            h0, h1, h2 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            for a in range(ptr[j], ptr[j + 1]):
                at = 16 * cam[a]
                s = load(S, 6 * a, LANES_6)
                b0, b1, b2 = load(columns, at, LANES_4), load(columns, at + 4, LANES_4), load(columns, at + 8, LANES_4)
                if homogeneous:
                    b0 = projected(columns, at, N[0, 0], N[1, 0], N[2, 0], N[3, 0])
                    b1 = projected(columns, at, N[0, 1], N[1, 1], N[2, 1], N[3, 1])
                    b2 = projected(columns, at, N[0, 2], N[1, 2], N[2, 2], N[3, 2])
                t0, t1, t2 = times(s, b0), times(s, b1), times(s, b2)
                k = _slope(s, projected(columns, at, x0, x1, x2, x3), anchor, g, a)
                if weighted:
                    w = weight[a]
                    k = add_product(zeros(LANES_4), k, w)
                    c0, c1 = add_product(zeros(LANES_4), b0, w), add_product(zeros(LANES_4), b1, w)
                    c2 = add_product(zeros(LANES_4), b2, w)
                    w00, w10, w11 = add_products(w00, c0, t0), add_products(w10, c1, t0), add_products(w11, c1, t1)
                    w20, w21, w22 = add_products(w20, c2, t0), add_products(w21, c2, t1), add_products(w22, c2, t2)
                store(e, 3 * a, _cut(k))
                if whitens:
                    z0, z1, z2 = _mixed(t0, t1, t2, M, j, 0), _mixed(t0, t1, t2, M, j, 1), _mixed(t0, t1, t2, M, j, 2)
                    _keep(Z, a, z0, z1, z2)
                    store(D, 6 * a, difference(s, _six(z0, z1, z2, z0, z1, z2)))
                    continue
                v00, v10, v11 = add_products(v00, b0, t0), add_products(v10, b1, t0), add_products(v11, b1, t1)
                v20, v21, v22 = add_products(v20, b2, t0), add_products(v21, b2, t1), add_products(v22, b2, t2)
                h0, h1, h2 = add_products(h0, b0, k), add_products(h1, b1, k), add_products(h2, b2, k)
                _keep(Z, a, t0, t1, t2)
            if whitens:
                continue
            sums[0, n], sums[1, n], sums[2, n] = total(v00), total(v10), total(v11)
            sums[3, n], sums[4, n], sums[5, n] = total(v20), total(v21), total(v22)
            sums[6, n], sums[7, n], sums[8, n] = total(h0), total(h1), total(h2)
            if weighted:
                K[j, 0, 0], K[j, 1, 0], K[j, 1, 1] = total(w00), total(w10), total(w11)
                K[j, 2, 0], K[j, 2, 1], K[j, 2, 2] = total(w20), total(w21), total(w22)
        if whitens:
            u[group : group + count] = 0.0
            continue
        _whiten(count, damping, sums, more, full)
        for n in range(count):
            j = group + n
            m = M[j]
            _matrix(sums, n, M, j)
            if full[n] == 0.0:
                pseudo_whitening(m)
            u0, u1, u2 = whitened(m, sums[6, n], sums[7, n], sums[8, n])
            u[j, 0], u[j, 1], u[j, 2], shift[j] = u0, u1, u2, more[n]
            if weighted:
                for r in range(3):
                    for c in range(r + 1):
                        B[r, c] = B[c, r] = K[j, r, c]
                for c in range(3):
                    C[0, c], C[1, c], C[2, c] = whitened(m, B[0, c], B[1, c], B[2, c])
                for r in range(3):
                    K[j, r, 0], K[j, r, 1], K[j, r, 2] = whitened(m, C[r, 0], C[r, 1], C[r, 2])
            for a in range(ptr[j], ptr[j + 1]):
                s = load(S, 6 * a, LANES_6)
                z0 = combined(Z, 9 * a, 3, m[0, 0], m[0, 1], m[0, 2])
                z1 = combined(Z, 9 * a, 3, m[1, 0], m[1, 1], m[1, 2])
                z2 = combined(Z, 9 * a, 3, m[2, 0], m[2, 1], m[2, 2])
                _keep(Z, a, z0, z1, z2)
                k = add_product(_padded(load(e, 3 * a, LANES_3)), z0, -u0)
                store(e, 3 * a, _cut(add_product(add_product(k, z1, -u1), z2, -u2)))
                y0, y1, y2 = z0, z1, z2
                if weighted:
                    w = weight[a]
                    s = add_product(zeros(LANES_6), s, w)
                    y0, y1 = add_product(zeros(LANES_4), z0, w), add_product(zeros(LANES_4), z1, w)
                    y2 = add_product(zeros(LANES_4), z2, w)
                    a0 = add_product(add_product(add_product(y0, z0, -K[j, 0, 0]), z1, -K[j, 1, 0]), z2, -K[j, 2, 0])
                    a1 = add_product(add_product(add_product(y1, z0, -K[j, 0, 1]), z1, -K[j, 1, 1]), z2, -K[j, 2, 1])
                    a2 = add_product(add_product(add_product(y2, z0, -K[j, 0, 2]), z1, -K[j, 1, 2]), z2, -K[j, 2, 2])
                    _keep(A, a, a0, a1, a2)
                    y0, y1, y2 = add_product(y0, a0, 1.0), add_product(y1, a1, 1.0), add_product(y2, a2, 1.0)
                store(D, 6 * a, difference(s, _six(y0, y1, y2, z0, z1, z2)))
