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
"""

from typing import Any

import numba
import numpy as np

# NaN and infinity must survive (a diverged step is detected by its cost), so no nnan and no ninf.
_FAST = {"contract", "reassoc", "nsz", "arcp"}

BLOCK = 90
"""Numbers in one block of the reduced system: 3x3 factor times ten entries of X X'."""

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


@kernel()
def project(ptr, cam, P, X, y):
    """y = P_i X_j for every observation."""
    for j in range(ptr.size - 1):
        x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
        for a in range(ptr[j], ptr[j + 1]):
            p = P[cam[a]]
            for r in range(3):
                y[a, r] = p[r, 0] * x0 + p[r, 1] * x1 + p[r, 2] * x2 + p[r, 3] * x3


@kernel()
def quadratic_costs(S, anchor, g, c, y, costs):
    """Twice f(y) for every observation: its squared residual under the quadratic."""
    for a in range(y.shape[0]):
        e0, e1, e2 = y[a, 0] - anchor[a, 0], y[a, 1] - anchor[a, 1], y[a, 2] - anchor[a, 2]
        s = S[a]
        k0 = s[0] * e0 + s[1] * e1 + s[2] * e2 + 2.0 * g[a, 0]
        k1 = s[1] * e0 + s[3] * e1 + s[4] * e2 + 2.0 * g[a, 1]
        k2 = s[2] * e0 + s[4] * e1 + s[5] * e2 + 2.0 * g[a, 2]
        costs[a] = c[a] + e0 * k0 + e1 * k1 + e2 * k2


@kernel()
def eliminate(ptr, cam, S, anchor, g, P, X):
    """VarPro's closed form v*(u): the landmarks [x; 1] that minimise the quadratic for fixed cameras.

    V_j x = sum_i P_d' (S (ȳ - p4) - g), P = [P_d p4]; minimum-norm x where V_j has no full rank.
    """
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    for j in range(ptr.size - 1):
        b0 = b1 = b2 = 0.0
        v00 = v10 = v11 = v20 = v21 = v22 = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            p = P[cam[a]]
            s = S[a]
            e0, e1, e2 = anchor[a, 0] - p[0, 3], anchor[a, 1] - p[1, 3], anchor[a, 2] - p[2, 3]
            k0 = s[0] * e0 + s[1] * e1 + s[2] * e2 - g[a, 0]
            k1 = s[1] * e0 + s[3] * e1 + s[4] * e2 - g[a, 1]
            k2 = s[2] * e0 + s[4] * e1 + s[5] * e2 - g[a, 2]
            b0 += p[0, 0] * k0 + p[1, 0] * k1 + p[2, 0] * k2
            b1 += p[0, 1] * k0 + p[1, 1] * k1 + p[2, 1] * k2
            b2 += p[0, 2] * k0 + p[1, 2] * k1 + p[2, 2] * k2
            t00 = s[0] * p[0, 0] + s[1] * p[1, 0] + s[2] * p[2, 0]
            t10 = s[1] * p[0, 0] + s[3] * p[1, 0] + s[4] * p[2, 0]
            t20 = s[2] * p[0, 0] + s[4] * p[1, 0] + s[5] * p[2, 0]
            t01 = s[0] * p[0, 1] + s[1] * p[1, 1] + s[2] * p[2, 1]
            t11 = s[1] * p[0, 1] + s[3] * p[1, 1] + s[4] * p[2, 1]
            t21 = s[2] * p[0, 1] + s[4] * p[1, 1] + s[5] * p[2, 1]
            t02 = s[0] * p[0, 2] + s[1] * p[1, 2] + s[2] * p[2, 2]
            t12 = s[1] * p[0, 2] + s[3] * p[1, 2] + s[4] * p[2, 2]
            t22 = s[2] * p[0, 2] + s[4] * p[1, 2] + s[5] * p[2, 2]
            v00 += p[0, 0] * t00 + p[1, 0] * t10 + p[2, 0] * t20
            v10 += p[0, 1] * t00 + p[1, 1] * t10 + p[2, 1] * t20
            v20 += p[0, 2] * t00 + p[1, 2] * t10 + p[2, 2] * t20
            v11 += p[0, 1] * t01 + p[1, 1] * t11 + p[2, 1] * t21
            v21 += p[0, 2] * t01 + p[1, 2] * t11 + p[2, 2] * t21
            v22 += p[0, 2] * t02 + p[1, 2] * t12 + p[2, 2] * t22
        V[0, 0], V[1, 0], V[1, 1], V[2, 0], V[2, 1], V[2, 2] = v00, v10, v11, v20, v21, v22
        V[0, 1], V[0, 2], V[1, 2] = v10, v20, v21
        whitening(V, M)
        w0 = M[0, 0] * b0 + M[0, 1] * b1 + M[0, 2] * b2
        w1 = M[1, 0] * b0 + M[1, 1] * b1 + M[1, 2] * b2
        w2 = M[2, 0] * b0 + M[2, 1] * b1 + M[2, 2] * b2
        X[j, 0] = M[0, 0] * w0 + M[1, 0] * w1 + M[2, 0] * w2
        X[j, 1] = M[0, 1] * w0 + M[1, 1] * w1 + M[2, 1] * w2
        X[j, 2] = M[0, 2] * w0 + M[1, 2] * w1 + M[2, 2] * w2
        X[j, 3] = 1.0


