"""The reduced camera system from what each observation left (`elimination.condense`): blocks of cameras and of their pairs.

A block is a sum over landmarks of 3x3 factors times X X'. Factors times the ten distinct numbers of X X' are summed in
registers, pair by pair (`shared_observations`), and written out as 12x12 when all landmarks have been seen.
"""

import numpy as np

from initfree.engine.kernels import kernel
from initfree.engine.simd import (
    LANES_4,
    LANES_8,
    LANES_10,
    add_product,
    add_products,
    add_to,
    arranged,
    load,
    number,
    total,
    zeros,
)

_DISTINCT = 10
"""Entries of the symmetric 4x4 matrix X X'."""
_COUPLED = 9 * _DISTINCT
"""Numbers of a pair's block while it is summed: eight factors, column by column, for each entry of X X', and the ninth's"""
_OWN = 6 * 16 + 3 * 4
"""Numbers of a camera's own: six factors times the ten, padded, and the gradient"""
_ALIGNED = (0,) * 16
"""Vectors for the ten"""
_rows, _columns, _ninth = arranged(0, 1, 2, 0, 1, 2, 0, 1), arranged(0, 0, 0, 1, 1, 1, 2, 2), arranged(2)


@kernel()
def couple(begin, end, shared, place, landmark, Z, A, weight, XX, blocks):
    """Blocks begin ... end of the pairs of different cameras, written at blocks[place[n]], (blocks, 12, 12).

    shared is (ptr, later, earlier), Z (9 observations), column by column, and XX (10 landmarks) flat arrays, A like Z and
    empty without weights. Lists come range by range of the landmarks: all sums of a part stay in cache beside them.
    """
    ptr, later, earlier = shared
    ranges = ptr.shape[0]
    step = 1 if ranges == 1 else end - begin
    sums = np.empty(_COUPLED * step)
    for start in range(begin, end, step):
        sums[:] = 0.0
        for t in range(ranges):
            for n in range(start, start + step):
                if ptr[t, n] < ptr[t, n + 1]:
                    _add_pair(
                        ptr[t, n], ptr[t, n + 1], later, earlier, landmark, Z, A, weight, XX, sums, _COUPLED * (n - start)
                    )
        for n in range(start, start + step):
            if ptr[0, n] < ptr[0, n + 1] or ranges > 1:
                _write_pair(sums, _COUPLED * (n - start), blocks[place[n]])


@kernel(inline="always")
def _add_pair(first, last, later, earlier, landmark, Z, A, weight, XX, sums, at):
    """sums[at:] += (Z_a Z_b') ⊗ X X' over a list; weighted ((A_a + w_b Z_a) Z_b') ⊗ X X'."""
    weighted = A.size > 0
    left = A if weighted else Z
    s0, s1, s2, s3, s4 = zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8)
    s5, s6, s7, s8, s9 = zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8)
    s = zeros(LANES_10)
    for index in range(first, last):
        a, b = number(later, index), number(earlier, index)
        x = _DISTINCT * number(landmark, a)
        a0, a1, a2 = load(left, 9 * a, LANES_4), load(left, 9 * a + 3, LANES_4), load(left, 9 * a + 6, LANES_4)
        b0, b1, b2 = load(Z, 9 * b, LANES_4), load(Z, 9 * b + 3, LANES_4), load(Z, 9 * b + 6, LANES_4)
        if weighted:
            w = number(weight, b)
            a0 = add_product(a0, load(Z, 9 * a, LANES_4), w)
            a1 = add_product(a1, load(Z, 9 * a + 3, LANES_4), w)
            a2 = add_product(a2, load(Z, 9 * a + 6, LANES_4), w)
        f = add_products(zeros(LANES_8), _rows(a0), _columns(b0))
        f = add_products(f, _rows(a1), _columns(b1))
        f = add_products(f, _rows(a2), _columns(b2))
        s0 = add_product(s0, f, number(XX, x))
        s1 = add_product(s1, f, number(XX, x + 1))
        s2 = add_product(s2, f, number(XX, x + 2))
        s3 = add_product(s3, f, number(XX, x + 3))
        s4 = add_product(s4, f, number(XX, x + 4))
        s5 = add_product(s5, f, number(XX, x + 5))
        s6 = add_product(s6, f, number(XX, x + 6))
        s7 = add_product(s7, f, number(XX, x + 7))
        s8 = add_product(s8, f, number(XX, x + 8))
        s9 = add_product(s9, f, number(XX, x + 9))
        diagonal = add_products(add_products(add_products(zeros(LANES_4), a0, b0), a1, b1), a2, b2)
        s = add_product(s, load(XX, x, LANES_10), total(_ninth(diagonal)))
    add_to(sums, at, s0)
    add_to(sums, at + 8, s1)
    add_to(sums, at + 16, s2)
    add_to(sums, at + 24, s3)
    add_to(sums, at + 32, s4)
    add_to(sums, at + 40, s5)
    add_to(sums, at + 48, s6)
    add_to(sums, at + 56, s7)
    add_to(sums, at + 64, s8)
    add_to(sums, at + 72, s9)
    add_to(sums, at + 80, s)


