"""Blocks of the reduced camera system, from the arrays of `elimination.eliminate_landmarks`.

A block is a sum over landmarks of 3x3 factors times X X'. Factors times the ten distinct numbers of X X' are summed in rows
(`reduction`), which are added up and written out as 12x12 at the end:

    two cameras      eight factors, column by column, for each of the ten; then the ninth's ten
    a camera's own   six factors, padded, for each of the ten; then the gradient's twelve
"""

from initfree.engine.elimination import eliminate_landmarks
from initfree.engine.kernels import kernel
from initfree.engine.reduction import add_up
from initfree.engine.vectors import (
    LANES_2,
    LANES_4,
    LANES_6,
    LANES_8,
    add_many_to,
    add_outer,
    add_product,
    add_products,
    add_to,
    arranged,
    load,
    many,
    number,
    total,
    zeros,
)

_TEN, _THREE = (0,) * 10, (0,) * 3
"""entries of the symmetric 4x4 matrix X X', and of e"""
ROW = 96
"""Numbers of a row of sums"""
_REST = 80
"""where the ninth factor's, or the gradient's, begin in a row"""
_rows, _columns, _ninth = arranged(0, 1, 2, 0, 1, 2, 0, 1), arranged(0, 0, 0, 1, 1, 1, 2, 2), arranged(2)
_six = arranged(0, 1, 2, 3, 4, 5, 5, 5)


@kernel()
def assemble(begin, end, landmark_ranges, lists_of_rows, landmark, eliminates, model, weight, X, flat_X, left, sums):
    """Rows of sums of groups begin ... end (`engine.reduction`), range by range; landmarks are eliminated first if
    `eliminates`."""
    ranges, lists, groups, group_rows = landmark_ranges
    (ptr, cam), (S, anchor, g), columns, (homogeneous, damping), whitens, (M, u, shift, K) = model
    for group in range(begin, end):
        sums[ROW * group_rows[group] : ROW * group_rows[group + 1]] = 0.0
        for t in range(groups[group], groups[group + 1]):
            first, last = ranges[t], ranges[t + 1]
            if eliminates:
                eliminate_landmarks(
                    first, last, ptr, cam, S, anchor, g, weight, columns, X, homogeneous, damping,
                    left, whitens, M, u, shift, K,
                )  # fmt: skip
            couple(lists[t], lists[t + 1], lists_of_rows, landmark, weight, flat_X, left, sums)


@kernel(inline="always")
def couple(begin, end, lists_of_rows, landmark, weight, X, left, sums):
    """Lists begin ... end (`engine.reduction`). left is (Z, A, D, e, XX), all of it flat, A empty without weights."""
    row, list_ptr, later, earlier = lists_of_rows
    Z, A, D, e, XX = left
    for n in range(begin, end):
        first, last, at = list_ptr[n], list_ptr[n + 1], ROW * number(row, n)
        if number(later, first) == number(earlier, first):
            _add_own(first, last, later, landmark, X, XX, D, e, sums, at)
        else:
            _add_pair(first, last, later, earlier, landmark, Z, A, weight, XX, sums, at)


@kernel(inline="always")
def _add_own(first, last, later, landmark, X, XX, D, e, sums, at):
    """sums[at:] += D_a ⊗ X X', and e_a ⊗ X, over a list."""
    s, g = many(_TEN, LANES_8), many(_THREE, LANES_4)
    for index in range(first, last):
        a = number(later, index)
        j = number(landmark, a)
        s = add_outer(s, _six(load(D, 6 * a, LANES_6)), XX, 10 * j)
        g = add_outer(g, load(X, 4 * j, LANES_4), e, 3 * a)
    add_many_to(sums, at, s)
    add_many_to(sums, at + _REST, g)


@kernel(inline="always")
def _add_pair(first, last, later, earlier, landmark, Z, A, weight, XX, sums, at):
    """sums[at:] += (Z_a Z_b') ⊗ X X' over a list; weighted ((A_a + w_b Z_a) Z_b') ⊗ X X'."""
    weighted = A.size > 0
    left = A if weighted else Z
    s, ninths, rest = many(_TEN, LANES_8), zeros(LANES_8), zeros(LANES_2)
    for index in range(first, last):
        a, b = number(later, index), number(earlier, index)
        x = 10 * number(landmark, a)
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
        s = add_outer(s, f, XX, x)
        diagonal = add_products(add_products(add_products(zeros(LANES_4), a0, b0), a1, b1), a2, b2)
        ninth = total(_ninth(diagonal))
        ninths = add_product(ninths, load(XX, x, LANES_8), ninth)
        rest = add_product(rest, load(XX, x + 8, LANES_2), ninth)
    add_many_to(sums, at, s)
    add_to(sums, at + _REST, ninths)
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
