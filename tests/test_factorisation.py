"""Factorisations of the reduced camera system: in tiles, and by a dissection in fronts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from initfree.data.tracks import Tracks
from initfree.engine import factorisation as choice
from initfree.engine import threads
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.dissection import Part, dissect
from initfree.engine.envelope import envelope
from initfree.engine.front import Front, FrontLayout
from initfree.engine.sparse_cholesky import SparseFactorisation
from initfree.engine.threads import set_threads
from initfree.engine.tiles import LANES, TiledFactorisation
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

    def visit(part: Part) -> np.ndarray:
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
def test_sparse_factorisation_is_the_dense_one(name: str, intrinsics: str):
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
    for factor in (SparseFactorisation(pairs, column, size), TiledFactorisation(pairs, column, size)):
        for _ in range(2):
            assert factor.factorise(blocks, shift)
            assert_allclose(factor.solve(b), expected, rtol=1e-9, atol=1e-12)
            if isinstance(factor, SparseFactorisation):
                assert_allclose(factor.solve(np.column_stack([b, 2.0 * b]))[:, 1], 2.0 * expected, rtol=1e-9, atol=1e-12)
                inverse = np.linalg.inv(H + np.diag(shift))[column[:, :, None], column[:, None, :]]
                assert_allclose(factor.inverse_blocks(), inverse, rtol=1e-8, atol=1e-14)
        assert not factor.factorise(blocks, -1.0)
        assert not factor.factorise(blocks, np.inf)
        if isinstance(factor, SparseFactorisation):
            with pytest.raises(ValueError, match="no factorisation"):
                factor.solve(b)
        assert factor.factorise(blocks, shift)
        assert_allclose(factor.solve(b), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.usefixtures("any_threads")
def test_rows_of_a_factor_begin_where_their_envelope_does_on_any_number_of_threads(name: str):
    pairs, rng = CameraPairs.covisible(GRAPHS[name]), np.random.default_rng(2)
    column = 6 * np.arange(pairs.cameras)[:, None] + np.arange(6)
    column = np.column_stack([column, np.full(pairs.cameras, column.size)])  # a number that all share
    found = pairs.envelope(column, int(column.max()) + 1)
    assert np.array_equal(np.sort(found.position), np.arange(len(found.first)))
    blocks = 1e-2 * rng.normal(size=(len(pairs), 7, 7))
    factors = []
    for count in (1, 3):
        set_threads(count)
        tiles = TiledFactorisation(pairs, column, len(found.first))
        assert tiles.factorise(blocks, 50.0)
        factors.append(tiles.factor)
    assert_array_equal(factors[0], factors[1])
    assert not factors[0][np.arange(len(found.first)) < found.first[:, None]].any()
    as_they_are = envelope(np.arange(pairs.cameras), pairs.row, pairs.column, column, len(found.first))
    assert found.flops <= as_they_are.flops


def one_block(size: int, lanes: tuple[int, ...] = LANES) -> TiledFactorisation:
    """A matrix that is the one block of one camera."""
    return TiledFactorisation(CameraPairs.only(1), np.arange(size)[None], size, lanes)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("size", [1, 4, 7, 8, 9, 24, 25, 47, 60, 133])
@pytest.mark.usefixtures("any_threads")
def test_tiles_are_a_cholesky_factorisation_with_the_same_bits_on_any_number_of_threads(size: int, lanes: int):
    rng = np.random.default_rng(size)
    half, b = rng.normal(size=(size, size)), rng.normal(size=size)
    A = half @ half.T + 0.1 * np.eye(size)
    found = []
    for count in (1, 2, 3):
        set_threads(count)
        factorisation = one_block(size, (0,) * lanes)
        for shift, definite in ((0.0, True), (-2.0 * np.linalg.eigvalsh(A)[-1], False), (0.0, True)):
            assert factorisation.factorise(A[None], shift) == definite
        found.append((factorisation.factor, factorisation.solve(b)))
    L, x = found[0]
    assert_allclose(L, np.linalg.cholesky(A), rtol=1e-9, atol=1e-12)
    assert_allclose(A @ x, b, rtol=1e-9, atol=1e-9)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert_array_equal(one, two)


@pytest.mark.usefixtures("any_threads")
def test_threads_that_wait_for_each_others_tiles_end_with_the_factor():
    """Often enough for threads to meet in every order."""
    rng, size = np.random.default_rng(0), 200
    half = rng.normal(size=(size, size))
    A = half @ half.T + np.eye(size)
    set_threads(4)
    factorisation = one_block(size)
    factors = set()
    for _ in range(100):
        assert factorisation.factorise(A[None], 0.0)
        factors.add(factorisation.factor.tobytes())
    assert len(factors) == 1


@pytest.mark.slow
def test_factors_have_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(3)
    cam = np.concatenate([np.sort(rng.choice(9, 4, replace=False)) + first for first in rng.integers(0, 291, 3000)])
    pairs = CameraPairs.covisible(Tracks(cam, np.arange(0, len(cam) + 1, 4), 300))
    blocks = 1e-2 * rng.normal(size=(len(pairs), 6, 6))
    blocks[pairs.diagonal] = 20.0 * np.eye(6)
    found = []
    before = threads.threads()
    for count in (1, 3):
        threads.set_threads(count)
        sparse = SparseFactorisation(pairs, np.arange(1800).reshape(-1, 6), 1800)
        assert sparse.factorise(blocks, 0.0)
        found.append((sparse.solve(np.ones(1800)), sparse.inverse_blocks()))
    threads.set_threads(before)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


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


@pytest.mark.parametrize(("own", "boundary"), [(0, 0), (0, 30), (1, 0), (24, 24), (25, 1), (47, 49), (70, 100)])
@pytest.mark.usefixtures("any_threads")
def test_a_front_is_a_partial_factorisation_with_the_same_bits_on_any_number_of_threads(own: int, boundary: int):
    rng, size = np.random.default_rng(own), own + boundary
    A = rng.normal(size=(size, size))
    A = A @ A.T + size * np.eye(size)
    # One block a row: pairs of "cameras" of a single number each.
    row, column = np.tril_indices(size)
    layout, found = FrontLayout(own, boundary), []
    outer = FrontLayout(boundary, 0)
    for count in (1, 2, 3):
        set_threads(count)
        front = Front(layout)
        U = front.begin(np.full(own, 0.5))
        model = row.astype(np.int64), column.astype(np.int64), np.arange(size).reshape(-1, 1)
        front.add_blocks(U, np.arange(len(row)), model, layout.kept, A[row, column].reshape(-1, 1, 1))
        assert front.eliminate(U)
        around = Front(outer)
        rest = around.begin(np.zeros(boundary))
        around.extend(rest, outer.row(np.arange(boundary)), layout, U)
        assert around.eliminate(rest)
        L11, L21 = front.factors
        found.append((np.tril(L11), L21, np.tril(around.factors[0])))
    for one, *others in zip(*found, strict=True):
        for other in others:
            assert_array_equal(one, other)
    L11, L21, rest = found[0]
    expected = A + np.diag(np.repeat([0.5, 0.0], [own, boundary]))
    L = np.block([[L11, np.zeros((own, boundary))], [L21, rest]])
    assert_allclose(L @ L.T, expected, rtol=1e-12, atol=1e-10)
    if own:
        assert not front.eliminate(front.begin(np.full(own, -1.0)))


def test_large_systems_have_a_threshold_of_their_own_for_a_dissection(monkeypatch: pytest.MonkeyPatch):
    pairs, column = CameraPairs.covisible(grid_tracks(10, 10)), np.arange(1200).reshape(-1, 12)
    share = SparseFactorisation(pairs, column, 1200).flops / pairs.envelope(column, 1200).flops
    monkeypatch.setattr(choice, "_LARGE", 1200)
    for most, expected in ((share - 0.01, TiledFactorisation), (share + 0.01, SparseFactorisation)):
        monkeypatch.setattr(choice, "_WORTHWHILE_LARGE", most)
        assert isinstance(choice.factorisation(pairs, column, 1200), expected)


def test_tiles_are_taken_unless_a_dissection_has_half_as_much_to_do():
    for tracks, expected in ((grid_tracks(10, 10), TiledFactorisation), (arms_tracks(25, 20), SparseFactorisation)):
        pairs, column = CameraPairs.covisible(tracks), np.arange(12 * tracks.cameras).reshape(-1, 12)
        assert isinstance(choice.factorisation(pairs, column, column.size), expected)
