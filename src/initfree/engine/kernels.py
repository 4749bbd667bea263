"""Compiled kernels: everything that touches every observation, for every stage.

All stages see an observation of landmark j in camera i only through y = P_i X_j and a quadratic in y,

    f(y) = 1/2 [ c + 2 g'(y - ȳ) + (y - ȳ)' S (y - ȳ) ],

stored as S (six numbers: 00 01 02 11 12 22), the anchor ȳ, the half gradient g at the anchor and c.
The anchor avoids the cancellation of y'Sy - 2q'y + c: at a perfect fit the cost is exactly zero.

With N_j a basis (4x3) of the directions in which landmark j may move (x of X = [x; 1] in VarPro, the
tangent space of the unit sphere in the refinement), T_ij = S_ij P_i N_j and γ = S (y - ȳ) + g:

    landmark block   V_j  = sum_i (P_i N_j)' S_ij (P_i N_j)          3x3
    camera block     U_i  = sum_j S_ij ⊗ X_j X_j'                    12x12
    coupling         W_ij = T_ij ⊗ X_j                               12x3
    reduced system   block (i,k) = δ_ik U_i - sum_j (T_ij V_j^-1 T_kj') ⊗ X_j X_j'

Each pair of observations therefore costs a 3x3 product and its Kronecker product with the ten distinct
entries of X X': 90 multiply-adds, where dense 12x3 coupling blocks need over 500.

Observations are sorted by landmark, then by camera: those of landmark j are `ptr[j]:ptr[j + 1]`; `cam` is the camera
of each, and no landmark is seen twice by one camera.

Two passes build the system, each over a range [begin, end) that `threads.run` gives to a thread: `condense` over landmarks
leaves what each observation contributes, `engine.blocks` gathers it over cameras and their pairs. A number is written by one
owner only.
"""

from typing import Any

import numba
import numpy as np

# NaN and infinity must survive (a diverged step is detected by its cost), so no nnan and no ninf.
_FAST = {"contract", "reassoc", "nsz", "arcp"}

_RANK_TOLERANCE = 1e-12


def kernel(*, strict: bool = False, **options: Any) -> Any:
    """Compile without the interpreter lock and keep the machine code between processes.

    A kernel that others call is inlined or `strict`, without reordered arithmetic: it is compiled by itself and again into
    every caller, and which copy runs depends on whether machine code was kept. Both must round alike.
    """
    return numba.njit(cache=True, nogil=True, fastmath=False if strict else _FAST, **options)


@kernel(inline="always")
def _sphere_tangent(X, j, N):
    """Columns of N span the tangent space of the unit sphere at landmark j.

    The Householder reflection that maps e4 to ±X_j maps e1, e2, e3 to it.
    """
    x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
    norm = np.sqrt(x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3)
    u3 = x3 / norm + (1.0 if x3 >= 0.0 else -1.0)
    u = (x0 / norm, x1 / norm, x2 / norm, u3)
    scale = 2.0 / (u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + u3 * u3)
    for k in range(4):
        for c in range(3):
            N[k, c] = (1.0 if k == c else 0.0) - scale * u[k] * u[c]


@kernel(strict=True)
def _whitening_fallback(V, M):
    """M with M'M the pseudo-inverse of the rank-deficient V."""
    values, vectors = np.linalg.eigh(V)
    floor = _RANK_TOLERANCE * max(values[2], 0.0)
    for k in range(3):
        scale = 1.0 / np.sqrt(values[k]) if values[k] > floor else 0.0
        for c in range(3):
            M[k, c] = scale * vectors[c, k]


