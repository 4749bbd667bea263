"""The reduced system of metric cameras from what each observation left (`kernels.condense`).

Y (3 x width of every observation) and G (2 x width) are flat arrays, row by row. Vectors read over the end of a row, and
what they find there ends in numbers that nobody reads. A width of 9, one more than a vector, has its last column by itself.
"""

import numpy as np

from initfree.engine.kernels import kernel
from initfree.engine.simd import add_product, add_squares, add_to, load, number, zeros

_ROWS = 3
"""of a block that are summed at once: they and what they are summed from fit into the registers of any machine"""


def lanes_for(width: int) -> tuple[int, ...]:
    """Vectors for rows of `width` numbers, or all but the last: multiples of 8, LLVM moves those of 12 through memory."""
    return (0,) * (8 * ((width + 6) // 8))


@kernel()
def couple(begin, end, shared, lanes, width, Y, blocks):
    """Blocks begin ... end of the pairs of different cameras, -sum Y_a'Y_b, (pairs, width, width), as in `engine.blocks`."""
    ptr, later, earlier = shared
    ranges = ptr.shape[0]
    stride = len(lanes)
    rows = _ROWS * ((width + _ROWS - 1) // _ROWS)
    size = (rows + 2) * stride
    step = 1 if ranges == 1 else end - begin
    sums = np.empty(step * size)
    for start in range(begin, end, step):
        sums[:] = 0.0
        for t in range(ranges):
            for n in range(start, start + step):
                first, last = ptr[t, n], ptr[t, n + 1]
                at = (n - start) * size
                for row in range(0, rows, _ROWS):
                    _add_rows(first, last, later, earlier, lanes, width, row, Y, sums, at + row * stride)
                if width > stride:
                    _add_column(first, last, later, earlier, lanes, width, Y, sums, at + rows * stride)
        for n in range(start, start + step):
            if ranges > 1 or ptr[0, n] < ptr[0, n + 1]:
                _write(sums, (n - start) * size, stride, rows, blocks[n])


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


@kernel(strict=True)
def _write(sums, at, stride, rows, block):
    width = block.shape[0]
    for s in range(width):
        for c in range(min(width, stride)):
            block[s, c] = -sums[at + s * stride + c]
        if width > stride:
            block[s, width - 1] = -sums[at + rows * stride + s]


@kernel()
def own(begin, end, tracks, ranges, lanes, width, G, C, e, place, blocks, diagonal, gradient):
    """Blocks of cameras begin ... end with themselves, sum G_a'C_a G_a, at blocks[place[i]]; diag(G'G); G'e.

    tracks is (camera_ptr, by_camera); cameras take turns on ranges of observations, as in `engine.blocks`. What a last
    column would have, the last row has.
    """
    camera_ptr, by_camera = tracks
    count = end - begin
    stride = len(lanes)
    rows = _ROWS * ((width + _ROWS - 1) // _ROWS)
    size = (rows + 2) * stride + 3
    sums = np.zeros(count * size)
    after = camera_ptr[begin:end].copy()
    for visit in range(ranges * count):
        turn, i = visit // count, begin + visit % count
        until = by_camera.size * (turn + 1) // ranges
        first = after[i - begin]
        last = first
        while last < camera_ptr[i + 1] and number(by_camera, last) < until:
            last += 1
        after[i - begin] = last
        at = (i - begin) * size
        for row in range(0, rows, _ROWS):
            _add_squares(first, last, by_camera, lanes, width, row, G, C, sums, at + row * stride)
        _add_slopes(first, last, by_camera, lanes, width, G, C, e, sums, at + rows * stride)
    for i in range(begin, end):
        at = (i - begin) * size
        rest = at + rows * stride
        for s in range(min(width, stride)):
            gradient[i, s] = sums[rest + s]
            diagonal[i, s] = sums[rest + stride + s]
            for c in range(width):
                blocks[place[i], c, s] = sums[at + c * stride + s]
        if width > stride:
            rest += 2 * stride
            gradient[i, width - 1], diagonal[i, width - 1] = sums[rest], sums[rest + 1]
            blocks[place[i], width - 1, width - 1] = sums[rest + 2]
            for s in range(width - 1):
                blocks[place[i], s, width - 1] = blocks[place[i], width - 1, s]


@kernel(inline="always")
def _add_squares(first, last, by_camera, lanes, width, row, G, C, sums, at):
    """Three rows of sum G'C G."""
    s0, s1, s2 = zeros(lanes), zeros(lanes), zeros(lanes)
    for index in range(first, last):
        a = number(by_camera, index)
        g = 2 * width * a
        top, bottom = load(G, g, lanes), load(G, g + width, lanes)
        c01 = number(C, 3 * a + 1)
        x = add_product(add_product(zeros(lanes), top, number(C, 3 * a)), bottom, c01)
        y = add_product(add_product(zeros(lanes), top, c01), bottom, number(C, 3 * a + 2))
        g += row
        s0 = add_product(add_product(s0, x, number(G, g)), y, number(G, g + width))
        s1 = add_product(add_product(s1, x, number(G, g + 1)), y, number(G, g + width + 1))
        s2 = add_product(add_product(s2, x, number(G, g + 2)), y, number(G, g + width + 2))
    add_to(sums, at, s0)
    add_to(sums, at + len(lanes), s1)
    add_to(sums, at + 2 * len(lanes), s2)


@kernel(inline="always")
def _add_slopes(first, last, by_camera, lanes, width, G, C, e, sums, at):
    """G'e and diag(G'G); of a last column these two, and its number of G'C G, by themselves."""
    slope, square = zeros(lanes), zeros(lanes)
    last_slope = last_square = corner = 0.0
    for index in range(first, last):
        a = number(by_camera, index)
        g = 2 * width * a
        e0, e1 = number(e, 2 * a), number(e, 2 * a + 1)
        top, bottom = load(G, g, lanes), load(G, g + width, lanes)
        slope = add_product(add_product(slope, top, e0), bottom, e1)
        square = add_squares(square, top, bottom)
        g0, g1 = number(G, g + width - 1), number(G, g + 2 * width - 1)
        last_slope += g0 * e0 + g1 * e1
        last_square += g0 * g0 + g1 * g1
        c01 = number(C, 3 * a + 1)
        corner += g0 * (number(C, 3 * a) * g0 + c01 * g1) + g1 * (c01 * g0 + number(C, 3 * a + 2) * g1)
    add_to(sums, at, slope)
    add_to(sums, at + len(lanes), square)
    at += 2 * len(lanes)
    sums[at] += last_slope
    sums[at + 1] += last_square
    sums[at + 2] += corner
