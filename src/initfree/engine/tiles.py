"""A Cholesky factorisation in tiles, on all threads: of dense matrices, and of those that have zeros to begin rows with.

The lower triangle lies in strips of as many rows as a vector has numbers (`engine.simd`). A strip is a list of columns, each
a vector; as many of them as rows make a square tile. Rows come in an order in which most begin late (`engine.envelope`), and
strips, three by three, begin where the first of their rows does. For three strips at a time, left to right, a tile is

    L_ij = (A_ij - sum_k L_ik L_jk') L_jj'^-1,

its sum held in registers while it runs along both strips through memory as it lies there. LAPACK copies what it multiplies
and solves triangles apart, which at these sizes takes a third of its time.

Threads take three strips in turn. Strips that the next tile needs and that another thread has are waited for, tile by tile,
so all but the first begin at once. Whoever is there takes the next; the sums of a tile do not depend on who that is.
"""

import numpy as np

from initfree.data.tracks import Array, Index
from initfree.engine import threads
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.envelope import Envelope
from initfree.engine.kernels import kernel
from initfree.engine.simd import (
    LINE,
    WIDE,
    add_product,
    aligned,
    column_totals,
    difference,
    fetch_to_read,
    load,
    number,
    store,
    subtract_products,
    zeros,
)
from initfree.engine.waiting import next_of, now, tell, wait_until

LANES = (0,) * (8 if WIDE else 4)
"""numbers of a vector: three tiles' columns fit into the registers"""
THREE, ONE = (0,) * 3, (0,)
"""strips whose tiles are summed at once"""
_MULTIPLY_ADDS = 180
"""that count as a pass over one observation: dense matrices below 220 rows wake no thread"""
TAKEN, INDEFINITE, DONE = 0, 8, 16
"""in the numbers that threads tell each other: three strips taken, whether a pivot is not positive, and which are done"""