@kernel(inline="always")
def whitening(V, M):
    """M with M'M = V^-1: the inverse of V's Cholesky factor, or the pseudo-inverse where V has no full rank.

    Each pivot is compared with its own diagonal entry, so the test does not depend on the landmark's scale.
    """
    v00, v10, v11, v20, v21, v22 = V[0, 0], V[1, 0], V[1, 1], V[2, 0], V[2, 1], V[2, 2]
    ok = False
    if v00 > 0.0:
        i00 = 1.0 / np.sqrt(v00)
        l10 = v10 * i00
        l20 = v20 * i00
        d1 = v11 - l10 * l10
        if d1 > _RANK_TOLERANCE * v11:
            i11 = 1.0 / np.sqrt(d1)
            l21 = (v21 - l20 * l10) * i11
            d2 = v22 - l20 * l20 - l21 * l21
            if d2 > _RANK_TOLERANCE * v22:
                i22 = 1.0 / np.sqrt(d2)
                m10 = -i11 * l10 * i00
                M[0, 0], M[0, 1], M[0, 2] = i00, 0.0, 0.0
                M[1, 0], M[1, 1], M[1, 2] = m10, i11, 0.0
                M[2, 0], M[2, 1], M[2, 2] = -i22 * (l20 * i00 + l21 * m10), -i22 * l21 * i11, i22
                ok = True
    if not ok:
        if np.isfinite(v00 + v11 + v22 + v10 + v20 + v21):
            _whitening_fallback(V, M)
        else:
            M[:, :] = np.nan


@kernel(inline="always")
def whitened(M, h0, h1, h2):
    """M h: with M'M = V^-1, half of the way to V^-1 h; its squared length is h' V^-1 h."""
    return (
        M[0, 0] * h0 + M[0, 1] * h1 + M[0, 2] * h2,
        M[1, 0] * h0 + M[1, 1] * h1 + M[1, 2] * h2,
        M[2, 0] * h0 + M[2, 1] * h1 + M[2, 2] * h2,
    )


@kernel(inline="always")
def unwhitened(M, u0, u1, u2):
    """M'u: the other half, V^-1 h = M'(M h)."""
    return (
        M[0, 0] * u0 + M[1, 0] * u1 + M[2, 0] * u2,
        M[0, 1] * u0 + M[1, 1] * u1 + M[2, 1] * u2,
        M[0, 2] * u0 + M[1, 2] * u1 + M[2, 2] * u2,
    )


@kernel(inline="always")
def projection(p, x0, x1, x2, x3):
    """P X."""
    return (
        p[0, 0] * x0 + p[0, 1] * x1 + p[0, 2] * x2 + p[0, 3] * x3,
        p[1, 0] * x0 + p[1, 1] * x1 + p[1, 2] * x2 + p[1, 3] * x3,
        p[2, 0] * x0 + p[2, 1] * x1 + p[2, 2] * x2 + p[2, 3] * x3,
    )


@kernel(inline="always")
def symmetric(s, e0, e1, e2):
    """S e, S stored as six numbers."""
    return (
        s[0] * e0 + s[1] * e1 + s[2] * e2,
        s[1] * e0 + s[3] * e1 + s[4] * e2,
        s[2] * e0 + s[4] * e1 + s[5] * e2,
    )


@kernel(inline="always")
def damp(V, damping):
    """V + damping trace(V)/3 I with both triangles filled from the lower one; returns the shift."""
    shift = damping * (V[0, 0] + V[1, 1] + V[2, 2]) / 3.0
    for row in range(3):
        V[row, row] += shift
        for column in range(row):
            V[column, row] = V[row, column]
    return shift


@kernel(inline="always")
def _landmark_block(s, b00, b01, b02, b10, b11, b12, b20, b21, b22):
    """b'S b, its lower triangle (00, 10, 11, 20, 21, 22), and the three columns of S b. Scalars stay in registers."""
    t00, t10, t20 = symmetric(s, b00, b10, b20)
    t01, t11, t21 = symmetric(s, b01, b11, b21)
    t02, t12, t22 = symmetric(s, b02, b12, b22)
    return (
        b00 * t00 + b10 * t10 + b20 * t20,
        b01 * t00 + b11 * t10 + b21 * t20,
        b01 * t01 + b11 * t11 + b21 * t21,
        b02 * t00 + b12 * t10 + b22 * t20,
        b02 * t01 + b12 * t11 + b22 * t21,
        b02 * t02 + b12 * t12 + b22 * t22,
        (t00, t10, t20),
        (t01, t11, t21),
        (t02, t12, t22),
    )