@kernel(strict=True)
def _write_pair(sums, at, block):
    """The 12x12 block from its factors: that in row r and column c times entry k of X X' is -sums[at + 8 k + 3 c + r]."""
    k = 0
    for x in range(4):
        for y in range(x, 4):
            for c in range(3):
                for r in range(3):
                    value = -sums[at + 80 + k if r + c == 4 else at + 8 * k + 3 * c + r]
                    block[4 * r + x, 4 * c + y] = value
                    block[4 * r + y, 4 * c + x] = value
            k += 1


@kernel()
def own(begin, end, tracks, ranges, D, e, X, XX, place, blocks, gradient):
    """Blocks of cameras begin ... end with themselves, sum_a D_a ⊗ X X', at blocks[place[i]], and the gradient e ⊗ X.

    tracks is (landmark, camera_ptr, by_camera), D (6 observations), e (3 observations), X and XX flat. Cameras take
    turns on ranges of landmarks, whose numbers stay in cache until all have seen them.
    """
    landmark, camera_ptr, by_camera = tracks
    count = end - begin
    sums = np.zeros(_OWN * count)
    after = camera_ptr[begin:end].copy()
    for visit in range(ranges * count):
        turn, i = visit // count, begin + visit % count
        until = landmark.size * (turn + 1) // ranges
        s0, s1, s2 = zeros(_ALIGNED), zeros(_ALIGNED), zeros(_ALIGNED)
        s3, s4, s5 = zeros(_ALIGNED), zeros(_ALIGNED), zeros(_ALIGNED)
        g0, g1, g2 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
        index = after[i - begin]
        while index < camera_ptr[i + 1] and number(by_camera, index) < until:
            a = number(by_camera, index)
            j, d = number(landmark, a), 6 * a
            index += 1
            xx = load(XX, _DISTINCT * j, _ALIGNED)
            s0 = add_product(s0, xx, number(D, d + 0))
            s1 = add_product(s1, xx, number(D, d + 1))
            s2 = add_product(s2, xx, number(D, d + 2))
            s3 = add_product(s3, xx, number(D, d + 3))
            s4 = add_product(s4, xx, number(D, d + 4))
            s5 = add_product(s5, xx, number(D, d + 5))
            x = load(X, 4 * j, LANES_4)
            g0 = add_product(g0, x, number(e, 3 * a + 0))
            g1 = add_product(g1, x, number(e, 3 * a + 1))
            g2 = add_product(g2, x, number(e, 3 * a + 2))
        after[i - begin] = index
        at = _OWN * (i - begin)
        add_to(sums, at, s0)
        add_to(sums, at + 16, s1)
        add_to(sums, at + 32, s2)
        add_to(sums, at + 48, s3)
        add_to(sums, at + 64, s4)
        add_to(sums, at + 80, s5)
        add_to(sums, at + 96, g0)
        add_to(sums, at + 100, g1)
        add_to(sums, at + 104, g2)
    for i in range(begin, end):
        at = _OWN * (i - begin)
        for r in range(3):
            for k in range(4):
                gradient[i, r, k] = sums[at + 96 + 4 * r + k]
        _write_own(sums[at:], blocks[place[i]])


@kernel(strict=True)
def _write_own(sums, block):
    """The symmetric 12x12 block from six factors (00 01 02 11 12 22) times X X'."""
    for r in range(3):
        for c in range(3):
            low, high = min(r, c), max(r, c)
            k = 16 * ((0, 3, 5)[low] + high - low)
            for x in range(4):
                for y in range(x, 4):
                    block[4 * r + x, 4 * c + y] = sums[k]
                    block[4 * r + y, 4 * c + x] = sums[k]
                    k += 1


@kernel()
def scatter(row, pair_column, column, blocks, upper, H):
    """Add the blocks into one triangle of the dense H; slot s of camera k is column[k, s], which cameras may share."""
    H[:, :] = 0.0
    width = column.shape[1]
    for n in range(row.size):
        i, k = row[n], pair_column[n]
        after = column[i].min() > column[k].max()
        for c in range(width):
            q = column[k, c]
            for s in range(width):
                p = column[i, s]
                if after and upper:
                    H[q, p] += blocks[n, s, c]
                elif i != k or p >= q:
                    low, high = min(p, q), max(p, q)
                    value = 2.0 * blocks[n, s, c] if i != k and p == q else blocks[n, s, c]
                    H[low if upper else high, high if upper else low] += value
