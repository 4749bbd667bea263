"""A front of the sparse factorisation, a dense matrix of which only the first rows are eliminated, in tiles (`tiles`).

    [ A11   .  ]     [ L11      ] [ L11' L21' ]
    [ A21  A22 ]  =  [ L21   I  ] [        U  ],     U = A22 - L21 L21'.

Rows that are eliminated here come first, then those of the boundary, both filled up to threes of strips: rows of zeros, with
ones on the diagonal of L11. L11 and L21 are one array of strips that all have the columns of L11; U another one, whose three
strips t have the columns up to their last row. Three strips are taken in turn by whoever is there, as in `tiles`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from initfree.data.tracks import Array, Index
from initfree.engine import threads
from initfree.engine.kernels import kernel
from initfree.engine.simd import aligned, subtract_products
from initfree.engine.tiles import (
    DONE,
    INDEFINITE,
    LANES,
    ONE,
    TAKEN,
    THREE,
    divide,
    factorise_tile,
    shared_out,
    substitute,
    substitute_back,
    substitute_corner,
    substitute_corner_back,
)
from initfree.engine.waiting import next_of, now, tell, wait_until

_WIDTH = len(LANES)
_ROWS = 3 * _WIDTH
"""of three strips"""


@dataclass(frozen=True)
class FrontLayout:
    """Where the numbers of a front are."""

    own: int
    """rows that are eliminated"""
    boundary: int

    @cached_property
    def filled(self) -> int:
        """Rows with which the boundary begins: the own ones, filled up."""
        return -(-self.own // _ROWS) * _ROWS

    @cached_property
    def rows(self) -> int:
        return self.filled + self._threes * _ROWS

    @cached_property
    def _threes(self) -> int:
        return -(-self.boundary // _ROWS)

    @cached_property
    def start(self) -> Index:
        """Of three strips of U, (threes + 1,)"""
        threes = np.arange(self._threes + 1)
        return _ROWS * _ROWS * (threes * (threes + 1) // 2)

    @property
    def flops(self) -> float:
        own, boundary = float(self.own), float(self.boundary)
        return own**3 / 3.0 + own**2 * boundary + own * boundary**2

    def row(self, place: Index) -> Index:
        """Of the own rows, and then the boundary's, numbered without what fills up."""
        return np.where(place < self.own, place, place + self.filled - self.own)

    @cached_property
    def kept(self) -> Index:
        """All rows but those that fill up, (own + boundary,)"""
        return self.row(np.arange(self.own + self.boundary))