@kernel()
def project(begin, end, ptr, cam, P, X, y):
    """y = P_i X_j for every observation."""
    for j in range(begin, end):
        for a in range(ptr[j], ptr[j + 1]):
            y[a, 0], y[a, 1], y[a, 2] = projection(P[cam[a]], X[j, 0], X[j, 1], X[j, 2], X[j, 3])


@kernel()
def quadratic_costs(begin, end, S, anchor, g, c, y, costs):
    """Twice f(y) for every observation: its squared residual under the quadratic."""
    for a in range(begin, end):
        e0, e1, e2 = y[a, 0] - anchor[a, 0], y[a, 1] - anchor[a, 1], y[a, 2] - anchor[a, 2]
        k0, k1, k2 = symmetric(S[a], e0, e1, e2)
        costs[a] = c[a] + e0 * (k0 + 2.0 * g[a, 0]) + e1 * (k1 + 2.0 * g[a, 1]) + e2 * (k2 + 2.0 * g[a, 2])


@kernel()
def eliminate(begin, end, ptr, cam, S, anchor, g, P, X, y):
    """VarPro's closed form v*(u): the landmarks [x; 1] that minimise the quadratic for fixed cameras, and y = P X there.

    V_j x = sum_i P_d' (S (ȳ - p4) - g), P = [P_d p4]; minimum-norm x where V_j has no full rank.
    """
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    for j in range(begin, end):
        b0 = b1 = b2 = 0.0
        v00 = v10 = v11 = v20 = v21 = v22 = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            p = P[cam[a]]
            s = S[a]
            k0, k1, k2 = symmetric(s, anchor[a, 0] - p[0, 3], anchor[a, 1] - p[1, 3], anchor[a, 2] - p[2, 3])
            k0, k1, k2 = k0 - g[a, 0], k1 - g[a, 1], k2 - g[a, 2]
            b0 += p[0, 0] * k0 + p[1, 0] * k1 + p[2, 0] * k2
            b1 += p[0, 1] * k0 + p[1, 1] * k1 + p[2, 1] * k2
            b2 += p[0, 2] * k0 + p[1, 2] * k1 + p[2, 2] * k2
            p00, p01, p02, p10, p11, p12 = p[0, 0], p[0, 1], p[0, 2], p[1, 0], p[1, 1], p[1, 2]
            d00, d10, d11, d20, d21, d22, _, _, _ = _landmark_block(
                s, p00, p01, p02, p10, p11, p12, p[2, 0], p[2, 1], p[2, 2]
            )
            v00, v10, v11, v20, v21, v22 = v00 + d00, v10 + d10, v11 + d11, v20 + d20, v21 + d21, v22 + d22
        V[0, 0], V[1, 0], V[1, 1], V[2, 0], V[2, 1], V[2, 2] = v00, v10, v11, v20, v21, v22
        damp(V, 0.0)
        whitening(V, M)
        u0, u1, u2 = whitened(M, b0, b1, b2)
        x0, x1, x2 = unwhitened(M, u0, u1, u2)
        X[j, 0], X[j, 1], X[j, 2], X[j, 3] = x0, x1, x2, 1.0
        for a in range(ptr[j], ptr[j + 1]):
            y[a, 0], y[a, 1], y[a, 2] = projection(P[cam[a]], x0, x1, x2, 1.0)


