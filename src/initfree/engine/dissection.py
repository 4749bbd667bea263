"""Nested dissection: in which order to eliminate cameras so that a sparse factorisation stays sparse.

A separator is a set of cameras without which the rest falls into parts that share no landmarks. Eliminated last, it keeps
the parts from filling each other in; each part is cut in the same way (George 1973). A survey of n images in strips has
separators of about sqrt(n) cameras, a street of a handful.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_bipartite_matching

from initfree.data.tracks import Array, Index

_LEAF = 24
"""Cameras that are eliminated together without further cuts: dense matrices are fast on what that makes"""
_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7)
"""of the cameras on one side of a cut: those that are tried"""
_SMOOTHING = 20
_CORNERS = 200
"""Cameras from which on more directions of a cut are tried than the longest"""


@dataclass(frozen=True)
class Node:
    """Of the elimination tree: cameras that are eliminated together, after those of all nodes inside."""

    vertices: Index
    inside: tuple["Node", ...]


def dissect(graph: csr_array) -> Node:
    """The root of the elimination tree of a symmetric graph; its separators are its inner nodes."""
    return _dissect(graph, np.arange(graph.indptr.size - 1))


def _dissect(graph: csr_array, vertices: Index) -> Node:
    """`graph` is that of `vertices` alone."""
    if len(vertices) <= _LEAF:
        return Node(vertices, ())
    count, label = connected_components(graph, directed=False)
    if count > 1:
        groups = [np.flatnonzero(label == part) for part in range(count)]
        return Node(vertices[:0], tuple(_dissect(_within(graph, group), vertices[group]) for group in groups))
    separator, *halves = _separate(graph)
    if _cost(len(vertices)) < _cost(len(separator)) + sum(_cost(len(half), len(separator)) for half in halves):
        return Node(vertices, ())
    return Node(vertices[separator], tuple(_dissect(_within(graph, half), vertices[half]) for half in halves))


def _cost(own: int, boundary: int = 0) -> float:
    """Multiply-adds of a dense elimination, up to a factor."""
    return own**3 / 3.0 + float(own) ** 2 * boundary + own * float(boundary) ** 2


def _within(graph: csr_array, group: Index) -> csr_array:
    return csr_array(graph[group][:, group])


def _distances(graph: csr_array, start: int) -> Index:
    """Steps from `start` to each vertex of a connected graph."""
    order, before = breadth_first_order(graph, start, directed=False)
    distance = np.zeros(len(order), dtype=np.int64)
    for vertex in order[1:]:
        distance[vertex] = distance[before[vertex]] + 1
    return distance


def _separate(graph: csr_array) -> tuple[Index, Index, Index]:
    """A separator of a connected graph and the two sides of it: few cameras for the smaller side that they cut off."""
    found = []
    for level in levels(graph):
        order = np.argsort(level, kind="stable")
        for share in _SHARES:
            beyond = np.ones(len(order), dtype=bool)
            beyond[order[: int(share * len(order))]] = False
            separator = _cover(graph, beyond)
            halves = np.flatnonzero(~beyond & ~separator), np.flatnonzero(beyond & ~separator)
            ratio = np.count_nonzero(separator) / max(min(len(half) for half in halves), 1e-3)
            found.append((ratio, (np.flatnonzero(separator), *halves)))
    return min(found, key=lambda candidate: candidate[0])[1]


def levels(graph: csr_array) -> list[Array]:
    """Numbers of the vertices of a connected graph along which it may be cut: from one end to the other and, of a graph that
    has corners, from side to side.

    Closer to one end than to the other: straight lines in a survey, where steps from one end alone draw circles. The ends of
    a square are opposite corners, and the cut between them is its diagonal; the two corners beside them, each taken with one
    of the ends, give the directions of its sides, in which a cut is shorter by a third.
    """
    first = int(np.argmax(_distances(graph, 0)))
    a = _distances(graph, first)
    b = _distances(graph, int(np.argmax(a)))
    found = [a - b]
    if len(a) >= _CORNERS:
        c = _distances(graph, int(np.argmax(np.minimum(a, b))))
        d = _distances(graph, int(np.argmax(np.where(np.abs(a - b) <= np.abs(a - b).min() + 2, c, -1))))
        found += [a + c - b - d, a + d - b - c]
    return [_smoothed(graph, level.astype(np.float64)) for level in found]


def _smoothed(graph: csr_array, level: Array) -> Array:
    """Steps are coarse; the mean over neighbours, again and again, separates vertices with the same number of them."""
    degree = np.maximum(np.diff(graph.indptr), 1)
    for _ in range(_SMOOTHING):
        level = 0.5 * (level + (graph @ level) / degree)
    return level


def _cover(graph: csr_array, side: np.ndarray) -> np.ndarray:
    """The smallest set of vertices that all edges between the sides touch (König: a matching as large proves it)."""
    left, right = np.flatnonzero(~side), np.flatnonzero(side)
    between = csr_array(graph[left][:, right])
    partner = maximum_bipartite_matching(between, perm_type="column")
    matched_right = np.full(len(right), -1, dtype=np.int64)
    matched_right[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    reached_left = partner < 0
    reached_right = np.zeros(len(right), dtype=bool)
    queue = np.flatnonzero(reached_left).tolist()
    while queue:
        vertex = queue.pop()
        for other in between.indices[between.indptr[vertex] : between.indptr[vertex + 1]]:
            if not reached_right[other]:
                reached_right[other] = True
                back = int(matched_right[other])
                if back >= 0 and not reached_left[back]:
                    reached_left[back] = True
                    queue.append(back)
    cover = np.zeros(len(side), dtype=bool)
    cover[left[~reached_left]] = True
    cover[right[reached_right]] = True
    return cover