class TiledFactorisation:
    """A `factorisation.Factorisation` of the lower triangle, row by row from its first number on."""

    def __init__(
        self, pairs: CameraPairs, column: Index, size: int, lanes: tuple[int, ...] = LANES, order: Envelope | None = None
    ) -> None:
        """Rows in that of the cameras' pairs, if no other order is given."""
        width = len(lanes)
        order = pairs.envelope(column, size) if order is None else order
        column = order.position[column]
        self._lanes, self._position = lanes, order.position
        strips = -(-size // width)
        self._threes = -(-strips // 3)
        begin = np.minimum.reduceat(order.first, np.arange(0, size, 3 * width)) // width
        """column of tiles that three strips begin with, (threes,)"""
        last = np.minimum(3 * np.arange(self._threes) + 3, strips)
        length = width * width * (last - begin)
        bounds = np.concatenate([[0], np.cumsum(length * (last - 3 * np.arange(self._threes)))])
        self._flat = aligned(bounds[-1])
        strip = np.arange(strips)
        start = (bounds[:-1] - width * width * begin)[strip // 3] + length[strip // 3] * (strip % 3)
        """of column 0: the number in row p and column q is at start[p // width] + p % width + width q, if it is there"""
        self._strips = start, begin, length
        row = np.arange(strips * width)
        self._place = start[row // width] + row % width
        self._model = pairs.row, pairs.column, sides(pairs, column), column, self._place
        self._touching = _touching(pairs, column // (3 * width), self._threes)
        self._work = order.flops // 2
        self._shift, self._reciprocal = np.ones(len(row)), np.empty(len(row))
        self._told = np.zeros(DONE + self._threes, dtype=np.int64)

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        self._told[:] = 0
        self._shift[self._position] = shift  # rows that fill up the last strip have ones on the diagonal
        work = shared_out(self._work, self._threes)
        matrix = *self._touching, *self._model, blocks.reshape(-1), self._shift
        threads.run(_factorise, work, self._strips, self._lanes, matrix, self._flat, self._reciprocal, self._told)
        return not self._told[INDEFINITE]

    def solve(self, b: Array) -> Array:
        x = np.zeros(len(self._reciprocal))
        x[self._position] = b
        _substitute(self._strips, self._lanes, self._flat, self._reciprocal, x)
        return x[self._position]

    @property
    def factor(self) -> Array:
        """L, rows in the order of the envelope, (size, size)"""
        size = len(self._position)
        p, q = np.tril_indices(size)
        width = len(self._lanes)
        inside = q >= width * self._strips[1][p // (3 * width)]
        p, q = p[inside], q[inside]
        L = np.zeros((size, size))
        L[p, q] = self._flat[self._place[p] + len(self._lanes) * q]
        return L


def shared_out(multiply_adds: float, threes: int) -> Index:
    """For `threads.run`. Parts are there for threads to begin with: one may find nothing left to do, or all of it."""
    parts = min(threads.free_threads(), threes)
    return (np.arange(parts + 1) * multiply_adds / (parts * _MULTIPLY_ADDS)).astype(np.int64)


def _touching(pairs: CameraPairs, three: Index, threes: int) -> tuple[Index, Index]:
    """Pairs whose blocks may have numbers in each three strips, those of three strips t at ptr[t]:ptr[t + 1]. Slot s of
    camera k is in three[k, s]."""
    another = np.ones(three.shape, dtype=bool)
    another[:, 1:] = three[:, 1:] != three[:, :-1]  # most slots of a camera are side by side
    lowest = three.min(axis=1)
    later = np.maximum(lowest[pairs.row], lowest[pairs.column])
    keys = []
    for camera in (pairs.row, pairs.column):
        for s in range(three.shape[1]):
            numbers = np.flatnonzero(another[camera, s] & (three[camera, s] >= later))
            keys.append(three[camera[numbers], s] * len(pairs) + numbers)
    found = np.unique(np.concatenate(keys))
    return np.searchsorted(found, np.arange(threes + 1) * len(pairs)), found % len(pairs)


def sides(pairs: CameraPairs, column: Index) -> Index:
    """Of blocks whose columns are side by side: 1 where all of their rows come after these, in the lower triangle, -1 where
    rows and columns are to be exchanged for that; 0 of others. (pairs,)"""
    straight = (np.diff(column, axis=1) == 1).all(axis=1)
    low, high = column.min(axis=1), column.max(axis=1)
    after = straight[pairs.column] & (low[pairs.row] > high[pairs.column])
    before = straight[pairs.row] & (low[pairs.column] > high[pairs.row])
    return after.astype(np.int64) - before


@kernel(strict=True)
def add_blocks(numbers, row, pair_column, side, column, place, first, last, width, blocks, flat):
    """Add blocks of camera pairs, flat, to rows first ... last of a lower triangle: slot s of camera k is in row
    column[k, s], which cameras may share, and a row's number in column q at place[row] + width q."""
    slots = column.shape[1]
    for index in range(numbers.size):
        n = numbers[index]
        ahead = numbers[min(index + 2, numbers.size - 1)] * slots * slots  # another core may have written it
        for c in range(0, slots * slots, LINE):
            fetch_to_read(blocks, ahead + c)
        i, k, by_row, by_column = row[n], pair_column[n], slots, np.int64(1)
        if side[n] < 0:
            i, k, by_row, by_column = k, i, by_column, by_row
        for s in range(slots):
            p, block = column[i, s], n * slots * slots + s * by_row
            if side[n] == 0:
                for c in range(slots):
                    q = column[k, c]
                    high, low = max(p, q), min(p, q)
                    if first <= high < last and (i != k or p >= q):
                        twice = 2.0 if i != k and p == q else 1.0
                        flat[place[high] + width * low] += twice * blocks[block + c]
            elif first <= p < last:
                at = place[p] + width * column[k, 0]
                for c in range(slots):  # unsigned: none of them counts from the end
                    flat[np.uint64(at + width * c)] += blocks[np.uint64(block + c * by_column)]


@kernel(inline="always")
def divide(flat, tile, corner, reciprocal, lanes):
    """The tile times L_jj'^-1, L_jj at `corner`, the reciprocals of whose diagonal are given."""
    width = len(lanes)
    for c in range(width):
        v = add_product(zeros(lanes), load(flat, tile + width * c, lanes), number(reciprocal, c))
        store(flat, tile + width * c, v)
        for d in range(c + 1, width):
            at = tile + width * d
            store(flat, at, add_product(load(flat, at, lanes), v, -number(flat, corner + width * c + d)))


@kernel(inline="always")
def factorise_tile(flat, corner, reciprocal, lanes, told):
    """The tile on the diagonal becomes L_jj."""
    width = len(lanes)
    for c in range(width):
        pivot = number(flat, corner + width * c + c)
        if not 0.0 < pivot < np.inf:
            told[INDEFINITE] = 1
        reciprocal[c] = 1.0 / np.sqrt(pivot)
        v = add_product(zeros(lanes), load(flat, corner + width * c, lanes), reciprocal[c])
        store(flat, corner + width * c, v)
        for d in range(c + 1, width):
            at = corner + width * d
            store(flat, at, add_product(load(flat, at, lanes), v, -number(flat, corner + width * c + d)))


@kernel()
def _factorise(_begin, _end, strips, lanes, matrix, flat, reciprocal, told):
    """Three strips after the other, as long as nobody else has taken them: filled from the matrix, then factorised."""
    ptr, touching, row, pair_column, side, column, place, blocks, shift = matrix
    start, begin, length = strips
    width = len(lanes)
    square = width * width
    while True:
        three = next_of(told, TAKEN)
        first, last = 3 * three, min(3 * three + 3, start.size)
        if first >= start.size:
            return
        step, before = length[three], begin[three] * square
        for i in range(first, last):
            flat[start[i] + before : start[i] + (i + 1) * square] = 0.0
        numbers = touching[ptr[three] : ptr[three + 1]]
        rows = width * first, width * last
        add_blocks(numbers, row, pair_column, side, column, place, *rows, width, blocks, flat)
        for p in range(width * first, width * last):
            flat[place[p] + width * p] += shift[p]
        for j in range(begin[three], first):
            wait_until(told, DONE + j // 3, 1)
            corner, rows, since = start[j] + j * square, start[first], max(begin[three], begin[j // 3])
            by, count = start[j] + since * square, width * (j - since)
            # The next strip comes from another core's cache meanwhile, if nobody writes it any more.
            following = j + 1 < first and now(told, DONE + (j + 1) // 3) == 1
            ahead = start[j + 1] + since * square if following else by
            if last - first == 3:
                tile, own = rows + j * square, rows + since * square
                subtract_products(flat, tile, step, flat, own, step, by, count, ahead, THREE, lanes)
            for i in range(first, last):
                rows = start[i]
                if last - first < 3:
                    tile, own = rows + j * square, rows + since * square
                    subtract_products(flat, tile, step, flat, own, step, by, count, by, ONE, lanes)
                divide(flat, rows + j * square, corner, reciprocal[width * j :], lanes)
        for j in range(first, last):
            for i in range(j, last):
                corner, rows, by = start[j] + j * square, start[i], start[j] + before
                count = width * (j - begin[three])
                subtract_products(flat, rows + j * square, step, flat, rows + before, step, by, count, by, ONE, lanes)
                if i == j:
                    factorise_tile(flat, corner, reciprocal[width * j :], lanes, told)
                else:
                    divide(flat, rows + j * square, corner, reciprocal[width * j :], lanes)
        tell(told, DONE + three, 1)


@kernel(inline="always")
def substitute(flat, strip, since, corner, x, own, lanes):
    """L x = b, of the rows of a strip: x[own:] less its columns since ... corner times x; without what is at its corner."""
    width = len(lanes)
    s0, s1, s2, s3 = load(x, own, lanes), zeros(lanes), zeros(lanes), zeros(lanes)
    for k in range(since, corner, 4):  # tiles have four columns or eight
        s0 = add_product(s0, load(flat, strip + width * k, lanes), -number(x, k))
        s1 = add_product(s1, load(flat, strip + width * (k + 1), lanes), -number(x, k + 1))
        s2 = add_product(s2, load(flat, strip + width * (k + 2), lanes), -number(x, k + 2))
        s3 = add_product(s3, load(flat, strip + width * (k + 3), lanes), -number(x, k + 3))
    store(x, own, add_product(add_product(s0, s1, 1.0), add_product(s2, s3, 1.0), 1.0))


@kernel(inline="always")
def substitute_corner(flat, corner, reciprocal, x, own, lanes):
    """L_jj x = b."""
    width = len(lanes)
    for c in range(width):
        x[own + c] *= reciprocal[own + c]
        for d in range(c + 1, width):
            x[own + d] -= flat[corner + width * c + d] * x[own + c]


@kernel(inline="always")
def substitute_back(flat, strip, since, corner, x, own, lanes):
    """L'x = b, of the rows of a strip that are known: all that columns since ... corner take from x before them."""
    width = len(lanes)
    v = load(x, own, lanes)
    for k in range(since, corner, width):
        store(x, k, difference(load(x, k, lanes), column_totals(v, flat, strip + width * k)))


@kernel(inline="always")
def substitute_corner_back(flat, corner, reciprocal, x, own, lanes):
    """L_jj'x = b."""
    width = len(lanes)
    for c in range(width - 1, -1, -1):
        for d in range(c + 1, width):
            x[own + c] -= flat[corner + width * c + d] * x[own + d]
        x[own + c] *= reciprocal[own + c]


@kernel()
def _substitute(strips, lanes, flat, reciprocal, x):
    """L L'x = b, x in place of b."""
    start, begin, _ = strips
    width = len(lanes)
    for strip in range(start.size):
        at, own = start[strip], strip * width
        substitute(flat, at, width * begin[strip // 3], own, x, own, lanes)
        substitute_corner(flat, at + width * own, reciprocal, x, own, lanes)
    for strip in range(start.size - 1, -1, -1):
        at, own = start[strip], strip * width
        substitute_corner_back(flat, at + width * own, reciprocal, x, own, lanes)
        substitute_back(flat, at, width * begin[strip // 3], own, x, own, lanes)