@kernel()
def assemble(ptr, cam, pair, S, anchor, g, weight, P, X, homogeneous, damping, blocks, gradient):
    """Blocks of the reduced camera system and its gradient; returns the landmarks' share of the decrease.

    With projected-residual weights w (the paper's robust VarPro; an empty array means all ones), J* = (I - Jv Jv†) Ju,
    M_j a whitening of V_j (M'M = V^-1), Z_a = T_a M', K = M (sum_a w_a (P_a N)' S_a (P_a N)) M', block (a, b) of
    (W J*)'(W J*) is

        δ_ab w_a S_a + Z_a (K - (w_a + w_b) I) Z_b',    which is  δ_ab S_a - Z_a Z_b'  for w = 1,

    times X X', and the gradient is  (w_a γ_a - Z_a M h) ⊗ X  with  h = sum_a w_a (P_a N)' γ_a.
    h vanishes at v* of the unweighted problem. `damping` adds damping * trace(V_j)/3 to V_j's diagonal and to nothing else;
    VarPro leaves its landmarks undamped (weights and damping do not go together). The return value is
    1/2 sum_j h' V_j^-1 h: what the landmarks alone gain at fixed cameras, zero for projected residuals, whose landmarks are
    at v* already.
    """
    weighted = weight.size > 0
    longest = 0
    for j in range(ptr.size - 1):
        longest = max(longest, ptr[j + 1] - ptr[j])
    N = np.empty((4, 3))
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    K = np.empty((3, 3))
    B = np.empty((3, 3))
    T = np.empty((longest, 3, 3))
    Z = np.empty((longest, 3, 3))
    A = np.empty((longest, 3, 3))
    E = np.empty((longest, 3))
    xx = np.empty(10)
    blocks[:] = 0.0
    gradient[:] = 0.0
    landmark_gain = 0.0
    for j in range(ptr.size - 1):
        start = ptr[j]
        count = ptr[j + 1] - start
        x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
        if homogeneous:
            _sphere_tangent(X, j, N)
        v00 = v10 = v11 = v20 = v21 = v22 = 0.0
        K[:, :] = 0.0
        h0 = h1 = h2 = 0.0
        for i in range(count):
            a = start + i
            p = P[cam[a]]
            s = S[a]
            w = weight[a] if weighted else 1.0
            e0 = p[0, 0] * x0 + p[0, 1] * x1 + p[0, 2] * x2 + p[0, 3] * x3 - anchor[a, 0]
            e1 = p[1, 0] * x0 + p[1, 1] * x1 + p[1, 2] * x2 + p[1, 3] * x3 - anchor[a, 1]
            e2 = p[2, 0] * x0 + p[2, 1] * x1 + p[2, 2] * x2 + p[2, 3] * x3 - anchor[a, 2]
            k0 = w * (s[0] * e0 + s[1] * e1 + s[2] * e2 + g[a, 0])
            k1 = w * (s[1] * e0 + s[3] * e1 + s[4] * e2 + g[a, 1])
            k2 = w * (s[2] * e0 + s[4] * e1 + s[5] * e2 + g[a, 2])
            E[i, 0], E[i, 1], E[i, 2] = k0, k1, k2
            if homogeneous:
                b00 = p[0, 0] * N[0, 0] + p[0, 1] * N[1, 0] + p[0, 2] * N[2, 0] + p[0, 3] * N[3, 0]
                b01 = p[0, 0] * N[0, 1] + p[0, 1] * N[1, 1] + p[0, 2] * N[2, 1] + p[0, 3] * N[3, 1]
                b02 = p[0, 0] * N[0, 2] + p[0, 1] * N[1, 2] + p[0, 2] * N[2, 2] + p[0, 3] * N[3, 2]
                b10 = p[1, 0] * N[0, 0] + p[1, 1] * N[1, 0] + p[1, 2] * N[2, 0] + p[1, 3] * N[3, 0]
                b11 = p[1, 0] * N[0, 1] + p[1, 1] * N[1, 1] + p[1, 2] * N[2, 1] + p[1, 3] * N[3, 1]
                b12 = p[1, 0] * N[0, 2] + p[1, 1] * N[1, 2] + p[1, 2] * N[2, 2] + p[1, 3] * N[3, 2]
                b20 = p[2, 0] * N[0, 0] + p[2, 1] * N[1, 0] + p[2, 2] * N[2, 0] + p[2, 3] * N[3, 0]
                b21 = p[2, 0] * N[0, 1] + p[2, 1] * N[1, 1] + p[2, 2] * N[2, 1] + p[2, 3] * N[3, 1]
                b22 = p[2, 0] * N[0, 2] + p[2, 1] * N[1, 2] + p[2, 2] * N[2, 2] + p[2, 3] * N[3, 2]
            else:
                b00, b01, b02 = p[0, 0], p[0, 1], p[0, 2]
                b10, b11, b12 = p[1, 0], p[1, 1], p[1, 2]
                b20, b21, b22 = p[2, 0], p[2, 1], p[2, 2]
            s0, s1, s2, s3, s4, s5 = s[0], s[1], s[2], s[3], s[4], s[5]
            t00, t01, t02 = s0 * b00 + s1 * b10 + s2 * b20, s0 * b01 + s1 * b11 + s2 * b21, s0 * b02 + s1 * b12 + s2 * b22
            t10, t11, t12 = s1 * b00 + s3 * b10 + s4 * b20, s1 * b01 + s3 * b11 + s4 * b21, s1 * b02 + s3 * b12 + s4 * b22
            t20, t21, t22 = s2 * b00 + s4 * b10 + s5 * b20, s2 * b01 + s4 * b11 + s5 * b21, s2 * b02 + s4 * b12 + s5 * b22
            T[i, 0, 0], T[i, 0, 1], T[i, 0, 2] = t00, t01, t02
            T[i, 1, 0], T[i, 1, 1], T[i, 1, 2] = t10, t11, t12
            T[i, 2, 0], T[i, 2, 1], T[i, 2, 2] = t20, t21, t22
            d00, d10, d11 = (
                b00 * t00 + b10 * t10 + b20 * t20,
                b01 * t00 + b11 * t10 + b21 * t20,
                b01 * t01 + b11 * t11 + b21 * t21,
            )
            d20, d21, d22 = (
                b02 * t00 + b12 * t10 + b22 * t20,
                b02 * t01 + b12 * t11 + b22 * t21,
                b02 * t02 + b12 * t12 + b22 * t22,
            )
            v00 += d00
            v10 += d10
            v11 += d11
            v20 += d20
            v21 += d21
            v22 += d22
            if weighted:
                K[0, 0] += w * d00
                K[1, 0] += w * d10
                K[1, 1] += w * d11
                K[2, 0] += w * d20
                K[2, 1] += w * d21
                K[2, 2] += w * d22
            h0 += b00 * k0 + b10 * k1 + b20 * k2
            h1 += b01 * k0 + b11 * k1 + b21 * k2
            h2 += b02 * k0 + b12 * k1 + b22 * k2
        shift = damping * (v00 + v11 + v22) / 3.0
        V[0, 0], V[1, 1], V[2, 2] = v00 + shift, v11 + shift, v22 + shift
        V[1, 0], V[2, 0], V[2, 1] = v10, v20, v21
        V[0, 1], V[0, 2], V[1, 2] = v10, v20, v21
        whitening(V, M)
        if weighted:
            K[0, 1], K[0, 2], K[1, 2] = K[1, 0], K[2, 0], K[2, 1]
            for r in range(3):
                for c in range(3):
                    B[r, c] = M[r, 0] * K[0, c] + M[r, 1] * K[1, c] + M[r, 2] * K[2, c]
            for r in range(3):
                for c in range(3):
                    K[r, c] = B[r, 0] * M[c, 0] + B[r, 1] * M[c, 1] + B[r, 2] * M[c, 2]
        u0 = M[0, 0] * h0 + M[0, 1] * h1 + M[0, 2] * h2
        u1 = M[1, 0] * h0 + M[1, 1] * h1 + M[1, 2] * h2
        u2 = M[2, 0] * h0 + M[2, 1] * h1 + M[2, 2] * h2
        if not weighted:
            landmark_gain += 0.5 * (u0 * u0 + u1 * u1 + u2 * u2)
        xx[0], xx[1], xx[2], xx[3] = x0 * x0, x0 * x1, x0 * x2, x0 * x3
        xx[4], xx[5], xx[6] = x1 * x1, x1 * x2, x1 * x3
        xx[7], xx[8], xx[9] = x2 * x2, x2 * x3, x3 * x3
        for i in range(count):
            a = start + i
            k = cam[a]
            w = weight[a] if weighted else 1.0
            s = S[a]
            for r in range(3):
                z0 = T[i, r, 0] * M[0, 0] + T[i, r, 1] * M[0, 1] + T[i, r, 2] * M[0, 2]
                z1 = T[i, r, 0] * M[1, 0] + T[i, r, 1] * M[1, 1] + T[i, r, 2] * M[1, 2]
                z2 = T[i, r, 0] * M[2, 0] + T[i, r, 1] * M[2, 1] + T[i, r, 2] * M[2, 2]
                Z[i, r, 0], Z[i, r, 1], Z[i, r, 2] = z0, z1, z2
                if weighted:
                    A[i, r, 0] = z0 * (K[0, 0] - w) + z1 * K[1, 0] + z2 * K[2, 0]
                    A[i, r, 1] = z0 * K[0, 1] + z1 * (K[1, 1] - w) + z2 * K[2, 1]
                    A[i, r, 2] = z0 * K[0, 2] + z1 * K[1, 2] + z2 * (K[2, 2] - w)
                else:
                    A[i, r, 0], A[i, r, 1], A[i, r, 2] = -z0, -z1, -z2
                e = E[i, r] - (z0 * u0 + z1 * u1 + z2 * u2)
                gradient[k, r, 0] += e * x0
                gradient[k, r, 1] += e * x1
                gradient[k, r, 2] += e * x2
                gradient[k, r, 3] += e * x3
            block = blocks[pair[k, k]]
            wc = w if weighted else 0.0
            index = 0
            for r in range(3):
                f0 = A[i, r, 0] - wc * Z[i, r, 0]
                f1 = A[i, r, 1] - wc * Z[i, r, 1]
                f2 = A[i, r, 2] - wc * Z[i, r, 2]
                for c in range(r, 3):
                    f = w * s[index] + f0 * Z[i, c, 0] + f1 * Z[i, c, 1] + f2 * Z[i, c, 2]
                    index += 1
                    for e in range(10):
                        block[(r * 3 + c) * 10 + e] += f * xx[e]
            for l in range(i):
                # Tracks are sorted by camera, so rows belong to the later one: every block is in the lower triangle.
                wc = weight[start + l] if weighted else 0.0
                block = blocks[pair[k, cam[start + l]]]
                for r in range(3):
                    f0 = A[i, r, 0] - wc * Z[i, r, 0]
                    f1 = A[i, r, 1] - wc * Z[i, r, 1]
                    f2 = A[i, r, 2] - wc * Z[i, r, 2]
                    for c in range(3):
                        f = f0 * Z[l, c, 0] + f1 * Z[l, c, 1] + f2 * Z[l, c, 2]
                        for e in range(10):
                            block[(r * 3 + c) * 10 + e] += f * xx[e]
    return landmark_gain


