"""A block-sparse Cholesky factorisation: the multifrontal method on a nested dissection (Duff and Reid 1983).

The matrix of a part and of what it touches outside (its front) is small and dense. In the order of the tree, inside out,

    [ A11   .  ]     [ L11      ] [ L11' L21' ]
    [ A21  A22 ]  =  [ L21   I  ] [        U  ],     U = A22 - L21 L21',

LAPACK factorises what the part owns (1), and U is added into the front of the part around it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs
from scipy.sparse import csr_array

from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.dissection import Part, dissect
from initfree.engine.kernels import kernel
from initfree.tracks import Array, Index

_potrf, _trtrs = get_lapack_funcs(("potrf", "trtrs"), dtype=np.float64)
_trsm, _syrk = get_blas_funcs(("trsm", "syrk"), dtype=np.float64)


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
        self._local = np.empty(size, dtype=np.int64)
        self._factors: list[tuple[Array, Array]] = []

    @property
    def flops(self) -> float:
        """Multiply-adds of one factorisation."""
        return sum(front.flops for front in self._fronts)

    @property
    def fronts(self) -> int:
        return len(self._fronts)

    def factorise(self, blocks: Array, shift: float | Array) -> bool:
        shift = np.broadcast_to(np.asarray(shift, dtype=np.float64), (self._size,))
        waiting: list[list[tuple[_Front, Array]]] = [[] for _ in self._fronts]
        self._factors = []
        row, column = self._pairs.row, self._pairs.column
        for number, front in enumerate(self._fronts):
            own, boundary = len(front.own), len(front.boundary)
            L11, L21 = np.zeros((own, own), order="F"), np.zeros((boundary, own), order="F")
            U = np.zeros((boundary, boundary), order="F")
            self._local[front.own] = np.arange(own)
            self._local[front.boundary] = np.arange(own, own + boundary)
            _add_blocks(front.pairs, row, column, self._column, blocks, self._local, L11, L21, U)
            for child, update in waiting[number]:
                _extend(child.place, update, L11, L21, U)
            waiting[number] = []
            L11[np.arange(own), np.arange(own)] += shift[front.own]
            L11, info = _potrf(L11, lower=1, clean=0, overwrite_a=1)
            if info != 0:
                return False
            if boundary:
                L21 = _trsm(1.0, L11, L21, side=1, lower=1, trans_a=1, overwrite_b=1)
                U = _syrk(-1.0, L21, beta=1.0, c=U, lower=1, overwrite_c=1)
                waiting[front.outside].append((front, U))
            self._factors.append((L11, L21))
        return True

    def solve(self, b: Array) -> Array:
        x = np.array(b, dtype=np.float64)
        for front, (L11, L21) in zip(self._fronts, self._factors, strict=True):
            if len(front.own):
                x[front.own], _ = _trtrs(L11, x[front.own], lower=1)
                x[front.boundary] -= L21 @ x[front.own]
        for front, (L11, L21) in zip(reversed(self._fronts), reversed(self._factors), strict=True):
            if len(front.own):
                x[front.own], _ = _trtrs(L11, x[front.own] - L21.T @ x[front.boundary], lower=1, trans=1)
        return x

    def inverse_blocks(self) -> Array:
        """(cameras, slots, slots): the cameras' own blocks of the inverse Z of the matrix last factorised.

        From the outermost front inwards (Takahashi and others 1973), with K = L21 L11^-1, Z22 known from the front around:
        Z21 = -Z22 K and Z11 = L11^-T L11^-1 + K' Z22 K. That takes about as long as two factorisations, and no column of Z.
        """
        width = self._column.shape[1]
        result = np.empty((len(self._column), width, width))
        inside = np.bincount([front.outside for front in self._fronts if front.outside >= 0], minlength=len(self._fronts))
        known: dict[int, Array] = {}
        for number in range(len(self._fronts) - 1, -1, -1):
            front, (L11, L21) = self._fronts[number], self._factors[number]
            own, size = len(front.own), len(front.own) + len(front.boundary)
            Z = np.empty((size, size))
            half = _trtrs(L11, np.eye(own), lower=1)[0] if own else L11
            Z[:own, :own] = half.T @ half
            if size > own:
                Z[own:, own:] = known[front.outside][np.ix_(front.place, front.place)]
                K = L21 @ half
                Z[own:, :own] = -Z[own:, own:] @ K
                Z[:own, own:] = Z[own:, :own].T
                Z[:own, :own] -= K.T @ Z[own:, :own]
                inside[front.outside] -= 1
                if not inside[front.outside]:
                    del known[front.outside]
            if inside[number]:
                known[number] = Z
            self._local[front.own] = np.arange(own)
            self._local[front.boundary] = np.arange(own, size)
            at = self._local[self._column[front.cameras]]
            result[front.cameras] = Z[at[:, :, None], at[:, None, :]]
        return result


def _analyse(pairs: CameraPairs, column: Index, size: int) -> list[_Front]:
    """Fronts in the order of elimination. Rows that several cameras share (intrinsics) touch most others: they come last."""
    off = pairs.row != pairs.column
    row, col = pairs.row[off], pairs.column[off]
    ends = np.concatenate([row, col]), np.concatenate([col, row])
    graph = csr_array((np.ones(2 * len(row)), ends), shape=(pairs.cameras, pairs.cameras))
    parts, outside = _in_order(dissect(graph))
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


def _structure(graph: csr_array, parts: list[Part], outside: list[int]) -> tuple[list[Index], list[Index], Index]:
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


def _in_order(root: Part) -> tuple[list[Part], list[int]]:
    """All parts, those inside before the one around, and the number of the one around each (-1: none)."""
    parts: list[Part] = []
    outside: list[int] = []

    def visit(part: Part) -> int:
        inside = [visit(child) for child in part.inside]
        parts.append(part)
        outside.append(-1)
        for child in inside:
            outside[child] = len(parts) - 1
        return len(parts) - 1

    visit(root)
    return parts, outside


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
def _extend(place, update, L11, L21, U):
    """Add the update of a part inside (lower triangle) where its boundary stands in this front; `place` ascends."""
    own = L11.shape[0]
    for c in range(place.size):
        low = place[c]
        for r in range(c, place.size):
            high = place[r]
            if high < own:
                L11[high, low] += update[r, c]
            elif low < own:
                L21[high - own, low] += update[r, c]
            else:
                U[high - own, low - own] += update[r, c]
