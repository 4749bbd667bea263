"""Blocks of the reduced system of metric cameras, from `kernels.eliminate_landmarks`, summed as in `engine.blocks`.

A block is sum G_a'N G_b over the common landmarks of two cameras, N = Q_a Q_b' or, of a camera with itself, I - Q_a Q_a'.
G (2 x width of every observation) and Q (2 x 3) are flat arrays, row by row. Vectors read over the end of a row, into
unused numbers. A width of 9, one more than a vector, has its last column by itself.
"""

from math import inf

from initfree.engine.kernels import kernel
from initfree.engine.reduction import add_up
from initfree.engine.vectors import (
    WIDE,
    add_many_to,
    add_outer,
    add_product,
    add_squares,
    add_to,
    load,
    many,
    number,
    zeros,
)

_ROWS = {6: 6, 9: 9, 12: 12, inf: 8} if WIDE else {inf: 3}
"""of blocks of up to so many rows, those that are summed at once: they and what they are summed from fit into the registers,
vectors of 8 for blocks of up to 9 rows and of 16 or more for longer ones"""


def lanes_for(width: int) -> tuple[int, ...]:
    """Vectors for rows of `width` numbers, or all but the last: multiples of 8, LLVM moves those of 12 through memory."""
    return (0,) * (8 * ((width + 6) // 8))


def rows_for(width: int) -> tuple[int, ...]:
    """As many rows as are summed at once; the last ones of a block may be none. Few different ones: kernels are compiled for
    each."""
    return (0,) * next(rows for most, rows in _ROWS.items() if width <= most)


def row_of_sums(width: int) -> int:
    """Numbers of a row of sums: those of a block, some rows at a time; its last column, or gradient and squares; 3 more."""
    rows = len(rows_for(width))
    return (rows * -(-width // rows) + 2) * len(lanes_for(width)) + 8


@kernel(inline="always")
def couple(begin, end, lists_of_rows, rows, lanes, width, size, left, sums):
    """Lists begin ... end (`engine.reduction`); left is (G, Q, e), size the numbers of a row of sums."""
    row, list_ptr, later, earlier = lists_of_rows
    G, Q, e = left
    stride = len(lanes)
    rest = len(rows) * ((width + len(rows) - 1) // len(rows)) * stride
    for n in range(begin, end):
        first, last, at = list_ptr[n], list_ptr[n + 1], size * number(row, n)
        own = number(later, first) == number(earlier, first)
        for r in range(0, width, len(rows)):
            _add_rows(first, last, later, earlier, own, rows, lanes, width, r, G, Q, sums, at + r * stride)
        if own:
            _add_gradient(first, last, later, lanes, width, G, Q, e, sums, at + rest)
        elif width > stride:
            _add_column(first, last, later, earlier, lanes, width, G, Q, sums, at + rest)


@kernel(inline="always")
def _between(Q, a, b, own):
    """N, row by row."""
    p, q = 6 * a, 6 * b
    a0, a1, a2 = number(Q, p), number(Q, p + 1), number(Q, p + 2)
    c0, c1, c2 = number(Q, p + 3), number(Q, p + 4), number(Q, p + 5)
    b0, b1, b2 = number(Q, q), number(Q, q + 1), number(Q, q + 2)
    d0, d1, d2 = number(Q, q + 3), number(Q, q + 4), number(Q, q + 5)
    n00, n01 = a0 * b0 + a1 * b1 + a2 * b2, a0 * d0 + a1 * d1 + a2 * d2
    n10, n11 = c0 * b0 + c1 * b1 + c2 * b2, c0 * d0 + c1 * d1 + c2 * d2
    return (1.0 - n00, -n01, -n10, 1.0 - n11) if own else (n00, n01, n10, n11)


@kernel(inline="always")
def _add_rows(first, last, later, earlier, own, rows, lanes, width, row, G, Q, sums, at):
    """Some rows of sum G_a'N G_b over a list."""
    s = many(rows, lanes)
    for index in range(first, last):
        a, b = number(later, index), number(earlier, index)
        n00, n01, n10, n11 = _between(Q, a, b, own)
        g, h = 2 * width * a + row, 2 * width * b
        top, bottom = load(G, h, lanes), load(G, h + width, lanes)
        s = add_outer(s, add_product(add_product(zeros(lanes), top, n00), bottom, n01), G, g)
        s = add_outer(s, add_product(add_product(zeros(lanes), top, n10), bottom, n11), G, g + width)
    add_many_to(sums, at, s)


@kernel(inline="always")
def _add_column(first, last, later, earlier, lanes, width, G, Q, sums, at):
    """The last column of sum G_a'N G_b, and of that the last number."""
    column = zeros(lanes)
    corner = 0.0
    for index in range(first, last):
        a, b = number(later, index), number(earlier, index)
        n00, n01, n10, n11 = _between(Q, a, b, False)
        g, h = 2 * width * a, 2 * width * b
        h0, h1 = number(G, h + width - 1), number(G, h + 2 * width - 1)
        t0, t1 = n00 * h0 + n01 * h1, n10 * h0 + n11 * h1
        column = add_product(add_product(column, load(G, g, lanes), t0), load(G, g + width, lanes), t1)
        corner += number(G, g + width - 1) * t0 + number(G, g + 2 * width - 1) * t1
    add_to(sums, at, column)
    sums[at + len(lanes)] += corner


@kernel(inline="always")
def _add_gradient(first, last, later, lanes, width, G, Q, e, sums, at):
    """Over the list of a camera G'e and diag(G'G), then those two of a last column and the last number of G'N G."""
    gradient, squares = zeros(lanes), zeros(lanes)
    last_gradient, last_square, corner = 0.0, 0.0, 0.0
    for index in range(first, last):
        a = number(later, index)
        g = 2 * width * a
        e0, e1 = number(e, 2 * a), number(e, 2 * a + 1)
        top, bottom = load(G, g, lanes), load(G, g + width, lanes)
        gradient = add_product(add_product(gradient, top, e0), bottom, e1)
        squares = add_squares(squares, top, bottom)
        g0, g1 = number(G, g + width - 1), number(G, g + 2 * width - 1)
        last_gradient += g0 * e0 + g1 * e1
        last_square += g0 * g0 + g1 * g1
        n00, n01, n10, n11 = _between(Q, a, a, True)
        corner += g0 * (n00 * g0 + n01 * g1) + g1 * (n10 * g0 + n11 * g1)
    add_to(sums, at, gradient)
    add_to(sums, at + len(lanes), squares)
    at += 2 * len(lanes)
    sums[at] += last_gradient
    sums[at + 1] += last_square
    sums[at + 2] += corner


@kernel()
def write(begin, end, pairs, of_pairs, sums, rest, stride, size, blocks, diagonal, gradient):
    """Blocks begin ... end of pairs (row, column), diag(G'G) and the gradient of cameras, from their rows of sums, where a
    block has `stride` numbers a row and what else there is begins at `rest`.

    What a last column of a camera's own block would have, its last row has.
    """
    of_row, of_column = pairs
    width = blocks.shape[1]
    for n in range(begin, end):
        at = add_up(n, of_pairs, sums, size)
        own = of_row[n] == of_column[n]
        for s in range(width):
            for c in range(min(width, stride)):
                blocks[n, s, c] = sums[at + s * stride + c] if own else -sums[at + s * stride + c]
        if width > stride:
            for s in range(width):
                blocks[n, s, width - 1] = blocks[n, width - 1, min(s, stride - 1)] if own else -sums[at + rest + s]
        if own:
            i = of_row[n]
            for s in range(min(width, stride)):
                gradient[i, s] = sums[at + rest + s]
                diagonal[i, s] = sums[at + rest + stride + s]
            if width > stride:
                more = at + rest + 2 * stride
                gradient[i, width - 1], diagonal[i, width - 1] = sums[more], sums[more + 1]
                blocks[n, width - 1, width - 1] = sums[more + 2]
