"""A block-sparse Cholesky factorisation: the multifrontal method on a nested dissection (Duff and Reid 1983).

The matrix of a part and of what it touches outside (its front) is small and dense. In the order of the tree, inside out,

    [ A11   .  ]     [ L11      ] [ L11' L21' ]
    [ A21  A22 ]  =  [ L21   I  ] [        U  ],     U = A22 - L21 L21',

LAPACK factorises what the part owns (1); U is added into the front of the part around it.

Parts that do not touch each other are eliminated side by side; of the few outermost ones, which all others lead to, threads
share panels of rows (`lapack`).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csr_array

from initfree.data.tracks import Array, Index, Tracks
from initfree.engine import threads
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.dissection import Node
from initfree.engine.kernels import kernel
from initfree.engine.lapack import cholesky, divide, product, subtract_square

_SIDE_BY_SIDE = 1.0 / 16.0
"""Share of all multiply-adds up to which a part and what is inside it are eliminated by one thread"""
_UNIT = 1e4
"""Multiply-adds that `threads.run` counts as one: small systems wake no thread"""
(_trtrs,) = get_lapack_funcs(("trtrs",), dtype=np.float64)


@dataclass(frozen=True)
class _Front:
    cameras: Index
    """Cameras that are eliminated here"""
    own: Index
    """Rows of the matrix that are eliminated here"""
    boundary: Index
    """Rows that these touch and that are eliminated later, in the order in which they are"""
    pairs: Index
    """Camera pairs whose blocks are added here: one of the two cameras is eliminated here, none before"""
    outside: int
    """Number of the front around this one, -1 for the last"""
    place: Index
    """Where the boundary stands in the front around: its own rows first, then its boundary"""

    @property
    def flops(self) -> float:
        own, boundary = float(len(self.own)), float(len(self.boundary))
        return own**3 / 3.0 + own**2 * boundary + own * boundary**2


class SparseFactorisation:
    """A `factorisation.Factorisation` in memory and time that grow with what the dissection leaves to fill in."""

    def __init__(self, pairs: CameraPairs, column: Index, size: int) -> None:
        self._pairs, self._column, self._size = pairs, column, size
        self._fronts = _analyse(pairs, column, size)
        self._inside = _numbers_inside(self._fronts)
        self._trees, self._outer = _side_by_side(self._fronts)
        work = [sum(front.flops for front in self._fronts[first:last]) for first, last in self._trees]
        self._work = np.concatenate([[0], np.cumsum(np.array(work) / _UNIT)]).astype(np.int64)
        self._factors: list[tuple[Array, Array]] = [(_NOTHING, _NOTHING)] * len(self._fronts)
        self._definite = False
        """whether they are those of a matrix"""

    @property
    def flops(self) -> float:
        """Multiply-adds of one factorisation."""
        return sum(front.flops for front in self._fronts)

    @property
    def fronts(self) -> int:
        return len(self._fronts)

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        shift = np.broadcast_to(np.asarray(shift, dtype=np.float64), (self._size,))
        updates: dict[int, Array] = {}
        definite: list[bool] = []

        def side_by_side(first: int, last: int) -> None:
            local = np.empty(self._size, dtype=np.int64)
            with threads.alone():
                for begin, end in self._trees[first:last]:
                    definite.append(all(self._eliminate(n, blocks, shift, updates, local) for n in range(begin, end)))

        self._definite = False
        threads.run(side_by_side, self._work)
        local = np.empty(self._size, dtype=np.int64)
        outer = (self._eliminate(n, blocks, shift, updates, local) for n in self._outer)
        self._definite = all(definite) and all(outer)
        return self._definite

    def _eliminate(self, number: int, blocks: Array, shift: Array, updates: dict[int, Array], local: Index) -> bool:
        """Factorise a front, those inside it being done, and leave its update; False where it is not positive definite."""
        front = self._fronts[number]
        own, boundary = len(front.own), len(front.boundary)
        L11, L21 = self._factors[number]
        if len(L11) != own or L21.shape != (boundary, own):
            L11, L21 = self._factors[number] = np.empty((own, own)), np.empty((boundary, own))
        L11[:], L21[:] = 0.0, 0.0
        U = np.zeros((boundary, boundary))
        local[front.own] = np.arange(own)
        local[front.boundary] = np.arange(own, own + boundary)
        _add_blocks(front.pairs, self._pairs.row, self._pairs.column, self._column, blocks, local, L11, L21, U)
        for child in self._inside[number]:
            place = self._fronts[child].place
            triangle = np.arange(len(place) + 1) * np.arange(1, len(place) + 2) // 2
            threads.run(_extend, triangle, place, updates.pop(child), L11, L21, U)
        L11[np.arange(own), np.arange(own)] += shift[front.own]
        if not cholesky(L11):
            return False
        if boundary:
            divide(L21, L11)
            subtract_square(U, L21)
            updates[number] = U
        return True

    def solve(self, b: Array) -> Array:
        """Of several right sides too, (size, sides)."""
        self._require_factors()
        x = np.array(b, dtype=np.float64)
        # LAPACK reads columns first: our lower triangles are the upper ones of transposes.
        for front, (L11, L21) in zip(self._fronts, self._factors, strict=True):
            if len(front.own):
                x[front.own], _ = _trtrs(L11.T, x[front.own], lower=0, trans=1)
                x[front.boundary] -= L21 @ x[front.own]
        for front, (L11, L21) in zip(reversed(self._fronts), reversed(self._factors), strict=True):
            if len(front.own):
                x[front.own], _ = _trtrs(L11.T, x[front.own] - L21.T @ x[front.boundary], lower=0)
        return x

    def _require_factors(self) -> None:
        if not self._definite:
            raise ValueError("there is no factorisation: the matrix was not positive definite, or not factorised")

    def inverse_blocks(self) -> Array:
        """(cameras, slots, slots): the cameras' own blocks of the inverse Z of the matrix last factorised.

        From the outermost front inwards (Takahashi and others 1973), with K = L21 L11^-1, Z22 known from the front around:
        Z21 = -Z22 K and Z11 = L11^-T L11^-1 + K' Z22 K. That takes about as long as two factorisations, and no column of Z.
        """
        self._require_factors()
        width = self._column.shape[1]
        result = np.empty((len(self._column), width, width))
        waiting = [len(inside) for inside in self._inside]
        known: dict[int, Array] = {}
        local = np.empty(self._size, dtype=np.int64)
        for number in reversed(self._outer):
            self._invert(number, known, waiting, result, local)
        # What several trees need stays until all of them are done.
        outermost = dict(known)

        def side_by_side(first: int, last: int) -> None:
            local = np.empty(self._size, dtype=np.int64)
            with threads.alone():
                for begin, end in reversed(self._trees[first:last]):
                    known, waiting = dict(outermost), [len(inside) for inside in self._inside]
                    for number in reversed(range(begin, end)):
                        self._invert(number, known, waiting, result, local)

        threads.run(side_by_side, self._work)
        return result

    def _invert(self, number: int, known: dict[int, Array], waiting: list[int], result: Array, local: Index) -> None:
        """The inverse of a front, which stays known until all those inside have it."""
        front, (L11, L21) = self._fronts[number], self._factors[number]
        own, size = len(front.own), len(front.own) + len(front.boundary)
        Z = np.empty((size, size))
        half = np.eye(own)
        divide(half, L11)
        Z[:own, :own] = product(half, half.T)
        if size > own:
            Z[own:, own:] = known[front.outside][np.ix_(front.place, front.place)]
            K = L21.copy()
            divide(K, L11, transposed=False)
            Z[own:, :own] = -product(Z[own:, own:], K)
            Z[:own, own:] = Z[own:, :own].T
            Z[:own, :own] -= product(K.T, Z[own:, :own])
            waiting[front.outside] -= 1
            if not waiting[front.outside]:
                del known[front.outside]
        if waiting[number]:
            known[number] = Z
        local[front.own] = np.arange(own)
        local[front.boundary] = np.arange(own, size)
        at = local[self._column[front.cameras]]
        result[front.cameras] = Z[at[:, :, None], at[:, None, :]]


_NOTHING = np.empty((0, 0))


def _numbers_inside(fronts: list[_Front]) -> list[list[int]]:
    """Of each front those directly inside that touch it, ascending."""
    inside: list[list[int]] = [[] for _ in fronts]
    for number, front in enumerate(fronts):
        if len(front.boundary):
            inside[front.outside].append(number)
    return inside


def _side_by_side(fronts: list[_Front]) -> tuple[list[tuple[int, int]], list[int]]:
    """Ranges of fronts that touch no other range, each a small share of the work; and the fronts around them, ascending.

    A front and all inside it are consecutive, itself the last.
    """
    first = list(range(len(fronts)))
    total = [front.flops for front in fronts]
    for number, front in enumerate(fronts):
        if front.outside >= 0:
            first[front.outside] = min(first[front.outside], first[number])
            total[front.outside] += total[number]
    most = _SIDE_BY_SIDE * sum(front.flops for front in fronts)
    outer = [n for n, work in enumerate(total) if work > most]
    around = {-1, *outer}
    inner = [n for n, front in enumerate(fronts) if n not in around and front.outside in around]
    return [(first[n], n + 1) for n in inner], outer


def _analyse(pairs: CameraPairs, column: Index, size: int) -> list[_Front]:
    """Fronts in the order of elimination. Rows that several cameras share (intrinsics) touch most others: they come last."""
    off = pairs.row != pairs.column
    row, col = pairs.row[off], pairs.column[off]
    ends = np.concatenate([row, col]), np.concatenate([col, row])
    graph = csr_array((np.ones(2 * len(row)), ends), shape=(pairs.cameras, pairs.cameras))
    parts, outside = _in_order(pairs.dissection)
    own, boundary, number = _structure(graph, parts, outside)
    # Each pair is added in the front in which the first of its cameras is eliminated.
    earliest = np.minimum(number[pairs.row], number[pairs.column])
    order = np.argsort(earliest, kind="stable")
    bounds = np.searchsorted(earliest[order], np.arange(len(parts) + 1))
    users = np.bincount(column.reshape(-1), minlength=size)
    shared = np.flatnonzero(users != 1)

    def rows(cameras: Index) -> Index:
        mine = column[cameras].reshape(-1)
        return mine[users[mine] == 1]

    where = np.empty(size, dtype=np.int64)
    fronts: list[_Front] = []
    for k in range(len(parts)):
        added = order[bounds[k] : bounds[k + 1]]
        if outside[k] < 0:
            fronts.append(_Front(own[k], np.concatenate([rows(own[k]), shared]), shared[:0], added, -1, shared[:0]))
            continue
        edge = np.concatenate([rows(boundary[k]), shared])
        around = np.concatenate([rows(own[outside[k]]), rows(boundary[outside[k]]), shared])
        where[around] = np.arange(len(around))
        fronts.append(_Front(own[k], rows(own[k]), edge, added, outside[k], where[edge]))
    return fronts


def _structure(graph: csr_array, parts: list[Node], outside: list[int]) -> tuple[list[Index], list[Index], Index]:
    """Cameras that each part owns and those later ones that it touches, in the order of elimination; each camera's part."""
    own = [part.vertices for part in parts]
    in_order = np.concatenate(own)
    position = np.empty(len(in_order), dtype=np.int64)
    position[in_order] = np.arange(len(in_order))
    after = np.cumsum([len(cameras) for cameras in own])
    touched: list[list[Index]] = [[] for _ in parts]
    boundary: list[Index] = []
    for k, cameras in enumerate(own):
        places = np.unique(position[np.concatenate([graph[cameras].indices.astype(np.int64), *touched[k]])])
        boundary.append(in_order[places[places >= after[k]]])
        if outside[k] >= 0:
            touched[outside[k]].append(boundary[k])
    return own, boundary, np.searchsorted(after, position, side="right")


