"""A dense Cholesky factorisation in tiles, on all threads: for matrices of up to some thousand rows.

The lower triangle lies in strips of as many rows as a vector has numbers (`engine.simd`). A strip is a list of columns, each
a vector; as many of them as rows make a square tile. For three strips at a time, left to right, a tile is

    L_ij = (A_ij - sum_k L_ik L_jk') L_jj'^-1,

its sum held in registers while it runs along both strips through memory as it lies there. LAPACK copies what it multiplies
and solves triangles apart, which at these sizes takes a third of its time.

Threads take three strips in turn. Strips that the next tile needs and that another thread has are waited for, tile by tile,
so all but the first begin at once. Whoever is there takes the next; the sums of a tile do not depend on who that is.
"""

import numpy as np
from llvmlite.binding import get_host_cpu_features
from numba.core import config

from initfree.engine import threads
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.kernels import kernel
from initfree.engine.simd import (
    add_product,
    add_products,
    aligned,
    load,
    number,
    store,
    subtract_products,
    total,
    zeros,
)
from initfree.engine.waiting import next_of, tell, wait_until
from initfree.tracks import Array, Index

_OTHER = any(vars(config).get(name) for name in ("CPU_NAME", "CPU_FEATURES"))
"""whether Numba is told to compile for another machine than this"""
LANES = (0,) * (8 if get_host_cpu_features().get("avx512f") and not _OTHER else 4)
"""numbers of a vector: three tiles' columns fit into the registers, of which there are 32 of eight numbers, or 16 of four"""
_THREE, _ONE = (0,) * 3, (0,)
_MULTIPLY_ADDS = 250
"""that count as a pass over one observation: matrices below 250 rows wake no thread"""
_TAKEN, _INDEFINITE, _DONE = 0, 8, 16
"""in the numbers that threads tell each other: three strips taken, whether a pivot is not positive, and which are done"""


