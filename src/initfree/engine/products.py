"""Products with the reduced system without its blocks: about 60 multiply-adds an observation, in linear memory.

With x_i (3x4) a vector's part of camera i, y_a = x_i X_j and the arrays of `eliminate_landmarks`, camera i's part of H x is

    sum_a ( S_a y_a - Z_a q_j ) ⊗ X_j,     q_j = sum_b Z_b' y_b,

and with projected-residual weights  sum_a ( w_a S_a y_a + Z_a (K_j q_j - sum_b w_b Z_b' y_b - w_a q_j) ) ⊗ X_j.

Landmark by landmark, so that Z_a is in the nearest cache when it is needed again; each of a few groups of the landmarks has
sums of its own for all cameras, which are added up at the end in their order.
"""

import numpy as np

from initfree.data.tracks import Array, Tracks
from initfree.engine import threads
from initfree.engine.elimination import combined, projected, times
from initfree.engine.kernels import kernel
from initfree.engine.quadratic import columns
from initfree.engine.vectors import LANES_4, LANES_6, add_product, add_products, add_to, load, total, zeros

_GROUPS = 8
"""of the landmarks: threads may be as many"""
_CAMERA = 16
"""numbers of a camera in the sums: columns of three and room for a fourth"""


class Products:
    """H x for the same tracks, many times."""

    def __init__(self, tracks: Tracks) -> None:
        self._tracks = tracks
        cut = np.linspace(0, tracks.observations, _GROUPS + 1)
        self._ranges = np.searchsorted(tracks.ptr, cut).astype(np.int64)
        self._work = tracks.ptr[self._ranges]
        self._sums = np.empty(_GROUPS * _CAMERA * tracks.cameras)

    def of(self, x: Array, S: Array, weight: Array, X: Array, Z: Array, K: Array, share: float) -> Array:
        """The product (cameras, 3, 4); `share` multiplies the part of S, zero leaves the coupling alone."""
        t = self._tracks
        left = S.reshape(-1), weight, X, Z, K
        threads.run(_multiply, self._work, self._ranges, t.ptr, t.cam, *left, columns(x), share, self._sums)
        by_share = self._sums.reshape(_GROUPS, t.cameras, 4, 4)
        return np.ascontiguousarray(by_share.sum(axis=0)[:, :, :3].transpose(0, 2, 1))


@kernel()
def _multiply(begin, end, ranges, ptr, cam, S, weight, X, Z, K, columns, share, sums):
    """Sums of groups begin ... end, each over landmarks ranges[s] to ranges[s + 1]."""
    weighted = weight.size > 0
    size = sums.size // (ranges.size - 1)
    for s in range(begin, end):
        sums[s * size : (s + 1) * size] = 0.0
        for j in range(ranges[s], ranges[s + 1]):
            x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
            v0, v1, v2 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            w0, w1, w2 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
            for a in range(ptr[j], ptr[j + 1]):
                y = projected(columns, _CAMERA * cam[a], x0, x1, x2, x3)
                z0, z1, z2 = load(Z, 9 * a, LANES_4), load(Z, 9 * a + 3, LANES_4), load(Z, 9 * a + 6, LANES_4)
                v0, v1, v2 = add_products(v0, z0, y), add_products(v1, z1, y), add_products(v2, z2, y)
                if weighted:
                    y = add_product(zeros(LANES_4), y, weight[a])
                    w0, w1, w2 = add_products(w0, z0, y), add_products(w1, z1, y), add_products(w2, z2, y)
            q0, q1, q2 = total(v0), total(v1), total(v2)
            r0, r1, r2 = -q0, -q1, -q2
            if weighted:
                r0 = K[j, 0, 0] * q0 + K[j, 0, 1] * q1 + K[j, 0, 2] * q2 - total(w0)
                r1 = K[j, 1, 0] * q0 + K[j, 1, 1] * q1 + K[j, 1, 2] * q2 - total(w1)
                r2 = K[j, 2, 0] * q0 + K[j, 2, 1] * q1 + K[j, 2, 2] * q2 - total(w2)
            for a in range(ptr[j], ptr[j + 1]):
                w = weight[a] if weighted else 1.0
                u = w if weighted else 0.0
                f = combined(Z, 9 * a, 3, r0 - u * q0, r1 - u * q1, r2 - u * q2)
                if share != 0.0:
                    y = projected(columns, _CAMERA * cam[a], x0, x1, x2, x3)
                    f = add_product(f, times(load(S, 6 * a, LANES_6), y), share * w)
                at = s * size + _CAMERA * cam[a]
                add_to(sums, at, add_product(zeros(LANES_4), f, x0))
                add_to(sums, at + 4, add_product(zeros(LANES_4), f, x1))
                add_to(sums, at + 8, add_product(zeros(LANES_4), f, x2))
                add_to(sums, at + 12, add_product(zeros(LANES_4), f, x3))
