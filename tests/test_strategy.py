"""The `auto` strategy: wrong cameras repaired, failed starts replaced, wrong matches left out, nothing wrong accepted."""

from dataclasses import replace

import numpy as np
import pytest
from models import to_reconstruction
from scipy.spatial.transform import Rotation
from synthetic import Scene, ring, tracks_of

import initfree
from initfree.certificate import certify
from initfree.problem import restricted
from initfree.repair import camera_shares, consensus, repair, repair_limits, robust_cost
from initfree.start import triangulate_projective
from initfree.two_view import two_view_geometries
from initfree.voting import vote


def with_wrong_matches(scene: Scene, share: float, seed: int = 0) -> tuple[Scene, np.ndarray]:
    """Within each camera, a share of the observations exchange their places; which ones."""
    rng = np.random.default_rng(seed)
    m, wrong = scene.m.copy(), np.zeros(len(scene.m), dtype=bool)
    for k in range(scene.tracks.cameras):
        seen = np.flatnonzero(scene.tracks.cam == k)
        chosen = rng.permutation(seen)[: max(2, round(share * len(seen)))]
        m[chosen] = scene.m[np.roll(chosen, 1)]
        wrong[chosen] = True
    return replace(scene, m=m), wrong


def projected(R: np.ndarray, centres: np.ndarray, landmarks: np.ndarray, noise: float) -> Scene:
    """Every camera sees every landmark."""
    tracks = tracks_of(np.ones((len(landmarks), len(R)), dtype=bool))
    x = np.einsum("nij,nj->ni", R[tracks.cam], landmarks[tracks.landmark] - centres[tracks.cam])
    m = x[:, :2] / x[:, 2:] + noise / 420.0 * np.random.default_rng(0).normal(size=(len(x), 2))
    return Scene(tracks, m, R, centres, landmarks, 420.0)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ring(cameras=16, landmarks=400, noise=0.5, keep=0.6, min_observations=3)


def test_repair_finds_a_wrong_camera_again(scene):
    truth = to_reconstruction(scene)
    problem = initfree.load(truth)
    right = initfree.solve(problem).metric
    R, t = right.R.copy(), right.t.copy()
    R[3] = Rotation.from_rotvec([0.0, 0.0, 2.0]).as_matrix() @ R[3]
    t[3] += 1.0
    planted = replace(right, R=R, t=t)
    assert camera_shares(problem, planted)[3] < 0.1
    repaired, rounds = repair(problem, planted, repair_limits(problem, 100, 1e-8))
    assert rounds == 1
    assert robust_cost(problem, repaired) == pytest.approx(robust_cost(problem, right), rel=1e-6)
    untouched, rounds = repair(problem, right, repair_limits(problem, 100, 1e-8))
    assert rounds == 0
    assert untouched is right


def test_a_failed_start_is_replaced(scene):
    """From random cameras and a single step the first start goes nowhere."""
    truth = to_reconstruction(scene)
    config = initfree.SolveConfig(init="normal", tolerance=0.9)
    assert not initfree.solve(initfree.load(truth), config).certificate.accepted
    result = initfree.solve_auto(initfree.load(truth), config)
    assert result.certificate.accepted
    assert result.winner == result.starts[-1].name != "normal"
    metrics = initfree.evaluate(result, truth)
    assert min(metrics.rotation_auc5, metrics.translation_auc5) > 97.0


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_wrong_matches_are_left_out(scene, share):
    truth = to_reconstruction(scene)
    spoilt, _ = with_wrong_matches(scene, share)
    problem = initfree.load(to_reconstruction(spoilt))
    result = initfree.solve_auto(problem)
    assert result.certificate.accepted
    metrics = initfree.evaluate(result, truth)
    assert min(metrics.rotation_auc5, metrics.translation_auc5) > 96.0
    assert metrics.landmark_rmse < 0.01
    assert result.problem.tracks.observations < problem.tracks.observations
    assert consensus(result.problem, result.metric).mean() > 0.99
    assert len(result.metric.xyz) == len(result.X) == result.problem.tracks.landmarks
    assert result.to_colmap().num_points3D() == result.problem.tracks.landmarks


