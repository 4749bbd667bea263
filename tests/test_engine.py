"""Camera pairs, sums and threads: the parts that all stages use."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread, get_ident
from time import sleep

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from synthetic import random_tracks, ring

from initfree.data.reconstruction import Reconstruction
from initfree.engine import reduction, threads
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.linear_solver import LinearSolver
from initfree.engine.threads import alone, run, set_threads
from initfree.errors import InputError
from initfree.formulations import make
from initfree.stages.euclidean.adjustment import EuclideanAdjustment
from initfree.stages.euclidean.parameters import FreeIntrinsics
from initfree.stages.euclidean.triangulation import triangulate
from initfree.stages.refinement.reprojection import ProjectiveRefinement, Reprojection
from initfree.stages.varpro import VariableProjection


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
        monkeypatch.setattr(reduction, name, value)
    tracks = random_tracks(np.random.default_rng(1), landmarks=120)
    pairs, cut = CameraPairs.covisible(tracks), reduction.reduction_of(tracks, coupled=True)
    assert len(cut.groups) > 2
    assert (len(cut.ranges) > len(cut.groups)) == (in_cache < 8000)
    assert cut.ranges[0] == 0
    assert cut.ranges[-1] == tracks.landmarks
    of_row = np.full(cut.rows, -1)
    for n in range(len(pairs)):
        of_row[cut.pair_rows[cut.pair_ptr[n] : cut.pair_ptr[n + 1]]] = n
    assert (of_row >= 0).all()
    expected, listed = [], []
    for first, last in zip(tracks.ptr, tracks.ptr[1:], strict=False):
        expected += [(a, b) for a in range(first, last) for b in range(first, a + 1)]
    for s in range(len(cut.groups) - 1):
        for t in range(cut.groups[s], cut.groups[s + 1]):
            for n in range(cut.lists[t], cut.lists[t + 1]):
                assert cut.group_rows[s] <= cut.row[n] < cut.group_rows[s + 1]
                for k in range(cut.ptr[n], cut.ptr[n + 1]):
                    a, b = int(cut.later[k]), int(cut.earlier[k])
                    pair = of_row[cut.row[n]]
                    assert (tracks.cam[a], tracks.cam[b]) == (pairs.row[pair], pairs.column[pair])
                    assert cut.ranges[t] <= tracks.landmark[a] < cut.ranges[t + 1]
                    listed.append((a, b))
    assert sorted(listed) == sorted(expected)
    assert reduction.reduction_of(tracks, coupled=True) is cut
    alone = reduction.reduction_of(tracks, coupled=False)
    assert len(alone.groups) == (9 if in_cache < 8000 else 2)
    assert_array_equal(alone.later, alone.earlier)
    assert_array_equal(np.sort(alone.later), np.arange(tracks.observations))
    ptr, rows = alone.of_pairs
    assert_array_equal(np.sort(rows), np.arange(alone.rows))
    assert len(ptr) == tracks.cameras + 1


def test_many_pairs_that_no_share_has_for_itself_make_one_share(monkeypatch: pytest.MonkeyPatch):
    for name, value in {"_IN_CACHE": 5, "_FEW": 0, "_LARGE": 20}.items():
        monkeypatch.setattr(reduction, name, value)
    tracks = random_tracks(np.random.default_rng(1), landmarks=120)
    cut = reduction.reduction_of(tracks, coupled=True)
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
        begun.wait(300.0)
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


@pytest.mark.usefixtures("any_threads")
def test_work_begins_after_that_which_an_interrupt_left_under_way():
    """Interrupts come between any two instructions, also before the end of the work has been told or waited for."""
    set_threads(2)
    here, under_way, met, left = get_ident(), [], [], Event()

    def slow(begin: int, end: int) -> None:
        if get_ident() != here:
            under_way.append(begin)
            left.set()
            sleep(0.05)
            under_way.clear()
        else:
            left.wait(300.0)

    def part(begin: int, end: int) -> None:
        met.extend(under_way)

    def joined(helpers: list) -> list[BaseException]:
        if helpers:
            raise KeyboardInterrupt
        return []

    for _ in range(3):
        left.clear()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(threads, "_joined", joined)
            with pytest.raises(KeyboardInterrupt):
                run(slow, 100)
        assert under_way
        run(part, 100)
        assert not met


@pytest.mark.usefixtures("any_threads")
def test_a_pass_beside_work_that_keeps_to_itself_leaves_that_its_thread():
    set_threads(3)
    inside, over = Event(), Event()

    def by_itself() -> None:
        with alone(), alone():
            inside.set()
            over.wait(300.0)

    other = Thread(target=by_itself)
    other.start()
    assert inside.wait(300.0)
    assert (threads.threads(), threads.free_threads()) == (3, 2)
    over.set()
    other.join()
    assert threads.free_threads() == 3


def test_alone_keeps_to_its_thread_and_a_number_of_threads_is_positive():
    with alone():
        assert threads.threads() == 1
        with alone():
            assert threads.threads() == 1
        assert threads.threads() == 1
    with pytest.raises(InputError, match="number of threads is 0"):
        set_threads(0)


@pytest.mark.slow
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
        state = Reconstruction(*cameras, scene.landmarks)
        state = replace(state, xyz=triangulate(scene, state)[0])
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
    monkeypatch.setattr(threads, "_executor", lambda: shared.append(True))
    before = threads.threads()
    set_threads(2)
    P, X = rng.normal(size=(9, 3, 4)), rng.normal(size=(scene.tracks.landmarks, 4))
    refinement = ProjectiveRefinement(scene.tracks, Reprojection(scene.m, scene.unit), P, X)
    refinement.linearise()
    assert refinement.attempt(1e-3) is not None
    set_threads(before)
    assert not shared


# --- compiled now and kept from before -----------------------------------------------------------------------------------

DIGEST = """
import hashlib
import numpy as np
from synthetic import ring
from initfree.formulations import make
from initfree.stages.varpro import VariableProjection
scene = ring(6, 60, noise=0.5, seed=4, min_observations=3)
P = np.random.default_rng(0).normal(size=(6, 3, 4))
stage = VariableProjection(scene.tracks, scene.m, make("pose", 0.1), P, loss="cauchy")
stage.linearise()
trial = stage.attempt(1e-3)
parts = (trial.P, trial.X, np.array([trial.cost, trial.predicted]))
print(hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest())
"""


@pytest.mark.slow
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