@kernel()
def condense(begin, end, ptr, cam, S, anchor, g, weight, P, X, homogeneous, damping, Z, A, D, e, XX, M, u, shift, K):
    """Landmarks out of the normal equations: all that the reduced system needs of each observation and landmark.

    With projected-residual weights w (the paper's robust VarPro; an empty array means all ones), J* = (I - Jv Jv†) Ju,
    M_j a whitening of V_j (M'M = V^-1), Z_a = T_a M', K = M (sum_a w_a (P_a N)' S_a (P_a N)) M', block (a, b) of
    (W J*)'(W J*) is

        δ_ab w_a S_a + Z_a (K - (w_a + w_b) I) Z_b',    which is  δ_ab S_a - Z_a Z_b'  for w = 1,

    times X X', and the gradient is  e_a ⊗ X,  e_a = w_a γ_a - Z_a u,  u = M h  with  h = sum_a w_a (P_a N)' γ_a.
    Left are Z_a, column by column; D_a, six numbers, the block (a, a); the ten distinct numbers of X X', row by row; with
    weights also A_a = w_a Z_a - Z_a K, so that block (a, b) is -(A_a + w_b Z_a) Z_b'.
    h vanishes at v* of the unweighted problem. `damping` adds shift_j = damping * trace(V_j)/3 to V_j's diagonal and to
    nothing else; VarPro leaves its landmarks undamped (weights and damping do not go together).
    1/2 |u|² = 1/2 h' V_j^-1 h is what the landmark alone gains at fixed cameras.
    """
    weighted = weight.size > 0
    N = np.empty((4, 3))
    V = np.empty((3, 3))
    C = np.empty((3, 3))
    B = np.empty((3, 3))
    for j in range(begin, end):
        x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
        if homogeneous:
            _sphere_tangent(X, j, N)
        B[:, :] = 0.0
        v00 = v10 = v11 = v20 = v21 = v22 = 0.0
        h0 = h1 = h2 = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            p = P[cam[a]]
            s = S[a]
            w = weight[a] if weighted else 1.0
            y0, y1, y2 = projection(p, x0, x1, x2, x3)
            k0, k1, k2 = symmetric(s, y0 - anchor[a, 0], y1 - anchor[a, 1], y2 - anchor[a, 2])
            k0, k1, k2 = w * (k0 + g[a, 0]), w * (k1 + g[a, 1]), w * (k2 + g[a, 2])
            e[a, 0], e[a, 1], e[a, 2] = k0, k1, k2
            b00, b10, b20 = p[0, 0], p[1, 0], p[2, 0]
            b01, b11, b21 = p[0, 1], p[1, 1], p[2, 1]
            b02, b12, b22 = p[0, 2], p[1, 2], p[2, 2]
            if homogeneous:
                b00, b10, b20 = projection(p, N[0, 0], N[1, 0], N[2, 0], N[3, 0])
                b01, b11, b21 = projection(p, N[0, 1], N[1, 1], N[2, 1], N[3, 1])
                b02, b12, b22 = projection(p, N[0, 2], N[1, 2], N[2, 2], N[3, 2])
            d00, d10, d11, d20, d21, d22, t0, t1, t2 = _landmark_block(s, b00, b01, b02, b10, b11, b12, b20, b21, b22)
            for r in range(3):
                Z[a, 0, r], Z[a, 1, r], Z[a, 2, r] = t0[r], t1[r], t2[r]
            v00, v10, v11, v20, v21, v22 = v00 + d00, v10 + d10, v11 + d11, v20 + d20, v21 + d21, v22 + d22
            if weighted:
                B[0, 0], B[1, 0], B[1, 1] = B[0, 0] + w * d00, B[1, 0] + w * d10, B[1, 1] + w * d11
                B[2, 0], B[2, 1], B[2, 2] = B[2, 0] + w * d20, B[2, 1] + w * d21, B[2, 2] + w * d22
            h0 += b00 * k0 + b10 * k1 + b20 * k2
            h1 += b01 * k0 + b11 * k1 + b21 * k2
            h2 += b02 * k0 + b12 * k1 + b22 * k2
        V[0, 0], V[1, 0], V[1, 1], V[2, 0], V[2, 1], V[2, 2] = v00, v10, v11, v20, v21, v22
        shift[j] = damp(V, damping)
        m = M[j]
        whitening(V, m)
        if weighted:
            damp(B, 0.0)
            for c in range(3):
                C[0, c], C[1, c], C[2, c] = whitened(m, B[0, c], B[1, c], B[2, c])
            for r in range(3):
                K[j, r, 0], K[j, r, 1], K[j, r, 2] = whitened(m, C[r, 0], C[r, 1], C[r, 2])
        u0, u1, u2 = whitened(m, h0, h1, h2)
        u[j, 0], u[j, 1], u[j, 2] = u0, u1, u2
        XX[j, 0], XX[j, 1], XX[j, 2], XX[j, 3], XX[j, 4] = x0 * x0, x0 * x1, x0 * x2, x0 * x3, x1 * x1
        XX[j, 5], XX[j, 6], XX[j, 7], XX[j, 8], XX[j, 9] = x1 * x2, x1 * x3, x2 * x2, x2 * x3, x3 * x3
        for a in range(ptr[j], ptr[j + 1]):
            for r in range(3):
                z0, z1, z2 = whitened(m, Z[a, 0, r], Z[a, 1, r], Z[a, 2, r])
                Z[a, 0, r], Z[a, 1, r], Z[a, 2, r] = z0, z1, z2
                e[a, r] -= z0 * u0 + z1 * u1 + z2 * u2
            z00, z10, z20 = Z[a, 0, 0], Z[a, 0, 1], Z[a, 0, 2]
            z01, z11, z21 = Z[a, 1, 0], Z[a, 1, 1], Z[a, 1, 2]
            z02, z12, z22 = Z[a, 2, 0], Z[a, 2, 1], Z[a, 2, 2]
            if not weighted:
                D[a, 0] = S[a, 0] - (z00 * z00 + z01 * z01 + z02 * z02)
                D[a, 1] = S[a, 1] - (z00 * z10 + z01 * z11 + z02 * z12)
                D[a, 2] = S[a, 2] - (z00 * z20 + z01 * z21 + z02 * z22)
                D[a, 3] = S[a, 3] - (z10 * z10 + z11 * z11 + z12 * z12)
                D[a, 4] = S[a, 4] - (z10 * z20 + z11 * z21 + z12 * z22)
                D[a, 5] = S[a, 5] - (z20 * z20 + z21 * z21 + z22 * z22)
                continue
            w = weight[a]
            n = 0
            for r in range(3):
                for c in range(3):
                    product = Z[a, 0, r] * K[j, 0, c] + Z[a, 1, r] * K[j, 1, c] + Z[a, 2, r] * K[j, 2, c]
                    A[a, c, r] = w * Z[a, c, r] - product
                for c in range(r, 3):
                    D[a, n] = w * S[a, n]
                    for k in range(3):
                        D[a, n] -= (A[a, k, r] + w * Z[a, k, r]) * Z[a, k, c]
                    n += 1


