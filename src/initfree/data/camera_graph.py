"""The covisibility graph: smoothest eigenvectors and neighbours of its cameras, with sparse matrices."""

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import eigsh

from initfree.data.tracks import Array, Index

_DENSE = 500
"""Cameras up to which all numbers of the matrix are kept: LAPACK is faster there, and exact"""
_SHIFT = 1e-3
"""Below the spectrum, whose least number is 0: the shifted matrix is definite"""


def without_diagonal(shared: csr_array) -> csr_array:
    """The graph without the cameras' own counts."""
    graph = csr_array(shared, dtype=np.float64, copy=True)
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    return graph


def smoothest(graph: csr_array, count: int) -> Array:
    """Eigenvectors 2, 3, ... (at most `count`) of the normalised Laplacian I - D^-1/2 C D^-1/2, times D^-1/2.

    C is the graph, without a diagonal, D its row sums. (cameras, count)
    """
    n = graph.indptr.size - 1
    degree = np.asarray(graph.sum(axis=1)).reshape(-1)
    # A camera that shares nothing is a component of its own, with the eigenvalue 0.
    own, root = (degree > 0.0).astype(np.float64), np.where(degree > 0.0, degree, 1.0) ** 0.5
    count = min(count, n - 1)
    if n <= _DENSE:
        _, vectors = np.linalg.eigh(np.diag(own) - graph.toarray() / np.outer(root, root))
    else:
        # Inverse iteration on a sparse factorisation, from the same vector every time.
        scale = diags_array(1.0 / root)
        laplacian = csc_array(diags_array(own) - scale @ graph @ scale)
        first = np.random.default_rng(0).normal(size=n)
        values, vectors = eigsh(laplacian, k=count + 1, sigma=-_SHIFT, which="LM", v0=first)
        vectors = vectors[:, np.argsort(values)]
    return vectors[:, 1 : 1 + count] / root[:, None]


def spectral_gap(graph: csr_array) -> float:
    """Second smallest eigenvalue of the normalised Laplacian I - D^-1/2 C D^-1/2 of a graph, its diagonal included.

    0 where the graph falls apart. k steps of a walk over the graph reach all of it where k times the gap is well above 1.
    """
    n = graph.indptr.size - 1
    if n < 2:
        return 0.0
    degree = np.asarray(graph.sum(axis=1)).reshape(-1)
    scale = diags_array(1.0 / np.where(degree > 0.0, degree, 1.0) ** 0.5)
    similar = csc_array(scale @ graph @ scale)
    if n <= _DENSE:
        return 1.0 - float(np.linalg.eigvalsh(similar.toarray())[-2])
    first = np.random.default_rng(0).normal(size=n)
    return 1.0 - float(np.sort(eigsh(similar, k=2, which="LA", v0=first, return_eigenvectors=False))[0])


def neighbours(shared: csr_array, count: int) -> Index:
    """(cameras, count): the other cameras that share most with each, most first, of equal ones the first.

    If fewer cameras share landmarks with it, the first of the others fill the row.
    """
    graph = without_diagonal(shared)
    n = graph.indptr.size - 1
    count = min(count, n - 1)
    row = np.repeat(np.arange(n), np.diff(graph.indptr))
    order = np.lexsort((graph.indices, -np.asarray(graph.data, dtype=np.float64), row))
    place = np.arange(len(order)) - graph.indptr[row]
    first = place < count
    found = np.full((n, count), -1, dtype=np.int64)
    found[row[first], place[first]] = graph.indices[order][first]
    for k in np.flatnonzero((found < 0).any(axis=1)):
        known = found[k][found[k] >= 0]
        others = np.setdiff1d(np.arange(min(n, 2 * count + 2)), np.append(known, k))
        found[k, len(known) :] = others[: count - len(known)]
    return found


def seriated(shared: csr_array) -> Index:
    """Order the cameras so that those that share most are close to each other, and their matrix is banded.

    Candidates are the given order, that of the Fiedler vector (strips) and that of the angle in the plane of the two
    smoothest vectors (rings). The best has the least sum, over all pairs, of shared landmarks times the cyclic distance.
    """
    graph = without_diagonal(shared)
    n = graph.indptr.size - 1
    orders = [np.arange(n, dtype=np.int64)]
    if n > 3:
        vectors = smoothest(graph, 2)
        orders += [np.argsort(vectors[:, 0], kind="stable")]
        orders += [np.argsort(np.arctan2(vectors[:, 1], vectors[:, 0]), kind="stable")]
    pairs = graph.tocoo()
    rows, columns = pairs.coords

    def length(order: Index) -> float:
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        apart = np.abs(place[rows] - place[columns])
        return float(pairs.data @ np.minimum(apart, n - apart))

    return min(orders, key=length)