class Front:
    """A front that is added up and eliminated many times; L11 and L21 stay for solutions, U is handed on."""

    def __init__(self, layout: FrontLayout) -> None:
        self.layout = layout
        self._L = aligned(layout.rows * layout.filled)
        self._reciprocal = np.empty(layout.filled)

    def begin(self, shift: Array) -> Array:
        """Zeros but for the shift (own,) on the diagonal; returns U."""
        at = self.layout
        self._L[:] = 0.0
        diagonal = np.arange(at.filled)
        place = diagonal // _WIDTH * _WIDTH * at.filled + _WIDTH * diagonal + diagonal % _WIDTH
        self._L[place] = 1.0
        self._L[place[: at.own]] = shift
        U = aligned(int(at.start[-1]))
        U[:] = 0.0
        return U

    def add_blocks(self, U: Array, numbers: Index, model: tuple[Index, Index, Index], local: Index, blocks: Array) -> None:
        """Blocks of camera pairs: their rows, columns, and `column`, slot s of camera k being in row local[column[k, s]]."""
        _add_blocks(numbers, *model, local, blocks, LANES, self.layout.filled, self.layout.start, self._L, U)

    def extend(self, U: Array, place: Index, inside: FrontLayout, update: Array) -> None:
        """U of a front inside, whose boundary's rows are these of ours, ascending."""
        mine = LANES, self.layout.filled, self.layout.start, self._L, U
        threads.run(_extend, inside.start, place, *mine, inside.start, update)

    def eliminate(self, U: Array) -> bool:
        """Whether what is eliminated is positive definite in floating point."""
        at = self.layout
        if not at.own:
            return True
        told = np.zeros(DONE + at.rows // _ROWS, dtype=np.int64)
        work = shared_out(at.flops / 2.0, at.rows // _ROWS)
        threads.run(_eliminate, work, LANES, at.filled, at.start, self._L, U, self._reciprocal, told)
        return not told[INDEFINITE]

    def forward(self, x: Array) -> Array:
        """L11^-1 x of the own rows, and the boundary's less L21 times that, (own + boundary,) or with several sides."""
        if x.ndim == 1:
            return self._substituted(_forward, x)
        own = self.layout.own
        L11, L21 = self.factors
        found = solve_triangular(L11, x[:own], lower=True, check_finite=False) if own else x[:own]
        return np.concatenate([found, x[own:] - L21 @ found])

    def backward(self, x: Array) -> Array:
        """L11'^-1 of the own rows of x less L21' times the boundary's, (own,) or with several sides."""
        own = self.layout.own
        if x.ndim == 1:
            return self._substituted(_backward, x)[:own]
        L11, L21 = self.factors
        found = x[:own] - L21.T @ x[own:]
        return solve_triangular(L11, found, lower=True, trans=1, check_finite=False) if own else found

    def _substituted(self, function: Callable[..., None], x: Array) -> Array:
        at = self.layout
        filled = np.zeros(at.rows)
        filled[at.kept] = x
        function(LANES, at.filled, self._L, self._reciprocal, filled)
        return filled[at.kept]

    @property
    def factors(self) -> tuple[Array, Array]:
        """L11, whose upper triangle is to be ignored, and L21, row by row."""
        at = self.layout
        strips = self._L.reshape(at.rows // _WIDTH, at.filled, _WIDTH)[:, : at.own]
        rows = np.ascontiguousarray(strips.transpose(0, 2, 1)).reshape(at.rows, at.own)
        return rows[: at.own], rows[at.filled : at.filled + at.boundary]


@kernel(inline="always")
def _add(high, low, value, lanes, own, start, L, U):
    """To the number in this row and column, of the lower triangle."""
    width = len(lanes)
    if low < own:
        L[(high // width * own + low) * width + high % width] += value
    else:
        row, rows = high - own, 3 * width
        three = row // rows
        strip = start[three] + (row // width - 3 * three) * width * rows * (three + 1)
        U[strip + (low - own) * width + row % width] += value


@kernel()
def _add_blocks(numbers, row, pair_column, column, local, blocks, lanes, own, start, L, U):
    slots = column.shape[1]
    for index in range(numbers.size):
        n = numbers[index]
        i, k = row[n], pair_column[n]
        for s in range(slots):
            p = local[column[i, s]]
            for c in range(slots):
                q = local[column[k, c]]
                if i != k or q <= p:
                    twice = 2.0 if i != k and p == q else 1.0
                    _add(max(p, q), min(p, q), twice * blocks[n, s, c], lanes, own, start, L, U)


@kernel()
def _extend(begin, end, place, lanes, own, start, L, U, update_start, update):
    """Three strips begin ... end of the update, column by column: what is side by side there mostly is so here."""
    width = len(lanes)
    for three in range(begin, end):
        columns = 3 * width * (three + 1)
        for strip in range(3):
            at = update_start[three] + strip * width * columns
            first = (3 * three + strip) * width
            last = min(first + width, place.size)
            for c in range(last):
                for r in range(max(first, c), last):
                    _add(place[r], place[c], update[at + width * c + r - first], lanes, own, start, L, U)


@kernel()
def _eliminate(_begin, _end, lanes, own, start, L, U, reciprocal, told):
    """Three strips after the other, as long as nobody else has taken them."""
    width = len(lanes)
    square, step, inside = width * width, width * own, own // width
    while True:
        three = next_of(told, TAKEN)
        first, rows = 3 * three, 3 * three * step
        if rows >= L.size:
            return
        for j in range(min(first, inside)):
            wait_until(told, DONE + j // 3, 1)
            by, tile = j * step, rows + j * square
            following = j + 1 < first and now(told, DONE + (j + 1) // 3) == 1
            ahead = by + step if following else by
            subtract_products(L, tile, step, L, rows, step, by, width * j, ahead, THREE, lanes)
            for i in range(3):
                divide(L, tile + i * step, by + j * square, reciprocal[width * j :], lanes)
        if first < inside:
            for j in range(first, first + 3):
                for i in range(j, first + 3):
                    tile, corner = i * step + j * square, j * step + j * square
                    subtract_products(L, tile, step, L, i * step, step, j * step, width * j, j * step, ONE, lanes)
                    if i == j:
                        factorise_tile(L, corner, reciprocal[width * j :], lanes, told)
                    else:
                        divide(L, tile, corner, reciprocal[width * j :], lanes)
        else:
            boundary = first - inside
            apart = square * (boundary + 3)
            for j in range(boundary + 3):
                if j < boundary:
                    wait_until(told, DONE + (inside + j) // 3, 1)
                by, tile = (inside + j) * step, start[boundary // 3] + j * square
                following = j + 1 < boundary and now(told, DONE + (inside + j + 1) // 3) == 1
                ahead = by + step if following else by
                subtract_products(U, tile, apart, L, rows, step, by, own, ahead, THREE, lanes)
        tell(told, DONE + three, 1)


@kernel()
def _forward(lanes, own, L, reciprocal, x):
    width = len(lanes)
    for strip in range(x.size // width):
        at, row = strip * width * own, strip * width
        substitute(L, at, 0, min(row, own), x, row, lanes)
        if row < own:
            substitute_corner(L, at + width * row, reciprocal, x, row, lanes)


@kernel()
def _backward(lanes, own, L, reciprocal, x):
    width = len(lanes)
    for strip in range(x.size // width - 1, -1, -1):
        at, row = strip * width * own, strip * width
        if row < own:
            substitute_corner_back(L, at + width * row, reciprocal, x, row, lanes)
        substitute_back(L, at, 0, min(row, own), x, row, lanes)