@kernel()
def scatter(pairs, blocks, H):
    """Write the blocks into the lower triangle of the dense 12m x 12m matrix H.

    A diagonal block holds only its factors (r, c >= r); the others follow by symmetry.
    """
    H[:, :] = 0.0
    upper = np.empty((4, 4), dtype=np.int64)
    index = 0
    for a in range(4):
        for b in range(a, 4):
            upper[a, b] = index
            upper[b, a] = index
            index += 1
    for n in range(pairs.shape[0]):
        row, column = pairs[n, 0], pairs[n, 1]
        block = blocks[n]
        for r in range(3):
            for c in range(3):
                factor = r * 3 + c
                if row == column and c < r:
                    factor = c * 3 + r
                for a in range(4):
                    for b in range(4):
                        H[row * 12 + r * 4 + a, column * 12 + c * 4 + b] = block[factor * 10 + upper[a, b]]


@kernel()
def back_substitute(ptr, cam, S, anchor, g, P, X, damping, step, moved):
    """Landmarks after the joint step that moves the cameras by `step`; returns 1/2 sum_j shift_j |δ_j|².

    The return value is what the damped reduced system leaves out of the undamped quadratic's decrease.

    δ_j = -V_j^-1 (h_j + sum_i T_ij' step_i X_j), X_j <- X_j + N_j δ_j, back on the unit sphere.
    """
    N = np.empty((4, 3))
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    B = np.empty((3, 3))
    damping_gain = 0.0
    for j in range(ptr.size - 1):
        x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
        _sphere_tangent(X, j, N)
        V[:, :] = 0.0
        h0 = h1 = h2 = 0.0
        for a in range(ptr[j], ptr[j + 1]):
            p = P[cam[a]]
            d = step[cam[a]]
            s = S[a]
            e0 = (p[0, 0] + d[0, 0]) * x0 + (p[0, 1] + d[0, 1]) * x1 + (p[0, 2] + d[0, 2]) * x2
            e1 = (p[1, 0] + d[1, 0]) * x0 + (p[1, 1] + d[1, 1]) * x1 + (p[1, 2] + d[1, 2]) * x2
            e2 = (p[2, 0] + d[2, 0]) * x0 + (p[2, 1] + d[2, 1]) * x1 + (p[2, 2] + d[2, 2]) * x2
            e0 += (p[0, 3] + d[0, 3]) * x3 - anchor[a, 0]
            e1 += (p[1, 3] + d[1, 3]) * x3 - anchor[a, 1]
            e2 += (p[2, 3] + d[2, 3]) * x3 - anchor[a, 2]
            k0 = s[0] * e0 + s[1] * e1 + s[2] * e2 + g[a, 0]
            k1 = s[1] * e0 + s[3] * e1 + s[4] * e2 + g[a, 1]
            k2 = s[2] * e0 + s[4] * e1 + s[5] * e2 + g[a, 2]
            for r in range(3):
                for c in range(3):
                    B[r, c] = p[r, 0] * N[0, c] + p[r, 1] * N[1, c] + p[r, 2] * N[2, c] + p[r, 3] * N[3, c]
            for c in range(3):
                t0 = s[0] * B[0, c] + s[1] * B[1, c] + s[2] * B[2, c]
                t1 = s[1] * B[0, c] + s[3] * B[1, c] + s[4] * B[2, c]
                t2 = s[2] * B[0, c] + s[4] * B[1, c] + s[5] * B[2, c]
                for r in range(c, 3):
                    V[r, c] += B[0, r] * t0 + B[1, r] * t1 + B[2, r] * t2
            h0 += B[0, 0] * k0 + B[1, 0] * k1 + B[2, 0] * k2
            h1 += B[0, 1] * k0 + B[1, 1] * k1 + B[2, 1] * k2
            h2 += B[0, 2] * k0 + B[1, 2] * k1 + B[2, 2] * k2
        shift = damping * (V[0, 0] + V[1, 1] + V[2, 2]) / 3.0
        for r in range(3):
            V[r, r] += shift
            for c in range(r):
                V[c, r] = V[r, c]
        whitening(V, M)
        u0 = M[0, 0] * h0 + M[0, 1] * h1 + M[0, 2] * h2
        u1 = M[1, 0] * h0 + M[1, 1] * h1 + M[1, 2] * h2
        u2 = M[2, 0] * h0 + M[2, 1] * h1 + M[2, 2] * h2
        d0 = -(M[0, 0] * u0 + M[1, 0] * u1 + M[2, 0] * u2)
        d1 = -(M[0, 1] * u0 + M[1, 1] * u1 + M[2, 1] * u2)
        d2 = -(M[0, 2] * u0 + M[1, 2] * u1 + M[2, 2] * u2)
        damping_gain += 0.5 * shift * (d0 * d0 + d1 * d1 + d2 * d2)
        norm = 0.0
        for k in range(4):
            moved[j, k] = X[j, k] + N[k, 0] * d0 + N[k, 1] * d1 + N[k, 2] * d2
            norm += moved[j, k] * moved[j, k]
        norm = 1.0 / np.sqrt(norm)
        for k in range(4):
            moved[j, k] *= norm
    return damping_gain
