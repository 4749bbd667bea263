"""The reduced camera system: blocks of cameras and of their pairs from what each observation left (`elimination.condense`).

A block is a sum over landmarks of 3x3 factors times X X'. Factors times the ten distinct numbers of X X' are summed in rows
(`shares`), which are added up and written out as 12x12 when all landmarks have been seen:

    two cameras      eight factors, column by column, for each of the ten; then the ninth's ten
    a camera's own   six factors, padded, for each of the ten; then the gradient's twelve
"""

from initfree.engine.kernels import kernel
from initfree.engine.shares import add_up
from initfree.engine.simd import (
    LANES_2,
    LANES_4,
    LANES_6,
    LANES_8,
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
ROW = 96
"""Numbers of a row of sums"""
_REST = 80
"""where the ninth factor's, or the gradient's, begin in a row"""
_rows, _columns, _ninth = arranged(0, 1, 2, 0, 1, 2, 0, 1), arranged(0, 0, 0, 1, 1, 1, 2, 2), arranged(2)
_six = arranged(0, 1, 2, 3, 4, 5, 5, 5)


@kernel()
def couple(begin, end, taken, met, landmark, weight, X, left, sums):
    """Rows of shares begin ... end (`engine.shares`). left is (Z, A, D, e, XX), all of it flat, A empty without weights."""
    _, shares, share_rows = taken
    lists, row, list_ptr, later, earlier = met
    Z, A, D, e, XX = left
    for share in range(begin, end):
        sums[ROW * share_rows[share] : ROW * share_rows[share + 1]] = 0.0
        for n in range(lists[shares[share]], lists[shares[share + 1]]):
            first, last, at = list_ptr[n], list_ptr[n + 1], ROW * number(row, n)
            if number(later, first) == number(earlier, first):
                _add_own(first, last, later, landmark, X, XX, D, e, sums, at)
            else:
                _add_pair(first, last, later, earlier, landmark, Z, A, weight, XX, sums, at)


@kernel(inline="always")
def _add_own(first, last, later, landmark, X, XX, D, e, sums, at):
    """sums[at:] += D_a ⊗ X X', and e_a ⊗ X, over a list."""
    s0, s1, s2, s3, s4 = zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8)
    s5, s6, s7, s8, s9 = zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8)
    g0, g1, g2 = zeros(LANES_4), zeros(LANES_4), zeros(LANES_4)
    for index in range(first, last):
        a = number(later, index)
        j = number(landmark, a)
        d, x, position = _six(load(D, 6 * a, LANES_6)), _DISTINCT * j, load(X, 4 * j, LANES_4)
        s0 = add_product(s0, d, number(XX, x))
        s1 = add_product(s1, d, number(XX, x + 1))
        s2 = add_product(s2, d, number(XX, x + 2))
        s3 = add_product(s3, d, number(XX, x + 3))
        s4 = add_product(s4, d, number(XX, x + 4))
        s5 = add_product(s5, d, number(XX, x + 5))
        s6 = add_product(s6, d, number(XX, x + 6))
        s7 = add_product(s7, d, number(XX, x + 7))
        s8 = add_product(s8, d, number(XX, x + 8))
        s9 = add_product(s9, d, number(XX, x + 9))
        g0 = add_product(g0, position, number(e, 3 * a))
        g1 = add_product(g1, position, number(e, 3 * a + 1))
        g2 = add_product(g2, position, number(e, 3 * a + 2))
    _add_tens(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, sums, at)
    add_to(sums, at + _REST, g0)
    add_to(sums, at + _REST + 4, g1)
    add_to(sums, at + _REST + 8, g2)


@kernel(inline="always")
def _add_tens(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, sums, at):
    """Factors times each of the ten of X X'."""
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


@kernel(inline="always")
def _add_pair(first, last, later, earlier, landmark, Z, A, weight, XX, sums, at):
    """sums[at:] += (Z_a Z_b') ⊗ X X' over a list; weighted ((A_a + w_b Z_a) Z_b') ⊗ X X'."""
    weighted = A.size > 0
    left = A if weighted else Z
    s0, s1, s2, s3, s4 = zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8)
    s5, s6, s7, s8, s9 = zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8), zeros(LANES_8)
    s, rest = zeros(LANES_8), zeros(LANES_2)
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
        ninth = total(_ninth(diagonal))
        s = add_product(s, load(XX, x, LANES_8), ninth)
        rest = add_product(rest, load(XX, x + 8, LANES_2), ninth)
    _add_tens(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, sums, at)
    add_to(sums, at + _REST, s)
    add_to(sums, at + _REST + 8, rest)


@kernel()
def write(begin, end, pairs, of_pairs, sums, place, blocks, gradient):
    """Blocks begin ... end of pairs (row, column) at blocks[place[n]], and the cameras' gradient, from rows of sums."""
    of_row, of_column = pairs
    for n in range(begin, end):
        at = add_up(n, of_pairs, sums, ROW)
        if of_row[n] != of_column[n]:
            _write_pair(sums, at, blocks, place[n])
            continue
        _write_own(sums, at, blocks, place[n])
        for r in range(3):
            for k in range(4):
                gradient[of_row[n], r, k] = sums[at + _REST + 4 * r + k]


@kernel(inline="always")
def _write_pair(sums, at, blocks, n):
    """The 12x12 block n from its factors: that in row r and column c times entry k of X X' is -sums[at + 8 k + 3 c + r]."""
    k = 0
    for x in range(4):
        for y in range(x, 4):
            for c in range(3):
                for r in range(3):
                    value = -sums[at + (_REST + k if r + c == 4 else 8 * k + 3 * c + r)]
                    blocks[n, 4 * r + x, 4 * c + y] = value
                    blocks[n, 4 * r + y, 4 * c + x] = value
            k += 1


@kernel(inline="always")
def _write_own(sums, at, blocks, n):
    """The symmetric 12x12 block n from factors 00 01 02 11 12 22: factor f times entry k of X X' is sums[at + 8 k + f]."""
    for r in range(3):
        for c in range(3):
            low, high = min(r, c), max(r, c)
            k = at + (0, 3, 5)[low] + high - low
            for x in range(4):
                for y in range(x, 4):
                    blocks[n, 4 * r + x, 4 * c + y] = sums[k]
                    blocks[n, 4 * r + y, 4 * c + x] = sums[k]
                    k += 8