def test_vote_finds_wrong_matches(scene):
    spoilt, wrong = with_wrong_matches(scene, 0.05)
    problem = initfree.load(to_reconstruction(spoilt))
    order = np.lexsort((scene.tracks.cam, scene.tracks.landmark))
    assert np.array_equal(order, np.arange(len(order)))
    keep = vote(problem.tracks, two_view_geometries(problem, 0, 10))
    assert np.mean(wrong[keep]) < 0.3 * np.mean(wrong)
    assert keep.mean() > 0.8
    assert vote(problem.tracks, []).all()


def test_restricted_keeps_all_cameras_or_nothing(scene):
    problem = initfree.load(to_reconstruction(scene))
    everything = restricted(problem, np.ones(problem.tracks.observations, dtype=bool))
    assert everything is not None
    assert np.array_equal(everything[0].m, problem.m)
    assert restricted(problem, problem.tracks.cam != 2) is None
    part, left = restricted(problem, problem.tracks.landmark % 3 > 0) or (problem, np.arange(0))
    assert set(np.unique(left % 3)) == {1, 2}
    assert np.array_equal(part.landmark_ids, problem.landmark_ids[left])
    assert part.dropped.landmarks == problem.dropped.landmarks + problem.tracks.landmarks - len(left)


def test_projective_triangulation_is_exact_on_exact_data():
    scene = ring(cameras=12, landmarks=150)
    X = triangulate_projective(initfree.load(to_reconstruction(scene)), scene.P)
    assert np.allclose(X[:, :3] / X[:, 3:], scene.landmarks, atol=1e-6)


def test_same_seed_same_result(scene):
    problem = initfree.load(to_reconstruction(with_wrong_matches(scene, 0.1)[0]))
    a, b = (initfree.solve_auto(problem, initfree.SolveConfig(seed=3)) for _ in range(2))
    assert np.array_equal(a.metric.R, b.metric.R)
    assert np.array_equal(a.metric.xyz, b.metric.xyz)
    assert a.winner == b.winner


def test_easy_data_need_one_start(scene):
    result = initfree.solve_auto(initfree.load(to_reconstruction(scene)))
    assert [start.name for start in result.starts] == ["spectral"]
    assert [stage.name for stage in result.stages] == ["varpro", "refinement", "upgrade", "adjustment"]


def test_pure_rotation_is_rejected_with_the_reason():
    rng = np.random.default_rng(1)
    R = Rotation.from_rotvec(rng.normal(scale=0.15, size=(8, 3))).as_matrix()
    landmarks = np.column_stack([rng.uniform(-1.0, 1.0, size=(100, 2)), rng.uniform(3.0, 6.0, size=100)])
    result = initfree.solve_auto(initfree.load(to_reconstruction(projected(R, np.zeros((8, 3)), landmarks, 0.5))))
    assert not result.certificate.accepted
    assert "only turn" in result.certificate.reason


def test_two_views_are_rejected_with_the_reason():
    scene = ring(cameras=12, landmarks=200)
    two = projected(scene.R[:2], scene.centres[:2], scene.landmarks, 0.5)
    result = initfree.solve_auto(initfree.load(to_reconstruction(two), min_obs=2))
    assert not result.certificate.accepted
    assert "2 images" in result.certificate.reason


def test_a_bent_reconstruction_is_not_accepted(scene):
    """Errors of every size, nine in ten observations within 4 px: wrong matches do not look like that."""
    problem = initfree.load(to_reconstruction(scene))
    metric = initfree.solve(problem).metric
    rng = np.random.default_rng(0)
    turn = Rotation.from_rotvec(rng.normal(scale=0.006, size=(problem.tracks.cameras, 3))).as_matrix()
    bent = replace(metric, R=turn @ metric.R)
    assert certify(problem.tracks, problem.names, problem.m, problem.pixels, metric).accepted
    verdict = certify(problem.tracks, problem.names, problem.m, problem.pixels, bent)
    assert verdict.inlier_share > 0.6
    assert not verdict.accepted


def test_ranking_needs_the_adjustment(scene):
    with pytest.raises(initfree.InputError, match="--strategy single"):
        initfree.solve_auto(initfree.load(to_reconstruction(scene)), initfree.SolveConfig(adjust=False))
