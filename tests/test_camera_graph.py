"""The graph of cameras: sparse and dense answers are the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from synthetic import random_tracks, ring

from initfree.data import camera_graph
from initfree.data.camera_graph import neighbours, seriated, smoothest, spectral_gap, without_diagonal


def test_sparse_eigenvectors_are_the_dense_ones(monkeypatch: pytest.MonkeyPatch):
    graph = without_diagonal(ring(24, 300, keep=0.6, min_observations=3, seed=2).tracks.covisible)
    dense = smoothest(graph, 3)
    monkeypatch.setattr(camera_graph, "_DENSE", 0)
    sparse = smoothest(graph, 3)
    sparse *= np.sign(np.sum(sparse * dense, axis=0))
    assert_allclose(sparse, dense, atol=1e-8 * np.abs(dense).max())


@pytest.mark.parametrize("most", [0, 500])
def test_the_fiedler_vector_tells_parts_apart(monkeypatch: pytest.MonkeyPatch, most: int):
    """Two groups of three, joined weakly; then one camera that nothing joins."""
    monkeypatch.setattr(camera_graph, "_DENSE", most)
    graph = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)) + 0.01 * (np.ones((6, 6)) - np.eye(6))
    vector = smoothest(csr_array(graph), 1)[:, 0]
    assert (np.sign(vector[:3]) == -np.sign(vector[3:])).all()
    lonely = np.zeros((7, 7))
    lonely[:6, :6] = graph + 1.0 - np.eye(6)
    vector = smoothest(csr_array(lonely), 1)[:, 0]
    assert np.argmax(np.abs(vector - np.median(vector))) == 6


@pytest.mark.parametrize("count", [1, 3, 11, 50])
def test_neighbours_are_those_of_the_dense_matrix(count: int):
    tracks = random_tracks(np.random.default_rng(3), cameras=12, landmarks=4, shortest=2)
    shared = tracks.covisibility.copy()
    np.fill_diagonal(shared, -1)
    assert (shared == 0).any()
    expected = np.argsort(-shared, axis=1, kind="stable")[:, : min(count, 11)]
    assert_array_equal(neighbours(tracks.covisible, count), expected)


@pytest.mark.parametrize("kind", ["ring", "strip"])
def test_a_shuffled_graph_is_put_in_order(kind):
    """Neighbours of the true order are neighbours again, whatever the file's order."""
    n, reach = 30, 4
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    apart = np.minimum(apart, n - apart) if kind == "ring" else apart
    shared = np.maximum(reach + 1 - apart, 0)
    shuffle = np.random.default_rng(0).permutation(n)
    order = seriated(csr_array(shared[np.ix_(shuffle, shuffle)]))
    found = shuffle[order]
    steps = np.abs(np.diff(found))
    steps = np.minimum(steps, n - steps) if kind == "ring" else steps
    assert np.array_equal(np.sort(order), np.arange(n))
    assert (steps == 1).all()
    assert np.array_equal(seriated(csr_array(shared)), np.arange(n)), "an order that is good stays"


@pytest.mark.parametrize("most", [0, 500])
def test_the_spectral_gap_of_graphs_that_are_known(monkeypatch: pytest.MonkeyPatch, most: int):
    monkeypatch.setattr(camera_graph, "_DENSE", most)
    n = 12
    complete = np.ones((n, n)) - np.eye(n)
    assert spectral_gap(csr_array(complete)) == pytest.approx(n / (n - 1))
    assert spectral_gap(csr_array(np.ones((n, n)))) == pytest.approx(1.0), "a step may end where it began"
    cycle = np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1)
    assert spectral_gap(csr_array(cycle)) == pytest.approx(1.0 - np.cos(2.0 * np.pi / n))
    apart = np.kron(np.eye(2), np.ones((n // 2, n // 2)))
    assert spectral_gap(csr_array(apart)) == pytest.approx(0.0, abs=1e-9)
