"""The reduced camera system, a camera at a time, from what each observation left (`kernels.condense`)."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from initfree.engine.kernels import kernel

_DISTINCT = 10
"""Entries of the symmetric 4x4 matrix X X'."""
_BLOCK = 9 * _DISTINCT
"""Numbers of a block while it is summed: 3x3 factors of X X'."""
_CACHED = 50_000
"""Numbers that stay in a core's cache beside what they are summed from."""
_TURN = 5000
"""Observations whose numbers stay there."""


def _vector_sum(_typing, target, offset, source, factor):
    """target[offset:offset + 10] += factor * source[:10], flat arrays, as one vector operation.

    Written as a loop it is unrolled and stays scalar; it is the innermost one of the whole solver.
    """

    def generate(context, builder, signature, arguments):
        vector = ir.VectorType(ir.DoubleType(), _DISTINCT)

        def address(index):
            array = context.make_array(signature.args[index])(context, builder, arguments[index])
            place = builder.gep(array.data, [arguments[1]]) if index == 0 else array.data
            return builder.bitcast(place, vector.as_pointer())

        target_address, source_address = address(0), address(2)
        unset, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), _DISTINCT), [0] * _DISTINCT)
        scale = builder.shuffle_vector(builder.insert_element(unset, arguments[3], first), unset, everywhere)
        before, added = builder.load(target_address), builder.load(source_address)
        before.align = added.align = 8
        product = builder.fmul(scale, added, flags=("contract",))
        builder.store(builder.fadd(before, product, flags=("contract",)), target_address).align = 8
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.float64), generate


_add_scaled: Any = intrinsic(_vector_sum)


@kernel(inline="always")
def outer(x0, x1, x2, x3, xx):
    """The ten distinct entries of X X', row by row."""
    xx[0], xx[1], xx[2], xx[3] = x0 * x0, x0 * x1, x0 * x2, x0 * x3
    xx[4], xx[5], xx[6] = x1 * x1, x1 * x2, x1 * x3
    xx[7], xx[8], xx[9] = x2 * x2, x2 * x3, x3 * x3


@kernel(strict=True)
def _expand(sums, symmetric, block):
    """A 12x12 block from its 3x3 factors times X X', summed over landmarks: factor (r, c) at 10 (3 c + r).

    A symmetric one holds only the factors r <= c.
    """
    for r in range(3):
        for c in range(3):
            low, high = min(r, c), max(r, c)
            factor = 3 * high + low if symmetric else 3 * c + r
            index = _DISTINCT * factor
            for a in range(4):
                for b in range(a, 4):
                    block[4 * r + a, 4 * c + b] = sums[index]
                    block[4 * r + b, 4 * c + a] = sums[index]
                    index += 1


