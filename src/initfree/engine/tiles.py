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

from initfree.engine import threads
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
from initfree.engine.waiting import next_of, now, pause, tell
from initfree.tracks import Array, Index

LANES = (0,) * (8 if get_host_cpu_features().get("avx512f") else 4)
"""numbers of a vector: three tiles' columns fit into the registers"""
_THREE, _ONE = (0,) * 3, (0,)
_MULTIPLY_ADDS = 500
"""that take as long as a pass over one observation: small matrices wake no thread"""
_TAKEN, _INDEFINITE, _DONE = 0, 8, 16
"""in the numbers that threads tell each other: three strips taken, whether a pivot is not positive, and which are done"""


class Tiles:
    """A symmetric matrix, and in its place its factor."""

    def __init__(self, size: int, lanes: tuple[int, ...] = LANES) -> None:
        self.size, self.lanes = size, lanes
        width = len(lanes)
        self._strips = -(-size // width)
        self._stride = self._strips * width * width
        self.flat = aligned(self._strips * self._stride)
        """the number in row p and column q <= p is at place(p) + len(lanes) q"""
        row = np.arange(self._strips * width)
        self.diagonal: Index = self.place(row) + width * row
        """where the diagonal is, rows that fill up the last strip included"""
        self._reciprocal = np.empty(len(row))
        self._told = np.zeros(_DONE + -(-self._strips // 3), dtype=np.int64)

    def place(self, row: Index) -> Index:
        """Where the first column of each row is; the next one is `len(lanes)` numbers on."""
        width = len(self.lanes)
        return row // width * self._stride + row % width

    def clear(self) -> None:
        """All zeros, but ones on the diagonal of rows that fill up the last strip."""
        _clear(self._strips, self.lanes, self.flat)
        self.flat[self.diagonal[self.size :]] = 1.0

    def factorise(self) -> bool:
        """False where the matrix is not positive definite."""
        self._told[:] = 0
        work = np.arange(threads.threads() + 1) * (self.size**3 // 6 // _MULTIPLY_ADDS)
        threads.run(_factorise, work, self._strips, self.lanes, self.flat, self._reciprocal, self._told)
        return not self._told[_INDEFINITE]

    def solve(self, b: Array) -> Array:
        """Of the matrix that was factorised."""
        x = np.zeros(len(self._reciprocal))
        x[: self.size] = b
        _substitute(self._strips, self.lanes, self.flat, self._reciprocal, x)
        return x[: self.size]


@kernel()
def _clear(strips, lanes, flat):
    width = len(lanes)
    stride = strips * width * width
    for strip in range(strips):
        flat[strip * stride : strip * stride + (strip + 1) * width * width] = 0.0


@kernel()
def scatter(begin, end, row, pair_column, column, place, width, blocks, flat):
    """Add blocks begin ... end of camera pairs to a lower triangle: slot s of camera k is in row column[k, s], which cameras
    may share, and that row's number in column q at place[k, s] + width q."""
    slots = column.shape[1]
    for n in range(begin, end):
        i, k = row[n], pair_column[n]
        after = column[i].min() > column[k].max()
        for s in range(slots):
            p = column[i, s]
            for c in range(slots):
                q = column[k, c]
                if after or (p >= q and (i == k or p > q)):
                    flat[place[i, s] + width * q] += blocks[n, s, c]
                elif i != k:
                    flat[place[k, c] + width * p] += 2.0 * blocks[n, s, c] if p == q else blocks[n, s, c]


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
def _factorise(_begin, _end, strips, lanes, flat, reciprocal, told):
    """Three strips after the other, as long as nobody else has taken them."""
    width = len(lanes)
    square = width * width
    stride = strips * square
    while True:
        three = next_of(told, _TAKEN)
        first, last = 3 * three, min(3 * three + 3, strips)
        if first >= strips:
            return
        for j in range(first):
            while now(told, _DONE + j // 3) == 0:
                pause()
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