class DenseFactorisation:
    """A `factorisation.Factorisation` of the whole matrix."""

    def __init__(self, pairs: CameraPairs, column: Index, size: int, lanes: tuple[int, ...] = LANES) -> None:
        width = len(lanes)
        self._size, self._lanes = size, lanes
        self._strips = -(-size // width)
        self._threes = -(-self._strips // 3)
        stride = self._strips * width * width
        self._flat = aligned(self._strips * stride)
        """the number in row p and column q <= p is at p // width * stride + p % width + width q"""
        row = np.arange(self._strips * width)
        self._place = row // width * stride + row % width
        self._model = pairs.row, pairs.column, column, self._place
        self._touching = _touching(pairs, column // (3 * width), self._threes)
        self._shift, self._reciprocal = np.ones(len(row)), np.empty(len(row))
        self._told = np.zeros(_DONE + self._threes, dtype=np.int64)

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        self._told[:] = 0
        self._shift[: self._size] = shift  # rows that fill up the last strip have ones on the diagonal
        # Parts are there for threads to begin with: one may find nothing left to do, or all of it.
        parts = min(threads.free_threads(), self._threes)
        work = np.arange(parts + 1) * (self._size**3 // 6 // _MULTIPLY_ADDS) // parts
        matrix = *self._touching, *self._model, blocks, self._shift
        threads.run(_factorise, work, self._strips, self._lanes, matrix, self._flat, self._reciprocal, self._told)
        return not self._told[_INDEFINITE]

    def solve(self, b: Array) -> Array:
        x = np.zeros(len(self._reciprocal))
        x[: self._size] = b
        _substitute(self._strips, self._lanes, self._flat, self._reciprocal, x)
        return x[: self._size]

    @property
    def factor(self) -> Array:
        """L, (size, size)"""
        p, q = np.tril_indices(self._size)
        L = np.zeros((self._size, self._size))
        L[p, q] = self._flat[self._place[p] + len(self._lanes) * q]
        return L


def _touching(pairs: CameraPairs, three: Index, threes: int) -> tuple[Index, Index]:
    """Pairs whose blocks have numbers in each three strips, those of three strips t at ptr[t]:ptr[t + 1]. Slot s of camera k
    is in three[k, s]."""
    slots = np.unique(three, axis=1).T  # most slots of a camera are side by side
    later = [np.maximum(one[pairs.row], other[pairs.column]) for one in slots for other in slots]
    keys = np.unique(np.stack(later) * len(pairs) + np.arange(len(pairs)))
    return np.searchsorted(keys, np.arange(threes + 1) * len(pairs)), keys % len(pairs)


@kernel(strict=True)
def add_blocks(numbers, row, pair_column, column, place, first, last, width, blocks, flat):
    """Add blocks of camera pairs to rows first ... last of a lower triangle: slot s of camera k is in row column[k, s],
    which cameras may share, and a row's number in column q at place[row] + width q."""
    slots = column.shape[1]
    for index in range(numbers.size):
        n = numbers[index]
        i, k = row[n], pair_column[n]
        lowest, highest, other = column[i, 0], column[i, 0], column[k, 0]
        for s in range(slots):
            p = column[i, s]
            lowest, highest, other = min(lowest, p), max(highest, p), max(other, column[k, s])
        inside = lowest > other and lowest >= first and highest < last
        for c in range(slots):
            q = column[k, c]
            for s in range(slots if inside else 0):
                flat[place[column[i, s]] + width * q] += blocks[n, s, c]
            for s in range(0 if inside else slots):
                p = column[i, s]
                high, low = max(p, q), min(p, q)
                if first <= high < last and (i != k or p >= q):
                    twice = i != k and p == q
                    flat[place[high] + width * low] += 2.0 * blocks[n, s, c] if twice else blocks[n, s, c]


@kernel(inline="always")
def _divide(flat, tile, corner, reciprocal, lanes):
    """The tile times L_jj'^-1, L_jj at `corner`, the reciprocals of whose diagonal are given."""
    width = len(lanes)
    for c in range(width):
        v = add_product(zeros(lanes), load(flat, tile + width * c, lanes), number(reciprocal, c))
        store(flat, tile + width * c, v)
        for d in range(c + 1, width):
            at = tile + width * d
            store(flat, at, add_product(load(flat, at, lanes), v, -number(flat, corner + width * c + d)))


@kernel(inline="always")
def _factorise_tile(flat, corner, reciprocal, lanes, told):
    """The tile on the diagonal becomes L_jj."""
    width = len(lanes)
    for c in range(width):
        pivot = number(flat, corner + width * c + c)
        if not pivot > 0.0:
            told[_INDEFINITE] = 1
        reciprocal[c] = 1.0 / np.sqrt(pivot)
        v = add_product(zeros(lanes), load(flat, corner + width * c, lanes), reciprocal[c])
        store(flat, corner + width * c, v)
        for d in range(c + 1, width):
            at = corner + width * d
            store(flat, at, add_product(load(flat, at, lanes), v, -number(flat, corner + width * c + d)))


@kernel()
def _factorise(_begin, _end, strips, lanes, matrix, flat, reciprocal, told):
    """Three strips after the other, as long as nobody else has taken them: filled from the matrix, then factorised."""
    ptr, touching, row, pair_column, column, place, blocks, shift = matrix
    width = len(lanes)
    square = width * width
    stride = strips * square
    while True:
        three = next_of(told, _TAKEN)
        first, last = 3 * three, min(3 * three + 3, strips)
        if first >= strips:
            return
        for i in range(first, last):
            flat[i * stride : i * stride + (i + 1) * square] = 0.0
        numbers = touching[ptr[three] : ptr[three + 1]]
        add_blocks(numbers, row, pair_column, column, place, width * first, width * last, width, blocks, flat)
        for p in range(width * first, width * last):
            flat[place[p] + width * p] += shift[p]
        for j in range(first):
            wait_until(told, _DONE + j // 3, 1)
            corner, rows = j * stride + j * square, first * stride
            if last - first == 3:
                subtract_products(flat, rows + j * square, rows, stride, j * stride, width * j, _THREE, lanes)
            for i in range(first, last):
                rows = i * stride
                if last - first < 3:
                    subtract_products(flat, rows + j * square, rows, stride, j * stride, width * j, _ONE, lanes)
                _divide(flat, rows + j * square, corner, reciprocal[width * j :], lanes)
        for j in range(first, last):
            for i in range(j, last):
                corner, rows = j * stride + j * square, i * stride
                subtract_products(flat, rows + j * square, rows, stride, j * stride, width * j, _ONE, lanes)
                if i == j:
                    _factorise_tile(flat, corner, reciprocal[width * j :], lanes, told)
                else:
                    _divide(flat, rows + j * square, corner, reciprocal[width * j :], lanes)
        tell(told, _DONE + three, 1)


@kernel()
def _substitute(strips, lanes, flat, reciprocal, x):
    """L L'x = b, x in place of b."""
    width = len(lanes)
    stride = strips * width * width
    for strip in range(strips):
        at, own = strip * stride, strip * width
        v, w = load(x, own, lanes), zeros(lanes)
        for k in range(0, own, 2):  # strips have an even number of rows
            v = add_product(v, load(flat, at + width * k, lanes), -number(x, k))
            w = add_product(w, load(flat, at + width * k + width, lanes), -number(x, k + 1))
        store(x, own, add_product(v, w, 1.0))
        for c in range(width):
            x[own + c] *= reciprocal[own + c]
            for d in range(c + 1, width):
                x[own + d] -= flat[at + width * (own + c) + d] * x[own + c]
    for strip in range(strips - 1, -1, -1):
        at, own = strip * stride, strip * width
        for c in range(width - 1, -1, -1):
            for d in range(c + 1, width):
                x[own + c] -= flat[at + width * (own + c) + d] * x[own + d]
            x[own + c] *= reciprocal[own + c]
        v = load(x, own, lanes)
        for k in range(own):
            x[k] -= total(add_products(zeros(lanes), v, load(flat, at + width * k, lanes)))
