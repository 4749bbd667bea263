"""The reduced system of metric cameras from what each observation left (`kernels.condense`), summed as in `engine.blocks`.

Y (3 x width of every observation) and G (2 x width) are flat arrays, row by row. Vectors read over the end of a row, and
what they find there ends in numbers that nobody reads. A width of 9, one more than a vector, has its last column by itself.
"""

from initfree.engine.kernels import kernel
from initfree.engine.shares import add_up
from initfree.engine.simd import add_product, add_squares, add_to, load, number, zeros

_ROWS = 3
"""of a block that are summed at once: they and what they are summed from fit into the registers of any machine"""


def lanes_for(width: int) -> tuple[int, ...]:
    """Vectors for rows of `width` numbers, or all but the last: multiples of 8, LLVM moves those of 12 through memory."""
    return (0,) * (8 * ((width + 6) // 8))


def row_of_sums(width: int) -> int:
    """Numbers of a row of sums: those of a block, three rows at a time; its last column, or gradient and squares; 3 more."""
    return (_ROWS * -(-width // _ROWS) + 2) * len(lanes_for(width)) + 8


@kernel()
def couple(begin, end, taken, met, tracks, lanes, width, size, left, own, sums):
    """Rows of shares begin ... end (`engine.shares`): -sum Y_a'Y_b of two cameras, what `_add_own` adds of each with itself.

    tracks is (ptr, cam), left (G, Y, C, e), flat, size the numbers of a row. Own blocks are not summed in lists: there an
    observation has more to read than its camera's sum has numbers; own (shares, cameras) is room for their places.
    """
    ranges, shares, share_rows = taken
    lists, row, list_ptr, later, earlier = met
    ptr, cam = tracks
    G, Y, C, e = left
    stride = len(lanes)
    rows = _ROWS * ((width + _ROWS - 1) // _ROWS)
    for share in range(begin, end):
        sums[size * share_rows[share] : size * share_rows[share + 1]] = 0.0
        for t in range(shares[share], shares[share + 1]):
            for n in range(lists[t], lists[t + 1]):
                first, last, at = list_ptr[n], list_ptr[n + 1], size * number(row, n)
                if number(later, first) == number(earlier, first):
                    own[share, cam[number(later, first)]] = at
                    continue
                for r in range(0, rows, _ROWS):
                    _add_rows(first, last, later, earlier, lanes, width, r, Y, sums, at + r * stride)
                if width > stride:
                    _add_column(first, last, later, earlier, lanes, width, Y, sums, at + rows * stride)
            for a in range(ptr[ranges[t]], ptr[ranges[t + 1]]):
                at = own[share, cam[a]]
                _add_own(a, lanes, width, G, C, e, sums, at, at + rows * stride)


@kernel(inline="always")
def _add_rows(first, last, later, earlier, lanes, width, row, Y, sums, at):
    """Three rows of sum Y_a'Y_b over a list."""
    s0, s1, s2 = zeros(lanes), zeros(lanes), zeros(lanes)
    for index in range(first, last):
        a, b = 3 * width * number(later, index) + row, 3 * width * number(earlier, index)
        for _ in range(3):
            y = load(Y, b, lanes)
            s0 = add_product(s0, y, number(Y, a))
            s1 = add_product(s1, y, number(Y, a + 1))
            s2 = add_product(s2, y, number(Y, a + 2))
            a += width
            b += width
    add_to(sums, at, s0)
    add_to(sums, at + len(lanes), s1)
    add_to(sums, at + 2 * len(lanes), s2)


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
def _add_own(a, lanes, width, G, C, e, sums, at, rest):
    """Of observation a, at its camera's row: G'C G, then G'e and diag(G'G), then of a last column those two and a corner."""
    g = 2 * width * a
    e0, e1 = number(e, 2 * a), number(e, 2 * a + 1)
    c00, c01, c11 = number(C, 3 * a), number(C, 3 * a + 1), number(C, 3 * a + 2)
    top, bottom = load(G, g, lanes), load(G, g + width, lanes)
    x = add_product(add_product(zeros(lanes), top, c00), bottom, c01)
    y = add_product(add_product(zeros(lanes), top, c01), bottom, c11)
    for s in range(width):
        product = add_product(zeros(lanes), x, number(G, g + s))
        add_to(sums, at + s * len(lanes), add_product(product, y, number(G, g + width + s)))
    add_to(sums, rest, add_product(add_product(zeros(lanes), top, e0), bottom, e1))
    add_to(sums, rest + len(lanes), add_squares(zeros(lanes), top, bottom))
    g0, g1 = number(G, g + width - 1), number(G, g + 2 * width - 1)
    rest += 2 * len(lanes)
    sums[rest] += g0 * e0 + g1 * e1
    sums[rest + 1] += g0 * g0 + g1 * g1
    sums[rest + 2] += g0 * (c00 * g0 + c01 * g1) + g1 * (c01 * g0 + c11 * g1)


@kernel()
def write(begin, end, pairs, of_pairs, sums, stride, size, blocks, diagonal, gradient):
    """Blocks begin ... end of pairs (row, column), diag(G'G) and the gradient of cameras, from their rows of sums.

    What a last column of a camera's own block would have, its last row has.
    """
    of_row, of_column = pairs
    width = blocks.shape[1]
    rest = _ROWS * ((width + _ROWS - 1) // _ROWS) * stride
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