@kernel()
def gather(begin, end, tracks, pairs, S, weight, X, Z, e, K, coupling, blocks, gradient):
    """Rows begin ... end of the reduced system: its blocks (pairs, 12, 12) and gradient (cameras, 3, 4).

    tracks is (ptr, cam, landmark, camera_ptr, by_camera), pairs (ptr, column). Row i adds up, over what camera i sees, the
    pairs with earlier cameras: its blocks stay in cache, and no other row writes them. `coupling` 2: all pairs, 1: cameras
    with themselves, 0: the same without the landmarks' elimination (U).
    """
    ptr, cam, landmark, camera_ptr, by_camera = tracks
    pair_ptr, column = pairs
    weighted = weight.size > 0
    sums = np.zeros(_BLOCK * (pair_ptr[end] - pair_ptr[begin]))
    place = np.empty(gradient.shape[0], dtype=np.int64)
    xx = np.empty(_DISTINCT)
    A = np.empty((3, 3))
    gradient[begin:end] = 0.0
    # While all sums fit into the cache, rows take turns on a range of landmarks that does too; otherwise each ends first.
    turns = 1 + (landmark.size // _TURN if sums.size < _CACHED else 0)
    after = camera_ptr[begin:end].copy()
    for visit in range(turns * (end - begin)):
        turn, i = visit // (end - begin), begin + visit % (end - begin)
        for n in range(pair_ptr[i], pair_ptr[i + 1]):
            place[column[n]] = _BLOCK * (n - pair_ptr[begin])
        until = (ptr.size - 1) * (turn + 1) // turns
        index = after[i - begin]
        while index < camera_ptr[i + 1] and landmark[by_camera[index]] < until:
            a = by_camera[index]
            j = landmark[a]
            index += 1
            x0, x1, x2, x3 = X[j, 0], X[j, 1], X[j, 2], X[j, 3]
            outer(x0, x1, x2, x3, xx)
            w = 1.0
            for r in range(3):
                for c in range(3):
                    A[r, c] = -Z[a, r, c]
            if weighted:
                # A = Z (K - w_a I); the rest of the factor, -w_b Z, is the other observation's.
                w = weight[a]
                for r in range(3):
                    z0, z1, z2 = Z[a, r, 0], Z[a, r, 1], Z[a, r, 2]
                    for c in range(3):
                        A[r, c] = z0 * K[j, 0, c] + z1 * K[j, 1, c] + z2 * K[j, 2, c] - w * Z[a, r, c]
            a00, a01, a02, a10, a11, a12 = A[0, 0], A[0, 1], A[0, 2], A[1, 0], A[1, 1], A[1, 2]
            a20, a21, a22 = A[2, 0], A[2, 1], A[2, 2]
            if coupling == 2:
                for b in range(ptr[j], a):
                    if weighted:
                        v = weight[b]
                        a00, a01, a02 = A[0, 0] - v * Z[a, 0, 0], A[0, 1] - v * Z[a, 0, 1], A[0, 2] - v * Z[a, 0, 2]
                        a10, a11, a12 = A[1, 0] - v * Z[a, 1, 0], A[1, 1] - v * Z[a, 1, 1], A[1, 2] - v * Z[a, 1, 2]
                        a20, a21, a22 = A[2, 0] - v * Z[a, 2, 0], A[2, 1] - v * Z[a, 2, 1], A[2, 2] - v * Z[a, 2, 2]
                    at = place[cam[b]]
                    for c in range(3):
                        z0, z1, z2 = Z[b, c, 0], Z[b, c, 1], Z[b, c, 2]
                        _add_scaled(sums, at, xx, a00 * z0 + a01 * z1 + a02 * z2)
                        _add_scaled(sums, at + 10, xx, a10 * z0 + a11 * z1 + a12 * z2)
                        _add_scaled(sums, at + 20, xx, a20 * z0 + a21 * z1 + a22 * z2)
                        at += 30
            at = place[i]
            own = w if weighted else 0.0
            index_s = 0
            for r in range(3):
                f0, f1, f2 = A[r, 0] - own * Z[a, r, 0], A[r, 1] - own * Z[a, r, 1], A[r, 2] - own * Z[a, r, 2]
                for c in range(r, 3):
                    f = w * S[a, index_s]
                    if coupling > 0:
                        f += f0 * Z[a, c, 0] + f1 * Z[a, c, 1] + f2 * Z[a, c, 2]
                    _add_scaled(sums, at + 10 * (3 * c + r), xx, f)
                    index_s += 1
                gradient[i, r, 0] += e[a, r] * x0
                gradient[i, r, 1] += e[a, r] * x1
                gradient[i, r, 2] += e[a, r] * x2
                gradient[i, r, 3] += e[a, r] * x3
        after[i - begin] = index
    for i in range(begin, end):
        for n in range(pair_ptr[i], pair_ptr[i + 1]):
            _expand(sums[_BLOCK * (n - pair_ptr[begin]) :], column[n] == i, blocks[n])


@kernel()
def scatter(row, pair_column, column, blocks, H):
    """Add the blocks into the lower triangle of the dense H; slot s of camera k is column[k, s], which cameras may share."""
    H[:, :] = 0.0
    width = column.shape[1]
    for n in range(row.size):
        i, k = row[n], pair_column[n]
        for s in range(width):
            p = column[i, s]
            for c in range(width):
                q = column[k, c]
                if p > q or (p == q and i == k):
                    H[p, q] += blocks[n, s, c]
                elif i != k:
                    H[q, p] += blocks[n, s, c] if p < q else 2.0 * blocks[n, s, c]
