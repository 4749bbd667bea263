"""The reduced system of metric cameras from what each observation left (`kernels.condense`), summed as in `engine.blocks`.

Y (3 x width of every observation) and G (2 x width) are flat arrays, row by row. Vectors read over the end of a row, and
what they find there ends in numbers that nobody reads. A width of 9, one more than a vector, has its last column by itself.
"""

from initfree.engine.kernels import kernel
from initfree.engine.shares import add_up
from initfree.engine.simd import (
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

_ROWS = 10 if WIDE else 3
"""of a block that are summed at once, at most: they and what they are summed from fit into the registers"""


def lanes_for(width: int) -> tuple[int, ...]:
    """Vectors for rows of `width` numbers, or all but the last: multiples of 8, LLVM moves those of 12 through memory."""
    return (0,) * (8 * ((width + 6) // 8))


def rows_for(width: int) -> tuple[int, ...]:
    """As many rows as are summed at once; the last ones of a block may be none."""
    most = max(1, 8 * _ROWS // len(lanes_for(width)))
    return (0,) * -(-width // -(-width // most))


def row_of_sums(width: int) -> int:
    """Numbers of a row of sums: those of a block, some rows at a time; its last column, or gradient and squares; 3 more."""
    rows = len(rows_for(width))
    return (rows * -(-width // rows) + 2) * len(lanes_for(width)) + 8


@kernel()
def couple(begin, end, met, rows, lanes, width, size, left, sums):
    """Lists begin ... end (`engine.shares`): -sum Y_a'Y_b of two cameras, what `_add_own` adds of each with itself.

    left is (G, Y, C, e), flat, size the numbers of a row.
    """
    row, list_ptr, later, earlier = met
    G, Y, C, e = left
    stride = len(lanes)
    rest = len(rows) * ((width + len(rows) - 1) // len(rows)) * stride
    for n in range(begin, end):
        first, last, at = list_ptr[n], list_ptr[n + 1], size * number(row, n)
        own = number(later, first) == number(earlier, first)
        for r in range(0, width, len(rows)):
            if own:
                _add_own(first, last, later, rows, lanes, width, r, G, C, sums, at + r * stride)
            else:
                _add_rows(first, last, later, earlier, rows, lanes, width, r, Y, sums, at + r * stride)
        if own:
            _add_gradient(first, last, later, lanes, width, G, C, e, sums, at + rest)
        elif width > stride:
            _add_column(first, last, later, earlier, lanes, width, Y, sums, at + rest)


@kernel(inline="always")
def _add_rows(first, last, later, earlier, rows, lanes, width, row, Y, sums, at):
    """Some rows of sum Y_a'Y_b over a list."""
    s = many(rows, lanes)
    for index in range(first, last):
        a, b = 3 * width * number(later, index) + row, 3 * width * number(earlier, index)
        for k in range(3):
            s = add_outer(s, load(Y, b + k * width, lanes), Y, a + k * width)
    add_many_to(sums, at, s)


@kernel(inline="always")
def _add_column(first, last, later, earlier, lanes, width, Y, sums, at):
    """The last column of sum Y_a'Y_b, and of that the last number."""
    column = zeros(lanes)
    corner = 0.0
    for index in range(first, last):
        a, b = 3 * width * number(later, index), 3 * width * number(earlier, index) + width - 1
        for _ in range(3):
            y = number(Y, b)
            column = add_product(column, load(Y, a, lanes), y)
            corner += number(Y, a + width - 1) * y
            a += width
            b += width
    add_to(sums, at, column)
    sums[at + len(lanes)] += corner


@kernel(inline="always")
def _add_own(first, last, later, rows, lanes, width, row, G, C, sums, at):
    """Some rows of sum G'C G over the list of a camera."""
    s = many(rows, lanes)
    for index in range(first, last):
        a = number(later, index)
        g = 2 * width * a
        c00, c01, c11 = number(C, 3 * a), number(C, 3 * a + 1), number(C, 3 * a + 2)
        top, bottom = load(G, g, lanes), load(G, g + width, lanes)
        s = add_outer(s, add_product(add_product(zeros(lanes), top, c00), bottom, c01), G, g + row)
        s = add_outer(s, add_product(add_product(zeros(lanes), top, c01), bottom, c11), G, g + width + row)
    add_many_to(sums, at, s)


@kernel(inline="always")
def _add_gradient(first, last, later, lanes, width, G, C, e, sums, at):
    """Over the list of a camera G'e and diag(G'G), then of a last column those two and a corner of G'C G."""
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
        c00, c01, c11 = number(C, 3 * a), number(C, 3 * a + 1), number(C, 3 * a + 2)
        last_gradient += g0 * e0 + g1 * e1
        last_square += g0 * g0 + g1 * g1
        corner += g0 * (c00 * g0 + c01 * g1) + g1 * (c01 * g0 + c11 * g1)
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
