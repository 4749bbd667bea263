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

Two passes build the system, each over groups [begin, end) of the landmarks that `threads.run` gives to a thread:
`elimination.eliminate_landmarks` computes the contribution of each observation and `blocks.couple` sums the blocks.
`blocks.write` then adds up the groups, pair by pair. Each number has one writer.
"""

from typing import Any

import numba
import numpy as np

from initfree.engine.choice import PLAIN
from initfree.engine.machine_code import survive_damage
from initfree.engine.vectors import room

# NaN and infinity must survive (a diverged step is detected by its cost), so no nnan and no ninf.
_FAST = {"contract", "reassoc", "nsz", "arcp"}

_RANK_TOLERANCE = 1e-12


def kernel(*, strict: bool = False, allocates: bool = False, **options: Any) -> Any:
    """Compile without the interpreter lock and keep the machine code between processes.

    Unless it `allocates`, a kernel counts no references to arrays and can make none (`vectors.room` is on the stack). Numba
    counts atomically wherever an array is handed on, in loops too.

    A kernel that others call is inlined or `strict`, without reordered arithmetic: it is compiled by itself and again into
    every caller, and which copy runs depends on whether machine code was kept. Both must round alike.
    """
    options |= {"fastmath": False if strict else _FAST}
    if not PLAIN:
        options["_nrt"] = allocates

    def compiled(function: Any) -> Any:
        if PLAIN:  # in files of its own beside those of the fast engine
            function.__qualname__ = f"plain.{function.__qualname__}"
        return survive_damage(numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))

    return compiled


@kernel(inline="always")
def sphere_tangent(x0, x1, x2, x3, N):
    """Columns of N span the tangent space of the unit sphere at a landmark.

    The Householder reflection that maps e4 to ±X_j maps e1, e2, e3 to it.
    """
    norm = np.sqrt(x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3)
    u3 = x3 / norm + (1.0 if x3 >= 0.0 else -1.0)
    u = (x0 / norm, x1 / norm, x2 / norm, u3)
    scale = 2.0 / (u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + u3 * u3)
    for k in range(4):
        for c in range(3):
            N[k, c] = (1.0 if k == c else 0.0) - scale * u[k] * u[c]


@kernel(strict=True, allocates=True)
def pseudo_whitening(M):
    """In place of V's lower triangle, V without full rank: M with M'M its pseudo-inverse; not a number where V is none."""
    V = np.empty((3, 3))
    for r in range(3):
        for c in range(r + 1):
            V[r, c] = V[c, r] = M[r, c]
    if not np.isfinite(V.sum()):
        M[:, :] = np.nan
        return
    values, vectors = np.linalg.eigh(V)
    floor = _RANK_TOLERANCE * max(values[2], 0.0)
    for k in range(3):
        scale = 1.0 / np.sqrt(values[k]) if values[k] > floor else 0.0
        for c in range(3):
            M[k, c] = scale * vectors[c, k]


@kernel(inline="always")
def inverse_factor(v00, v10, v11, v20, v21, v22):
    """Whether V has full rank, and then its Cholesky factor's inverse M, the lower triangle (00, 10, 11, 20, 21, 22).

    Each pivot is compared with its own diagonal entry, so the test does not depend on the landmark's scale. No branches,
    so that a loop over many is vectorised.
    """
    i00 = 1.0 / np.sqrt(v00)
    l10, l20 = v10 * i00, v20 * i00
    d1 = v11 - l10 * l10
    i11 = 1.0 / np.sqrt(d1)
    l21 = (v21 - l20 * l10) * i11
    d2 = v22 - l20 * l20 - l21 * l21
    i22 = 1.0 / np.sqrt(d2)
    m10 = -i11 * l10 * i00
    full = (v00 > 0.0) & (d1 > _RANK_TOLERANCE * v11) & (d2 > _RANK_TOLERANCE * v22)
    return full, i00, m10, i11, -i22 * (l20 * i00 + l21 * m10), -i22 * l21 * i11, i22


@kernel(inline="always")
def whitening(V, M):
    """M with M'M = V^-1: the inverse of V's Cholesky factor, or the pseudo-inverse where V has no full rank."""
    full, m00, m10, m11, m20, m21, m22 = inverse_factor(V[0, 0], V[1, 0], V[1, 1], V[2, 0], V[2, 1], V[2, 2])
    if full:
        M[0, 0], M[0, 1], M[0, 2] = m00, 0.0, 0.0
        M[1, 0], M[1, 1], M[1, 2] = m10, m11, 0.0
        M[2, 0], M[2, 1], M[2, 2] = m20, m21, m22
    else:
        for r in range(3):
            for c in range(r + 1):
                M[r, c] = V[r, c]
        pseudo_whitening(M)


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


@kernel()
def quadratic_costs(begin, end, S, anchor, g, c, y, costs):
    """Twice f(y) for every observation: its squared residual under the quadratic."""
    for a in range(begin, end):
        e0, e1, e2 = y[a, 0] - anchor[a, 0], y[a, 1] - anchor[a, 1], y[a, 2] - anchor[a, 2]
        k0, k1, k2 = symmetric(S[a], e0, e1, e2)
        costs[a] = c[a] + e0 * (k0 + 2.0 * g[a, 0]) + e1 * (k1 + 2.0 * g[a, 1]) + e2 * (k2 + 2.0 * g[a, 2])


@kernel()
def half_squares(begin, end, ranges, u, total):
    """1/2 sum |u_j|² over each of the ranges begin ... end (`reduction`)."""
    for t in range(begin, end):
        squares = 0.0
        for j in range(ranges[t], ranges[t + 1]):
            squares += u[j, 0] * u[j, 0] + u[j, 1] * u[j, 1] + u[j, 2] * u[j, 2]
        total[t] = 0.5 * squares


@kernel()
def back_substitute(begin, end, ranges, ptr, cam, Z, M, u, shift, X, step, moved, gain):
    """Landmarks of ranges begin ... end (`reduction`) on the unit sphere after the joint step that moves the cameras by
    `step`, from the arrays of `eliminate_landmarks`.

    δ_j = -M_j' (u_j + sum_i Z_ij' step_i X_j), X_j <- X_j + N_j δ_j, back on the unit sphere. 1/2 shift_j |δ_j|² is what the
    damped reduced system leaves out of the undamped quadratic's decrease, gain its sum over a range.
    """
    for t in range(begin, end):
        gain[t] = _back_substitute(ranges[t], ranges[t + 1], ptr, cam, Z, M, u, shift, X, step, moved)


@kernel(inline="always")
def _back_substitute(begin, end, ptr, cam, Z, M, u, shift, X, step, moved):
    N = room((4, 3))
    gain = 0.0
    for j in range(begin, end):
        x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
        sphere_tangent(x0, x1, x2, x3, N)
        u0, u1, u2 = u[j, 0], u[j, 1], u[j, 2]
        for a in range(ptr[j], ptr[j + 1]):
            y0, y1, y2 = projection(step[cam[a]], x0, x1, x2, x3)
            u0 += Z[a, 0, 0] * y0 + Z[a, 0, 1] * y1 + Z[a, 0, 2] * y2
            u1 += Z[a, 1, 0] * y0 + Z[a, 1, 1] * y1 + Z[a, 1, 2] * y2
            u2 += Z[a, 2, 0] * y0 + Z[a, 2, 1] * y1 + Z[a, 2, 2] * y2
        d0, d1, d2 = unwhitened(M[j], u0, u1, u2)
        gain += 0.5 * shift[j] * (d0 * d0 + d1 * d1 + d2 * d2)
        norm = 0.0
        for k in range(4):
            moved[j, k] = X[j, k] - (N[k, 0] * d0 + N[k, 1] * d1 + N[k, 2] * d2)
            norm += moved[j, k] * moved[j, k]
        norm = 1.0 / np.sqrt(norm)
        for k in range(4):
            moved[j, k] *= norm
    return gain
