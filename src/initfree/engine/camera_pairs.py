"""Which camera pairs have a block in the reduced system: those that share landmarks, row by row."""

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import coo_array, csr_array, tril
from scipy.sparse.csgraph import reverse_cuthill_mckee

from initfree.data.tracks import Index, Tracks
from initfree.engine.dissection import Node, dissect

NO_PAIRS: Index = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class CameraPairs:
    """The lower triangle of a symmetric block matrix in compressed rows: pairs (i, k), k <= i, all (i, i) among them.

    Memory is linear in the number of pairs.
    """

    ptr: Index
    """Pairs of camera i are ptr[i]:ptr[i + 1]; the last of them is (i, i). (cameras + 1,)"""
    column: Index
    """k of each pair, ascending in a row, (pairs,)"""

    @classmethod
    def covisible(cls, tracks: Tracks, more: Index = NO_PAIRS) -> "CameraPairs":
        """Pairs that share landmarks, and `more` (pairs, 2); without more, kept as long as the tracks are."""
        if len(more):
            return cls._of(tracks.cameras, tracks.covisible, more)
        found = _made.get(tracks)
        if found is None:
            found = _made[tracks] = cls._of(tracks.cameras, tracks.covisible, more)
        return found

    @classmethod
    def only(cls, cameras: int, more: Index = NO_PAIRS) -> "CameraPairs":
        """The diagonal and `more`."""
        return cls._of(cameras, csr_array((cameras, cameras), dtype=np.int64), more)

    @classmethod
    def _of(cls, cameras: int, shared: csr_array, more: Index) -> "CameraPairs":
        every = np.arange(cameras)
        row = np.concatenate([more.max(axis=1, initial=0), every])
        column = np.concatenate([more.min(axis=1, initial=cameras), every])
        extra = coo_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(cameras, cameras))
        lower = csr_array(tril(shared, format="csr") + extra.tocsr())
        lower.sort_indices()
        return cls(lower.indptr.astype(np.int64), lower.indices.astype(np.int64))

    def __len__(self) -> int:
        return len(self.column)

    @property
    def cameras(self) -> int:
        return len(self.ptr) - 1

    @cached_property
    def row(self) -> Index:
        """i of each pair."""
        return np.repeat(np.arange(self.cameras), np.diff(self.ptr))

    @cached_property
    def diagonal(self) -> Index:
        """Number of the pair (i, i)."""
        return self.ptr[1:] - 1

    @cached_property
    def _graph(self) -> csr_array:
        off = self.row != self.column
        row, column = self.row[off], self.column[off]
        ends = np.concatenate([row, column]), np.concatenate([column, row])
        return csr_array((np.ones(2 * len(row)), ends), shape=(self.cameras, self.cameras))

    @cached_property
    def dissection(self) -> Node:
        """In which order to eliminate the cameras, part by part."""
        return dissect(self._graph)

    @cached_property
    def place(self) -> Index:
        """Of each camera in the order with the narrowest band: as they are, or the reverse one of Cuthill and McKee."""
        orders = np.arange(self.cameras), reverse_cuthill_mckee(self._graph, symmetric_mode=True)
        return min((np.argsort(order) for order in orders), key=lambda at: np.abs(at[self.row] - at[self.column]).max())

    def work(self, width: int) -> Index:
        """Of a pass over blocks of `width` rows, for `threads.run`: cumulative, twelve numbers count as an observation."""
        return np.arange(len(self) + 1) * (width * width) // 12

    def number(self, pairs: Index) -> Index:
        """Numbers of the pairs (i, k), i >= k, in the rows above; all of them must be there. (pairs,)"""
        keys = self.row * self.cameras + self.column
        return np.searchsorted(keys, pairs[:, 0] * self.cameras + pairs[:, 1])


_made: WeakKeyDictionary[Tracks, CameraPairs] = WeakKeyDictionary()
