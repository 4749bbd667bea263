"""Camera pairs, threads and factorisations: what all stages share."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread, get_ident
from time import sleep

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from synthetic import random_tracks, ring

from initfree.engine import factorisation as choice
from initfree.engine import shares, threads
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.dissection import Part, dissect
from initfree.engine.envelope import envelope
from initfree.engine.front import Front, FrontLayout
from initfree.engine.linear_solver import LinearSolver
from initfree.engine.sparse_cholesky import SparseFactorisation
from initfree.engine.threads import alone, run, set_threads
from initfree.engine.tiles import LANES, TiledFactorisation
from initfree.errors import InputError
from initfree.euclidean.adjustment import EuclideanAdjustment
from initfree.euclidean.parameters import FreeIntrinsics
from initfree.euclidean.triangulation import triangulate
from initfree.formulations import make
from initfree.reconstruction import Reconstruction
from initfree.refinement.reprojection import ProjectiveRefinement, Reprojection
from initfree.tracks import Tracks
from initfree.varpro import VariableProjection


@pytest.fixture
def any_threads(monkeypatch: pytest.MonkeyPatch):
    """Threads as they are left, and cut up even the smallest work."""
    monkeypatch.setattr(shares, "_PAYS", 1)
    before = threads.threads()
    with threads.sharing_all():
        yield
    set_threads(before)


def test_camera_pairs_are_those_that_share_landmarks_and_those_given():
    tracks = random_tracks(np.random.default_rng(0), cameras=12, landmarks=10, shortest=2)
    sparse = tracks.ptr[:4]
    tracks = type(tracks)(tracks.cam[: sparse[-1]], sparse, tracks.cameras)
    expected = np.tril(tracks.covisibility > 0)
    missing = np.argwhere(np.tril(~expected, -1))[:2]
    assert len(missing) == 2
    np.fill_diagonal(expected, True)
    expected[missing[0, 0], missing[0, 1]] = True
    pairs = CameraPairs.covisible(tracks, missing[:1, ::-1])
    assert_array_equal(np.stack([pairs.row, pairs.column], axis=1), np.argwhere(expected))
    assert_array_equal(pairs.column[pairs.diagonal], np.arange(12))
    number = pairs.number(missing[:1])
    assert_array_equal([pairs.row[number][0], pairs.column[number][0]], missing[0])


@pytest.mark.parametrize(("in_cache", "few"), [(8000, 2000), (5, 2000), (5, 0)])
def test_every_two_observations_of_a_landmark_meet_once_in_a_row_of_their_share(
    monkeypatch: pytest.MonkeyPatch, in_cache: int, few: int
):
    for name, value in {"_IN_CACHE": in_cache, "_LONG": 1, "_PAYS": 1, "_FEW": few, "_LARGE": 20, "_TWICE": 8}.items():
        monkeypatch.setattr(shares, name, value)
    tracks = random_tracks(np.random.default_rng(1), landmarks=120)
    pairs, cut = CameraPairs.covisible(tracks), shares.shares_of(tracks, coupled=True)
    assert len(cut.shares) > 2
    assert (len(cut.ranges) > len(cut.shares)) == (in_cache < 8000)
    assert cut.ranges[0] == 0
    assert cut.ranges[-1] == tracks.landmarks
    of_row = np.full(cut.rows, -1)
    for n in range(len(pairs)):
        of_row[cut.pair_rows[cut.pair_ptr[n] : cut.pair_ptr[n + 1]]] = n
    assert (of_row >= 0).all()
    expected, listed = [], []
    for first, last in zip(tracks.ptr, tracks.ptr[1:], strict=False):
        expected += [(a, b) for a in range(first, last) for b in range(first, a + 1)]
    for s in range(len(cut.shares) - 1):
        for t in range(cut.shares[s], cut.shares[s + 1]):
            for n in range(cut.lists[t], cut.lists[t + 1]):
                assert cut.share_rows[s] <= cut.row[n] < cut.share_rows[s + 1]
                for k in range(cut.ptr[n], cut.ptr[n + 1]):
                    a, b = int(cut.later[k]), int(cut.earlier[k])
                    pair = of_row[cut.row[n]]
                    assert (tracks.cam[a], tracks.cam[b]) == (pairs.row[pair], pairs.column[pair])
                    assert cut.ranges[t] <= tracks.landmark[a] < cut.ranges[t + 1]
                    listed.append((a, b))
    assert sorted(listed) == sorted(expected)
    assert shares.shares_of(tracks, coupled=True) is cut
    alone = shares.shares_of(tracks, coupled=False)
    assert len(alone.shares) == (9 if in_cache < 8000 else 2)
    assert_array_equal(alone.later, alone.earlier)
    assert_array_equal(np.sort(alone.later), np.arange(tracks.observations))
    ptr, rows = alone.of_pairs
    assert_array_equal(np.sort(rows), np.arange(alone.rows))
    assert len(ptr) == tracks.cameras + 1


def test_many_pairs_that_no_share_has_for_itself_make_one_share(monkeypatch: pytest.MonkeyPatch):
    for name, value in {"_IN_CACHE": 5, "_FEW": 0, "_LARGE": 20}.items():
        monkeypatch.setattr(shares, name, value)
    tracks = random_tracks(np.random.default_rng(1), landmarks=120)
    cut = shares.shares_of(tracks, coupled=True)
    assert cut.rows <= 2 * len(CameraPairs.covisible(tracks))


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.usefixtures("any_threads")
def test_every_member_of_a_range_is_done_once(count: int):
    set_threads(count)
    for work in (0, 1, 3, 1000, np.array([0]), np.array([0, 0, 7, 7, 100, 101])):
        size = work if isinstance(work, int) else len(work) - 1
        done = np.zeros(size, dtype=np.int64)

        def visit(begin: int, end: int, done: np.ndarray = done) -> None:
            done[begin:end] += 1

        run(visit, work)
        assert_array_equal(done, 1)


@pytest.mark.usefixtures("any_threads")
def test_an_error_in_a_part_is_raised():
    set_threads(2)

    def fail(begin: int, end: int) -> None:
        raise ValueError(f"part from {begin} to {end}")

    with pytest.raises(ValueError, match="part from"):
        run(fail, 100)


@pytest.mark.usefixtures("any_threads")
def test_an_error_of_a_helper_alone_is_raised_and_others_still_end_their_parts():
    set_threads(2)
    here, ended = get_ident(), []
    begun = Event()

    def part(begin: int, end: int) -> None:
        if get_ident() != here:
            begun.set()
            raise ValueError("of a helper")
        begun.wait(10.0)
        ended.append((begin, end))

    for _ in range(3):
        begun.clear()
        ended.clear()
        with pytest.raises(ValueError, match="of a helper"):
            run(part, 100)
        assert ended


@pytest.mark.usefixtures("any_threads")
def test_no_part_is_under_way_when_a_pass_is_over_not_even_after_an_interrupt():
    """Helpers are slower than whoever waits for them: he sleeps, and an interrupt does not wake him for good."""
    set_threads(3)
    here, under_way = get_ident(), []

    def part(begin: int, end: int) -> None:
        if get_ident() == here:
            sleep(0.005)
            raise KeyboardInterrupt
        under_way.append(begin)
        sleep(0.02)
        under_way.remove(begin)

    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            run(part, 100)
        assert not under_way
        sleep(0.002)  # helpers fall asleep, and wake for the next


@pytest.mark.usefixtures("any_threads")
def test_work_begins_after_that_which_an_interrupt_left_under_way():
    """Interrupts come between any two instructions, also before the end of the work has been told or waited for."""
    set_threads(2)
    here, under_way, met, left = get_ident(), [], [], Event()
    seen: set[int] = set()

    def slow(begin: int, end: int) -> None:
        if get_ident() != here:
            under_way.append(begin)
            left.set()
            sleep(0.05)
            under_way.clear()
        else:
            left.wait(5.0)

    def part(begin: int, end: int) -> None:
        met.extend(under_way)
        seen.add(get_ident())
        sleep(0.002)

    def ended(self: threads._Team) -> list[BaseException]:
        raise KeyboardInterrupt

    for _ in range(3):
        left.clear()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(threads._Team, "_ended", ended)
            with pytest.raises(KeyboardInterrupt):
                run(slow, 100)
        assert under_way
        seen.clear()
        run(part, 100)
        assert not met
        assert len(seen) == 2  # the team is there again


@pytest.mark.usefixtures("any_threads")
def test_a_pass_beside_work_that_keeps_to_itself_leaves_that_its_thread():
    set_threads(3)
    took = set()
    inside, over = Event(), Event()

    def by_itself() -> None:
        with alone(), alone():
            inside.set()
            over.wait(10.0)

    def part(begin: int, end: int) -> None:
        took.add(get_ident())
        sleep(0.002)

    other = Thread(target=by_itself)
    other.start()
    inside.wait(10.0)
    assert (threads.threads(), threads.free_threads()) == (3, 2)
    for _ in range(5):
        run(part, 100)
    assert len(took) == 2
    over.set()
    other.join()
    assert threads.free_threads() == 3
    for _ in range(5):
        run(part, 100)
    assert len(took) == 3


def test_alone_keeps_to_its_thread_and_a_number_of_threads_is_positive():
    with alone():
        assert threads.threads() == 1
        with alone():
            assert threads.threads() == 1
        assert threads.threads() == 1
    with pytest.raises(InputError, match="number of threads is 0"):
        set_threads(0)


@pytest.mark.usefixtures("any_threads")
def test_steps_of_all_stages_do_not_depend_on_the_number_of_threads():
    """Bit for bit: no sum crosses from one part to another."""
    scene = ring(9, 300, noise=0.5, seed=4)
    t, rng = scene.tracks, np.random.default_rng(5)
    P, X = rng.normal(size=(9, 3, 4)), rng.normal(size=(t.landmarks, 4))
    R, weight = scene.P[:, :, :3], rng.uniform(0.5, 1.0, t.observations)
    found = []
    for count in (1, 2, 3):
        set_threads(count)
        trials = []
        for loss in ("none", "cauchy"):
            varpro = VariableProjection(t, scene.m, make("pose", 0.1), P, loss=loss, weight=weight)
            varpro.linearise()
            trials.append(varpro.attempt(1e-3))
        for solver in ("power", "pcg"):
            varpro = VariableProjection(t, scene.m, make("pose", 0.1), P, solver=LinearSolver(solver))
            varpro.linearise()
            trials.append(varpro.attempt(1e-3))
        refinement = ProjectiveRefinement(t, Reprojection(scene.m, scene.unit), P, X)
        refinement.linearise()
        trials.append(refinement.attempt(1e-3))
        cameras = R, scene.P[:, :, 3], np.ones(9), np.zeros((9, 2))
        xyz, _ = triangulate(t, scene.m, scene.unit, *cameras)
        state = Reconstruction(*cameras, xyz)
        euclidean = EuclideanAdjustment(t, scene.m, scene.unit, state, free=FreeIntrinsics(focal=True, radial=1))
        euclidean.linearise()
        trials.append(euclidean.attempt(1e-3))
        assert all(trial is not None for trial in trials)
        found.append([value for trial in trials for value in (trial.cost, trial.predicted, trial.step)])
        assert np.isfinite(found[-1]).all()
    assert found[0] == found[1] == found[2]


def test_small_problems_take_no_thread_from_others(monkeypatch: pytest.MonkeyPatch):
    scene = ring(9, 100, noise=0.5, seed=4)
    assert scene.tracks.observations < 2000
    rng, shared = np.random.default_rng(5), []
    monkeypatch.setattr(threads.passes, "pass_over", lambda *arguments: shared.append(arguments[1]))
    before = threads.threads()
    set_threads(2)
    P, X = rng.normal(size=(9, 3, 4)), rng.normal(size=(scene.tracks.landmarks, 4))
    refinement = ProjectiveRefinement(scene.tracks, Reprojection(scene.m, scene.unit), P, X)
    refinement.linearise()
    assert refinement.attempt(1e-3) is not None
    set_threads(before)
    assert not shared


# --- factorisations ----------------------------------------------------------------------------------------------------


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


# --- compiled now and kept from before -----------------------------------------------------------------------------------

DIGEST = """
import hashlib
import numpy as np
from synthetic import ring
from initfree.formulations import make
from initfree.varpro import VariableProjection
scene = ring(6, 60, noise=0.5, seed=4, min_observations=3)
P = np.random.default_rng(0).normal(size=(6, 3, 4))
stage = VariableProjection(scene.tracks, scene.m, make("pose", 0.1), P, loss="cauchy")
stage.linearise()
trial = stage.attempt(1e-3)
parts = (trial.P, trial.X, np.array([trial.cost, trial.predicted]))
print(hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest())
"""


def test_machine_code_kept_between_processes_gives_the_same_bits(tmp_path: Path):
    """A kernel that others call is compiled into each of them and by itself; which copy runs must not matter."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    digests = [
        subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert any(tmp_path.rglob("*.nbi"))
    assert digests[0] == digests[1]
    assert len(digests[0].strip()) == 64