def _in_order(root: Node) -> tuple[list[Node], list[int]]:
    """All parts, those inside before the one around, and the number of the one around each (-1: none)."""
    parts: list[Node] = []
    outside: list[int] = []

    def visit(part: Node) -> int:
        inside = [visit(child) for child in part.inside]
        parts.append(part)
        outside.append(-1)
        for child in inside:
            outside[child] = len(parts) - 1
        return len(parts) - 1

    visit(root)
    return parts, outside


def compile_fronts(cameras: int = 64) -> None:
    """Compile what no small problem needs, on cameras in a row of which every two neighbours share a landmark."""
    ends = np.column_stack([np.arange(cameras - 1), np.arange(1, cameras)]).reshape(-1)
    pairs = CameraPairs.covisible(Tracks(ends, np.arange(0, len(ends) + 1, 2), cameras))
    system = SparseFactorisation(pairs, np.arange(cameras).reshape(-1, 1), cameras)
    system.factorise(np.zeros((len(pairs), 1, 1)), 1.0)


@kernel()
def _add_blocks(numbers, row, pair_column, column, blocks, local, L11, L21, U):
    """Blocks of camera pairs into the lower triangle of a front; slot s of camera k is row column[k, s], here local[...]."""
    own = L11.shape[0]
    width = column.shape[1]
    for index in range(numbers.size):
        n = numbers[index]
        i, k = row[n], pair_column[n]
        for s in range(width):
            p = local[column[i, s]]
            for c in range(width):
                q = local[column[k, c]]
                if i == k and q > p:
                    continue
                value = blocks[n, s, c]
                if i != k and p == q:
                    value *= 2.0
                high, low = max(p, q), min(p, q)
                if high < own:
                    L11[high, low] += value
                elif low < own:
                    L21[high - own, low] += value
                else:
                    U[high - own, low - own] += value


@kernel()
def _extend(begin, end, place, update, L11, L21, U):
    """Add rows of the update of a part inside (lower triangle) where its boundary stands in this front; `place` ascends."""
    own = L11.shape[0]
    for r in range(begin, end):
        high = place[r]
        for c in range(r + 1):
            low = place[c]
            if high < own:
                L11[high, low] += update[r, c]
            elif low < own:
                L21[high - own, low] += update[r, c]
            else:
                U[high - own, low - own] += update[r, c]
