"""Divide and conquer: parts of the graph, similarities between them, the whole from them."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from synthetic import ring

import initfree
from initfree.auto.merging import IDENTITY, PartialReconstruction, Similarity, merge, robust_similarity
from initfree.auto.parts import parts_of, problem_of, processes, solve_in_parts
from initfree.benchmark.data import true_reconstruction
from initfree.benchmark.methods import adjust_from_truth
from initfree.commands.cli import main as command
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Tracks
from initfree.errors import InputError
from initfree.evaluation import evaluate_models, rotation_errors, similarity
from initfree.generator import generate

pytestmark = pytest.mark.slow


def random_similarity(seed: int) -> Similarity:
    rng = np.random.default_rng(seed)
    turn = Rotation.random(random_state=seed).as_matrix()
    return Similarity(float(rng.uniform(0.2, 5.0)), turn, 10.0 * rng.normal(size=3))


def street(cameras: int, seed: int = 0) -> Tracks:
    """Cameras in a row, landmarks seen by three to six in turn: a graph whose cuts are those of the row."""
    rng = np.random.default_rng(seed)
    first = np.sort(rng.integers(0, cameras - 5, 40 * cameras))
    length = rng.integers(3, 7, len(first))
    cam = np.concatenate([np.arange(a, a + n) for a, n in zip(first, length, strict=True)])
    return Tracks(cam, np.concatenate([[0], np.cumsum(length)]), cameras)


# --- parts ---------------------------------------------------------------------------------------------------------------


def test_parts_cover_all_cameras_overlap_and_are_as_small_as_asked():
    tracks = street(200)
    parts = parts_of(tracks, 30, 0.4)
    assert set(np.concatenate(parts)) == set(range(200))
    assert all(len(part) <= 30 * 1.4 + 1 for part in parts)
    for part in parts:
        assert (np.diff(part) > 0).all()
        assert part[-1] - part[0] < 60, "of a street, a stretch"
        assert any(len(np.intersect1d(part, other)) >= 4 for other in parts if other is not part)


def test_one_part_is_the_whole():
    assert [part.tolist() for part in parts_of(street(50), 50)] == [list(range(50))]


def test_the_order_of_cameras_does_not_change_the_parts():
    tracks = street(64)
    order = np.random.default_rng(1).permutation(64)
    source = np.lexsort((order[tracks.cam], tracks.landmark))
    shuffled = Tracks(order[tracks.cam][source], tracks.ptr, 64)
    place = np.argsort(order)
    first, second = parts_of(tracks, 16), parts_of(shuffled, 16)
    assert {frozenset(place[part].tolist()) for part in second} == {frozenset(part.tolist()) for part in first}


# --- similarities --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_similarities_compose_and_undo_each_other(seed: int):
    x = np.random.default_rng(seed).normal(size=(20, 3))
    a, b = random_similarity(seed), random_similarity(seed + 100)
    np.testing.assert_allclose(b.after(a)(x), b(a(x)))
    np.testing.assert_allclose(a.inverse(a(x)), x, atol=1e-9)


def test_a_moved_reconstruction_sees_the_same():
    scene = ring(cameras=6, landmarks=40)
    whole = Reconstruction(
        scene.R, -np.einsum("nij,nj->ni", scene.R, scene.centres), np.ones(6), np.zeros((6, 2)), scene.landmarks
    )
    moved = random_similarity(3).moved(whole)
    before, after = (
        np.einsum("nij,nj->ni", r.R[scene.tracks.cam], r.xyz[scene.tracks.landmark]) + r.t[scene.tracks.cam]
        for r in (whole, moved)
    )
    np.testing.assert_allclose(after[:, :2] / after[:, 2:], before[:, :2] / before[:, 2:], atol=1e-9)


def test_a_third_of_points_elsewhere_does_not_change_a_similarity():
    rng = np.random.default_rng(0)
    true, x = random_similarity(1), rng.normal(size=(60, 3))
    y = true(x)
    y[:20] += rng.normal(size=(20, 3)) * 10.0
    found, miss = robust_similarity(x, y)
    assert miss < 1e-3
    np.testing.assert_allclose(found(x[20:]), y[20:], atol=1e-2)


# --- merging -------------------------------------------------------------------------------------------------------------


def pieces_of(whole: Reconstruction, tracks: Tracks, cameras: int) -> list[PartialReconstruction]:
    """Parts of a reconstruction, each in a world of its own."""
    parts = []
    for n, chosen in enumerate(parts_of(tracks, cameras, 0.4)):
        seen = np.bincount(tracks.landmark[np.isin(tracks.cam, chosen)], minlength=tracks.landmarks)
        landmarks = np.flatnonzero(seen >= 2)
        parts.append(PartialReconstruction(random_similarity(n).moved(whole.subset(chosen, landmarks)), chosen, landmarks))
    return parts


@pytest.fixture(scope="module")
def row() -> tuple[Reconstruction, Tracks]:
    tracks, rng = street(120), np.random.default_rng(5)
    R = Rotation.from_rotvec(0.3 * rng.normal(size=(120, 3))).as_matrix()
    centres = np.column_stack([np.arange(120.0), rng.normal(size=(120, 2))])
    middle = np.bincount(tracks.landmark, weights=tracks.cam) / np.diff(tracks.ptr)
    xyz = np.column_stack([middle, rng.normal((0.0, 8.0), size=(len(middle), 2))])
    t = -np.einsum("nij,nj->ni", R, centres)
    return Reconstruction(R, t, np.ones(120), np.zeros((120, 2)), xyz), tracks


def assert_same_up_to_world(found: Reconstruction, whole: Reconstruction) -> None:
    assert rotation_errors(found.R, whole.R).max() < 1e-5
    s, turn, t = similarity(found.centres, whole.centres)
    np.testing.assert_allclose(s * found.centres @ turn.T + t, whole.centres, atol=1e-6)
    np.testing.assert_allclose(s * found.xyz @ turn.T + t, whole.xyz, atol=1e-6)


def test_parts_in_worlds_of_their_own_become_the_whole_again_in_any_order(row: tuple[Reconstruction, Tracks]):
    whole, tracks = row
    parts = pieces_of(whole, tracks, 20)
    assert len(parts) == 8
    for order in (np.arange(8), np.random.default_rng(0).permutation(8)):
        merged = merge([parts[k] for k in order], 120, tracks.landmarks)
        assert merged.placed.all()
        assert sorted(merged.parts) == list(range(8))
        assert_same_up_to_world(merged.reconstruction, whole)


def test_a_part_that_contradicts_the_others_is_left_out(row: tuple[Reconstruction, Tracks]):
    whole, tracks = row
    parts = pieces_of(whole, tracks, 20)
    # At an end of the street, where no other part needs it; bent as a failed solve bends.
    wrong = next(k for k, part in enumerate(parts) if part.cameras[0] == 0)
    r = parts[wrong].reconstruction
    bent = replace(r, xyz=r.xyz * [1.0, 1.0, 3.0], t=r.t + np.random.default_rng(0).normal(size=r.t.shape))
    parts[wrong] = replace(parts[wrong], reconstruction=bent)
    merged = merge(parts, 120, tracks.landmarks)
    assert wrong not in merged.parts
    assert len(merged.parts) == 7
    assert not merged.placed[0]
    placed = np.flatnonzero(merged.placed)
    assert rotation_errors(merged.reconstruction.R[placed], whole.R[placed]).max() < 1e-5


def test_one_part_alone_is_merged_with_nothing():
    whole = Reconstruction(np.tile(np.eye(3), (3, 1, 1)), np.zeros((3, 3)), np.ones(3), np.zeros((3, 2)), np.ones((5, 3)))
    merged = merge([PartialReconstruction(whole, np.arange(3), np.arange(5))], 3, 5)
    assert merged.placed.all()
    np.testing.assert_array_equal(merged.reconstruction.xyz, IDENTITY(whole.xyz))


# --- the whole -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def courthouse() -> tuple[initfree.Problem, Reconstruction]:
    dataset = generate("set1", seed=2, noise=0.5, outliers=0.05, shuffle=True)
    truth = initfree.api.as_model(dataset.to_colmap())
    return initfree.load(dataset.to_colmap(noisy=True)), truth


def test_a_part_travels_with_its_own_observations_alone(courthouse: tuple[initfree.Problem, Reconstruction]):
    problem, _ = courthouse
    part = pickle.loads(pickle.dumps(problem_of(problem, np.arange(12))))
    assert len(part.observations.images) == 12
    assert set(part.names) <= set(problem.names[:12])
    assert part.tracks.observations < problem.tracks.observations / 3


def test_a_problem_solved_in_parts_is_accepted_and_at_the_oracle(courthouse: tuple[initfree.Problem, Reconstruction]):
    problem, truth = courthouse
    told: list[str] = []
    with ThreadPoolExecutor(1) as executor:
        result = solve_in_parts(problem, cameras=15, executor=executor, on_progress=lambda stage, *_: told.append(stage))
    assert result.accepted
    assert result.winner == "parts"
    assert len(result.starts) == 4
    assert sum(stage.startswith("part of") for stage in told) == 4
    oracle = adjust_from_truth(problem, true_reconstruction(problem, truth))
    oracle = replace(oracle, names=problem.names, ids=problem.landmark_ids)
    ours, best = (evaluate_models(model, truth) for model in (result.reconstruction, oracle))
    assert ours.rotation_auc5 > best.rotation_auc5 - 0.5
    assert ours.translation_auc5 > best.translation_auc5 - 0.5


def test_processes_and_workers_of_dask_give_what_this_process_does(courthouse: tuple[initfree.Problem, Reconstruction]):
    distributed = pytest.importorskip("distributed")
    problem, _ = courthouse
    here = solve_in_parts(problem, cameras=25)
    with processes(2) as executor:
        found = [solve_in_parts(problem, cameras=25, executor=executor)]
    quiet = {"dashboard_address": None, "silence_logs": "ERROR"}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, **quiet) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        found.append(solve_in_parts(problem, cameras=25, executor=executor))
    for result in found:
        assert result.accepted
        assert [start.cost for start in result.starts] == [start.cost for start in here.starts]
        np.testing.assert_array_equal(result.reconstruction.R, here.reconstruction.R)


def test_the_command_solves_in_parts(tmp_path: Path, courthouse: tuple[initfree.Problem, Reconstruction]):
    generate("set1", seed=2, noise=0.5).to_colmap(noisy=True).write(str(tmp_path))
    output = tmp_path / "solved"
    with pytest.raises(SystemExit) as stop:
        command(["solve", str(tmp_path), "--output", str(output), "--parts", "25", "--quiet"])
    assert not stop.value.code
    run = json.loads((output / "run.json").read_text())
    assert run["winner"] == "parts"
    assert any(note.startswith("solved in 2 parts; 2 were accepted") for note in run["notes"])
    for refused in (["--parts", "2"], ["--parts", "25", "--strategy", "single"]):
        with pytest.raises(SystemExit) as stop:
            command(["solve", str(tmp_path), "--output", str(output), *refused, "--quiet"])
        assert stop.value.code == 2


def test_parts_need_known_intrinsics_and_three_cameras(courthouse: tuple[initfree.Problem, Reconstruction]):
    problem, _ = courthouse
    with pytest.raises(InputError, match="parts of 2 cameras; expected at least 3"):
        solve_in_parts(problem, cameras=2)
    unknown = replace(problem, intrinsics="free")
    with pytest.raises(InputError, match="known intrinsics"):
        solve_in_parts(unknown)