@kernel()
def back_substitute(begin, end, ptr, cam, Z, M, u, shift, X, step, moved, gain):
    """Landmarks on the unit sphere after the joint step that moves the cameras by `step`, from what `condense` left.

    δ_j = -M_j' (u_j + sum_i Z_ij' step_i X_j), X_j <- X_j + N_j δ_j, back on the unit sphere. gain_j = 1/2 shift_j |δ_j|² is
    what the damped reduced system leaves out of the undamped quadratic's decrease.
    """
    N = np.empty((4, 3))
    for j in range(begin, end):
        x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
        _sphere_tangent(X, j, N)
        u0, u1, u2 = u[j, 0], u[j, 1], u[j, 2]
        for a in range(ptr[j], ptr[j + 1]):
            y0, y1, y2 = projection(step[cam[a]], x0, x1, x2, x3)
            u0 += Z[a, 0, 0] * y0 + Z[a, 0, 1] * y1 + Z[a, 0, 2] * y2
            u1 += Z[a, 1, 0] * y0 + Z[a, 1, 1] * y1 + Z[a, 1, 2] * y2
            u2 += Z[a, 2, 0] * y0 + Z[a, 2, 1] * y1 + Z[a, 2, 2] * y2
        d0, d1, d2 = unwhitened(M[j], u0, u1, u2)
        gain[j] = 0.5 * shift[j] * (d0 * d0 + d1 * d1 + d2 * d2)
        norm = 0.0
        for k in range(4):
            moved[j, k] = X[j, k] - (N[k, 0] * d0 + N[k, 1] * d1 + N[k, 2] * d2)
            norm += moved[j, k] * moved[j, k]
        norm = 1.0 / np.sqrt(norm)
        for k in range(4):
            moved[j, k] *= norm
