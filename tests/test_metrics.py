"""The paper's metrics, against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.spatial.transform import Rotation

from initfree.data.reconstruction import Reconstruction
from initfree.evaluation import auc, evaluate_models, nearest_rotation, similarity

seeds = st.integers(0, 2**31)


def random_model(rng: np.random.Generator, cameras: int = 7, landmarks: int = 30) -> Reconstruction:
    R = Rotation.random(cameras, rng=rng).as_matrix()
    names = tuple(f"{k}.jpg" for k in range(cameras))
    return Reconstruction.of_poses(
        names, R, rng.normal(size=(cameras, 3)), np.arange(landmarks), rng.normal(size=(landmarks, 3))
    )


def transformed(model: Reconstruction, s: float, G: np.ndarray, shift: np.ndarray) -> Reconstruction:
    """The model in the world X' = s G X + shift."""
    centres = s * model.centres @ G.T + shift
    R = model.R @ G.T
    t = -np.einsum("nij,nj->ni", R, centres)
    return Reconstruction.of_poses(model.names, R, t, model.ids, s * model.xyz @ G.T + shift)


def test_auc_is_the_integral_of_the_cumulative_distribution():
    errors = np.random.default_rng(0).exponential(6.0, size=50)
    for threshold in (5, 10, 20):
        area = quad(lambda x: np.mean(errors <= x), 0.0, threshold, points=sorted(errors[errors < threshold]), limit=500)[0]
        assert auc(errors, threshold) == pytest.approx(100.0 * area / threshold, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, scale=st.floats(0.01, 100.0))
def test_a_similarity_of_the_world_changes_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    truth = random_model(rng)
    estimate = transformed(truth, scale, Rotation.random(rng=rng).as_matrix(), rng.normal(size=3))
    metrics = evaluate_models(estimate, truth)
    assert metrics.rotation_auc5 == pytest.approx(100.0, abs=1e-5)
    assert metrics.translation_auc5 == pytest.approx(100.0, abs=1e-4)
    assert metrics.landmark_rmse == pytest.approx(0.0, abs=1e-9)


def test_pairwise_errors_against_the_papers_formulas():
    rng = np.random.default_rng(3)
    truth = random_model(rng)
    wobble = Rotation.from_rotvec(rng.normal(scale=0.1, size=(7, 3))).as_matrix()
    estimate = Reconstruction.of_poses(
        truth.names, wobble @ truth.R, truth.t + rng.normal(scale=0.2, size=(7, 3)), truth.ids, truth.xyz
    )
    G = nearest_rotation(sum(t.T @ e for t, e in zip(truth.R, estimate.R, strict=True)))
    rotation, translation = [], []
    for i in range(7):
        for j in range(i + 1, 7):
            delta = (estimate.R[i] @ estimate.R[j].T) @ (truth.R[i] @ truth.R[j].T).T
            rotation.append(np.degrees(np.arccos((np.trace(delta) - 1.0) / 2.0)))
            a = G @ (estimate.centres[j] - estimate.centres[i])
            b = truth.centres[j] - truth.centres[i]
            translation.append(np.degrees(np.arccos(abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b))))
    metrics = evaluate_models(estimate, truth)
    for threshold in (5, 10, 20):
        assert getattr(metrics, f"rotation_auc{threshold}") == pytest.approx(auc(np.array(rotation), threshold))
        assert getattr(metrics, f"translation_auc{threshold}") == pytest.approx(auc(np.array(translation), threshold))


def test_missing_and_broken_cameras_count_as_failures():
    truth = random_model(np.random.default_rng(0), cameras=5)
    keep = Reconstruction.of_poses(truth.names[:4], truth.R[:4], truth.t[:4], truth.ids, truth.xyz)
    metrics = evaluate_models(keep, truth)
    assert metrics.cameras_recovered == 4
    assert metrics.rotation_auc20 == pytest.approx(100.0 * 6 / 10)
    t = truth.t.copy()
    t[2] = np.nan
    broken = evaluate_models(Reconstruction.of_poses(truth.names, truth.R, t, truth.ids, truth.xyz), truth)
    assert broken.translation_auc20 == pytest.approx(100.0 * 6 / 10)


def test_landmark_errors():
    truth = random_model(np.random.default_rng(0), landmarks=400)
    xyz = truth.xyz + np.random.default_rng(1).normal(scale=0.01, size=truth.xyz.shape)
    estimate = Reconstruction.of_poses(truth.names, truth.R, truth.t, truth.ids, xyz)
    metrics = evaluate_models(estimate, truth)
    s, R, t = similarity(xyz, truth.xyz)
    errors = np.linalg.norm(s * xyz @ R.T + t - truth.xyz, axis=1)
    assert metrics.landmark_median == pytest.approx(np.median(errors))
    assert metrics.landmark_rmse == pytest.approx(0.01 * np.sqrt(3.0), rel=0.1)
    assert metrics.landmark_p90 == pytest.approx(np.percentile(errors, 90))


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_umeyama_is_a_local_minimum_over_proper_similarities(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(12, 3)), rng.normal(size=(12, 3))
    s, R, t = similarity(x, y)
    assert np.linalg.det(R) == pytest.approx(1.0)

    def cost(s, R, t):
        return np.sum((s * x @ R.T + t - y) ** 2)

    for _ in range(10):
        turn = Rotation.from_rotvec(rng.normal(scale=1e-3, size=3)).as_matrix()
        assert cost(s * (1.0 + rng.normal(scale=1e-3)), turn @ R, t + rng.normal(scale=1e-3, size=3)) >= cost(s, R, t)


def test_mirrored_structure_is_not_a_match():
    truth = random_model(np.random.default_rng(0))
    mirrored = Reconstruction.of_poses(truth.names, truth.R, truth.t, truth.ids, truth.xyz * (1.0, 1.0, -1.0))
    assert evaluate_models(mirrored, truth).landmark_rmse > 0.3
