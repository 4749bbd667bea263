"""Factorisations of the reduced camera system: in a band, and by a dissection in fronts."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from initfree.data.tracks import Tracks
from initfree.engine import factorisation as choice
from initfree.engine.band_cholesky import BandFactorisation, bandwidth, positions
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.dissection import Node, dissect
from initfree.engine.lapack import cholesky
from initfree.engine.sparse_cholesky import SparseFactorisation
from initfree.engine.threads import set_threads
from initfree.formulations import make
from initfree.stages.varpro import VariableProjection


def grid_tracks(rows: int, columns: int, *, parts: int = 1) -> Tracks:
    """Cameras on a grid in a random order, every landmark seen by a square of four; `parts` grids that share nothing."""
    order = np.random.default_rng(0).permutation(parts * rows * columns)
    corners = np.arange(parts * rows * columns).reshape(parts, rows, columns)
    squares = np.stack([corners[:, r : rows - 1 + r, c : columns - 1 + c] for r in (0, 1) for c in (0, 1)], axis=-1)
    cam = np.sort(order[squares.reshape(-1, 4)], axis=1)
    return Tracks(cam.reshape(-1), np.arange(0, cam.size + 1, 4), parts * rows * columns)


def complete_tracks(cameras: int) -> Tracks:
    return Tracks(np.arange(cameras), np.array([0, cameras]), cameras)


GRAPHS = {
    "street": grid_tracks(60, 2),
    "survey": grid_tracks(12, 12),
    "two parts": grid_tracks(6, 8, parts=2),
    "everybody sees everybody": complete_tracks(40),
    "nobody sees anybody": Tracks(np.arange(30), np.arange(31), 30),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_dissection_takes_every_camera_once_and_no_pair_crosses_its_parts(name: str):
    tracks = GRAPHS[name]
    shared = tracks.covisible
    seen = []

    def visit(part: Node) -> np.ndarray:
        inside = [visit(child) for child in part.inside]
        for k, one in enumerate(inside):
            for other in inside[:k]:
                assert shared[one][:, other].nnz == 0
        seen.append(part.vertices)
        return np.concatenate([part.vertices, *inside])

    graph = csr_array(shared.astype(np.float64))
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    visit(dissect(graph))
    assert_array_equal(np.sort(np.concatenate(seen)), np.arange(tracks.cameras))
    if name in ("street", "survey", "two parts"):
        assert len(seen) > 3


@pytest.mark.parametrize("intrinsics", ["none", "own", "shared", "some shared"])
@pytest.mark.parametrize("name", GRAPHS)
def test_factorisations_solve_the_dense_system(name: str, intrinsics: str):
    tracks, rng = GRAPHS[name], np.random.default_rng(1)
    n, pairs = tracks.cameras, CameraPairs.covisible(tracks)
    groups = {"own": np.arange(n), "shared": np.zeros(n, dtype=np.int64), "some shared": np.arange(n) // 5}.get(intrinsics)
    column = 6 * np.arange(n)[:, None] + np.arange(6)
    if groups is not None:
        column = np.concatenate([column, 6 * n + 2 * groups[:, None] + np.arange(2)], axis=1)
    size, width = int(column.max()) + 1, column.shape[1]
    blocks = rng.normal(size=(len(pairs), width, width))
    blocks[pairs.diagonal] += blocks[pairs.diagonal].transpose(0, 2, 1)
    H = np.zeros((size, size))
    for i, k, block in zip(pairs.row, pairs.column, blocks, strict=True):
        np.add.at(H, np.ix_(column[i], column[k]), block)
        if i != k:
            np.add.at(H, np.ix_(column[k], column[i]), block.T)
    shift = np.abs(H).sum(axis=1) + rng.uniform(1.0, 2.0, size)
    b = rng.normal(size=size)
    expected = np.linalg.solve(H + np.diag(shift), b)
    for factor in (SparseFactorisation(pairs, column, size), BandFactorisation(pairs, column, size)):
        for _ in range(2):
            assert factor.factorise(blocks, shift)
            assert_allclose(factor.solve(b), expected, rtol=1e-9, atol=1e-12)
            if isinstance(factor, SparseFactorisation):
                assert_allclose(factor.solve(np.column_stack([b, 2.0 * b]))[:, 1], 2.0 * expected, rtol=1e-9, atol=1e-12)
                inverse = np.linalg.inv(H + np.diag(shift))[column[:, :, None], column[:, None, :]]
                assert_allclose(factor.inverse_blocks(), inverse, rtol=1e-8, atol=1e-14)
        assert not factor.factorise(blocks, -1.0)
        assert not factor.factorise(blocks, np.inf)
        with pytest.raises(ValueError, match="no factorisation"):
            factor.solve(b)
        assert factor.factorise(blocks, shift)
        assert_allclose(factor.solve(b), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_order_of_a_band_is_no_wider_than_that_of_the_cameras(name: str):
    pairs = CameraPairs.covisible(GRAPHS[name])
    column = np.arange(6 * pairs.cameras).reshape(-1, 6)
    position = positions(pairs, column, column.size)
    assert_array_equal(np.sort(position), np.arange(column.size))
    assert bandwidth(pairs, position[column]) <= bandwidth(pairs, column)
    if name == "street":
        assert bandwidth(pairs, position[column]) < 6 * 8


@pytest.mark.parametrize("size", [1, 7, 300, 1000])
@pytest.mark.usefixtures("any_threads")
def test_a_dense_factor_has_the_same_bits_on_any_number_of_threads(size: int):
    half = np.random.default_rng(size).normal(size=(size, size))
    A = half @ half.T + size * np.eye(size)
    found = []
    for count in (1, 3):
        set_threads(count)
        L = A.copy()
        assert cholesky(L)
        found.append(np.tril(L))
    assert_allclose(found[0] @ found[0].T, A, rtol=1e-10, atol=1e-8 * size)
    assert_array_equal(*found)
    assert not cholesky(A - 4.0 * size * np.eye(size))


def test_factors_have_the_same_bits_on_any_number_of_threads(number_of_threads: Callable[[int], None]):
    rng = np.random.default_rng(3)
    cam = np.concatenate([np.sort(rng.choice(9, 4, replace=False)) + first for first in rng.integers(0, 291, 3000)])
    pairs = CameraPairs.covisible(Tracks(cam, np.arange(0, len(cam) + 1, 4), 300))
    blocks = 1e-2 * rng.normal(size=(len(pairs), 6, 6))
    blocks[pairs.diagonal] = 20.0 * np.eye(6)
    found = []
    for count in (1, 3):
        number_of_threads(count)
        sparse = SparseFactorisation(pairs, np.arange(1800).reshape(-1, 6), 1800)
        assert sparse.factorise(blocks, 0.0)
        found.append((sparse.solve(np.ones(1800)), sparse.inverse_blocks()))
    for one, other in zip(*found, strict=True):
        assert_array_equal(one, other)


def test_large_systems_that_are_sparse_are_factorised_so_and_steps_stay_the_same(monkeypatch: pytest.MonkeyPatch):
    tracks, rng = grid_tracks(10, 10), np.random.default_rng(2)
    m, P = rng.uniform(-1.0, 1.0, size=(tracks.observations, 2)), rng.normal(size=(100, 3, 4))
    weight = np.ones(tracks.observations)
    steps = []
    for share in (0.0, np.inf):
        monkeypatch.setattr(choice, "_WORTHWHILE", share)
        stage = VariableProjection(tracks, m, make("pose", 0.1), P, weight=weight)
        stage.linearise()
        trial = stage.attempt(1e-2)
        assert trial is not None
        steps.append(trial.P - P)
    assert_allclose(steps[1], steps[0], rtol=1e-7, atol=1e-9)


def arms_tracks(arms: int, length: int) -> Tracks:
    """Cameras on roads that meet in one: every two neighbours on a road share a landmark."""
    on_road = 1 + np.arange(arms * length).reshape(arms, length)
    pairs = np.stack([np.column_stack([np.zeros(arms, dtype=np.int64), on_road[:, :-1]]), on_road], axis=-1).reshape(-1, 2)
    return Tracks(pairs.reshape(-1), np.arange(0, pairs.size + 1, 2), 1 + arms * length)


def test_a_band_is_taken_unless_a_dissection_has_much_less_to_do():
    for tracks, expected in ((grid_tracks(10, 10), BandFactorisation), (arms_tracks(25, 20), SparseFactorisation)):
        pairs, column = CameraPairs.covisible(tracks), np.arange(12 * tracks.cameras).reshape(-1, 12)
        assert isinstance(choice.factorisation(pairs, column, column.size), expected)
