"""In which order to factorise a matrix whose rows begin with zeros: the later they begin, the less there is to do.

What a row of a lower triangle has before its first number stays zero in the Cholesky factor (Jennings 1966). Cameras one
after the other along a street or across a survey begin late: the reverse order of Cuthill and McKee, or that of the cuts of
`engine.dissection`, whichever has the least to do.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from initfree.data.tracks import Index
from initfree.engine.dissection import levels


@dataclass(frozen=True)
class Envelope:
    """Rows in some order, and where each begins."""

    position: Index
    """of each row in that order, (rows,)"""
    first: Index
    """column of the first number of the row in each position, (rows,)"""

    @property
    def flops(self) -> float:
        """Multiply-adds of one factorisation."""
        return float(((np.arange(len(self.first)) - self.first + 1.0) ** 2).sum())


def order_of(graph: csr_array) -> Index:
    """The place of each vertex of a symmetric graph in the order with the least to do, (vertices,)"""
    vertices = graph.indptr.size - 1
    orders = [np.arange(vertices), reverse_cuthill_mckee(graph, symmetric_mode=True)]
    if vertices > 2 and connected_components(graph, directed=False)[0] == 1:
        orders += [np.argsort(level, kind="stable") for level in levels(graph)]
    one, other = (side.astype(np.int64) for side in graph.tocoo().coords)
    each = np.arange(vertices)[:, None]
    return min((np.argsort(order) for order in orders), key=lambda place: envelope(place, one, other, each, vertices).flops)


def envelope(place: Index, one: Index, other: Index, row: Index, rows: int) -> Envelope:
    """Of a matrix with blocks of cameras one[n] and other[n], cameras in the order of their `place`: slot s of camera k is
    row[k, s], and rows that cameras share come with the last of them."""
    last = np.zeros(rows, dtype=np.int64)
    np.maximum.at(last, row, place[:, None])
    position = np.empty(rows, dtype=np.int64)
    position[np.lexsort((np.arange(rows), last))] = np.arange(rows)
    placed, first = position[row], np.arange(rows)
    lowest = placed.min(axis=1)
    earliest = lowest.copy()
    np.minimum.at(earliest, one, lowest[other])
    np.minimum.at(earliest, other, lowest[one])
    np.minimum.at(first, placed, earliest[:, None])
    return Envelope(position, first)
