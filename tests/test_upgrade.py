"""Metric upgrades: exact on exact cameras, invariant to the projective frame where they claim to be."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from synthetic import Scene, ring

from initfree.data.reconstruction import Reconstruction
from initfree.evaluation import evaluate_models
from initfree.stages.upgrade import Projective, Upgraded, upgrade
from initfree.stages.upgrade.dual_quadric import image_of_quadric
from initfree.stages.upgrade.linear import linear_quadric
from initfree.stages.upgrade.linear1997 import nullity
from initfree.stages.upgrade.refined import refine_quadric
from initfree.stages.upgrade.selected import better


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Cameras that do not all look at one point, or the uncalibrated upgrades would be degenerate."""
    ring_ = ring(cameras=12, landmarks=80, min_observations=3)
    wobble = Rotation.from_rotvec(np.random.default_rng(0).normal(scale=0.1, size=(12, 3))).as_matrix()
    return Scene(ring_.tracks, ring_.m, wobble @ ring_.R, ring_.centres, ring_.landmarks, ring_.focal)


def projective(scene: Scene, rng: np.random.Generator, *, focal: np.ndarray | None = None, noise: float = 0.0) -> Projective:
    """The scene in a random projective frame, cameras and landmarks randomly scaled."""
    P = np.concatenate([scene.R, -(scene.R @ scene.centres[:, :, None])], axis=2)
    if focal is not None:
        P = P * np.stack([focal, focal, np.ones_like(focal)], axis=1)[:, :, None]
    H = rng.normal(size=(4, 4))
    X = np.linalg.solve(H, np.column_stack([scene.landmarks, np.ones(len(scene.landmarks))]).T).T
    P = P @ H
    P = P / np.linalg.norm(P, axis=(1, 2), keepdims=True) + noise * rng.normal(size=P.shape)
    return Projective(scene.tracks, P * rng.normal(size=(len(P), 1, 1)), X * rng.normal(size=(len(X), 1)), focal is None)


def score(scene: Scene, upgraded: Upgraded):
    names = tuple(str(k) for k in range(scene.tracks.cameras))
    ids = np.arange(scene.tracks.landmarks)
    truth = Reconstruction.of_poses(names, scene.R, -(scene.R @ scene.centres[:, :, None])[:, :, 0], ids, scene.landmarks)
    return evaluate_models(replace(upgraded.reconstruction, names=names, ids=ids), truth)


@pytest.mark.parametrize(
    "name",
    [
        *("linear1997", "linear1997-public", "linear2004", "linear", "calibrated"),
        *("refined", "refined1997", "selected", "selected-linear"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_exact_calibrated_cameras(scene, name, seed):
    upgraded = upgrade(name, projective(scene, np.random.default_rng(seed)))
    metrics = score(scene, upgraded)
    assert metrics.rotation_auc5 == pytest.approx(100.0, abs=1e-3)
    assert metrics.translation_auc5 == pytest.approx(100.0, abs=1e-3)
    assert metrics.landmark_rmse < 1e-5
    assert upgraded.positive_depths == 1.0
    assert np.allclose(upgraded.reconstruction.focal, 1.0, atol=1e-5)
    assert upgraded.conditioning > 1e3
    assert upgraded.anisotropy == pytest.approx(1.0, abs=1e-5)
    assert np.allclose(np.linalg.det(upgraded.reconstruction.R), 1.0)


@pytest.mark.parametrize("name", ["refined", "calibrated", "selected-linear"])
def test_unknown_focal_lengths_come_out(scene, name):
    rng = np.random.default_rng(1)
    focal = rng.uniform(1.1, 2.0, size=12)
    upgraded = upgrade(name, projective(scene, rng, focal=focal))
    assert np.allclose(upgraded.reconstruction.focal, focal, rtol=1e-3)
    assert score(scene, upgraded).rotation_auc5 > 99.5


@pytest.mark.parametrize("name", ["linear", "calibrated", "refined"])
def test_noisy_cameras_in_any_frame_give_the_same_answer(scene, name):
    """The same noisy cameras, moved to another projective frame and rescaled."""
    rng = np.random.default_rng(2)
    first = projective(scene, rng, noise=1e-4)
    H = rng.normal(size=(4, 4))
    scale = rng.normal(size=(12, 1, 1))
    second = Projective(scene.tracks, first.P @ H * scale, np.linalg.solve(H, first.X.T).T, True)
    a, b = upgrade(name, first), upgrade(name, second)
    # One rotation of the world turns a into b.
    Ra, Rb = a.reconstruction.R, b.reconstruction.R
    assert np.abs(Ra @ (Ra[0].T @ Rb[0]) - Rb).max() < 1e-4
    first_score, second_score = score(scene, a), score(scene, b)
    assert first_score.translation_auc5 == pytest.approx(second_score.translation_auc5, abs=1e-2)
    assert first_score.landmark_rmse == pytest.approx(second_score.landmark_rmse, rel=1e-2)


def test_linear1997_depends_on_the_frame(scene):
    """What is wrong with it, kept on record: the same noisy cameras in other projective frames give other answers."""
    rng = np.random.default_rng(0)
    first = projective(scene, rng, noise=1e-3)
    spread = {}
    for name in ("linear1997", "linear"):
        scores = []
        for _ in range(4):
            H = rng.normal(size=(4, 4))
            moved = Projective(scene.tracks, first.P @ H, np.linalg.solve(H, first.X.T).T, True)
            scores.append(score(scene, upgrade(name, moved)).rotation_auc20)
        spread[name] = np.ptp(scores)
    assert spread["linear1997"] > 0.01
    assert spread["linear"] < 1e-4


def test_axes_through_one_point_are_degenerate_without_the_focal_length():
    """Set 6's trap: P_i O ~ e3 for all cameras puts OO' in the null space; known focal lengths remove it."""
    scene = ring(cameras=12, landmarks=80, min_observations=3)
    aimed = projective(scene, np.random.default_rng(0))
    assert upgrade("linear1997", aimed).conditioning < 1e6
    assert upgrade("calibrated", aimed).conditioning > 1e6
    assert score(scene, upgrade("calibrated", aimed)).rotation_auc5 == pytest.approx(100.0, abs=1e-3)


def test_one_bad_camera_does_not_spoil_the_calibrated_upgrade(scene):
    good = projective(scene, np.random.default_rng(0), noise=1e-6)
    P = good.P.copy()
    P[4] = np.random.default_rng(9).normal(size=(3, 4))
    metrics = score(scene, upgrade("calibrated", Projective(scene.tracks, P, good.X, True)))
    assert metrics.rotation_auc5 > 100.0 * 55 / 66 - 1.0


def test_none_reads_metric_cameras_as_they_are(scene):
    P = np.concatenate([scene.R, -(scene.R @ scene.centres[:, :, None])], axis=2)
    X = np.column_stack([scene.landmarks, np.ones(len(scene.landmarks))])
    upgraded = upgrade("none", Projective(scene.tracks, -2.0 * P, X, True))
    assert score(scene, upgraded).rotation_auc5 == pytest.approx(100.0)
    assert upgraded.singular_values == ()


def test_image_of_quadric():
    rng = np.random.default_rng(0)
    P, A = rng.normal(size=(3, 3, 4)), rng.normal(size=(4, 4))
    omega = A + A.T
    expected = P @ omega @ P.transpose(0, 2, 1)
    i, j = np.triu_indices(4)
    got = image_of_quadric(P) @ (omega[i, j] * np.where(i == j, 1.0, np.sqrt(2.0)))
    assert np.allclose(got, expected[:, *np.triu_indices(3)])


def test_refinement_moves_wrong_focal_lengths_to_the_true_ones(scene):
    rng = np.random.default_rng(0)
    exact = projective(scene, rng, focal=np.full(12, 1.4))
    start = linear_quadric(exact)
    _, focal = refine_quadric(exact.P, start.Q, rng.uniform(1.0, 2.0, size=12))
    assert np.allclose(focal, 1.4, rtol=1e-3)


def test_nullity_of_the_linear_upgrade_tells_degenerate_cameras(scene):
    """One for cameras whose axes miss one another; two where all axes meet in a point, or are parallel."""
    rng = np.random.default_rng(0)
    assert nullity(projective(scene, rng).P) == 1
    assert nullity(projective(ring(cameras=12, landmarks=80, min_observations=3), rng).P) == 2
    parallel = np.concatenate([np.tile(np.eye(3), (12, 1, 1)), rng.normal(size=(12, 3, 1))], axis=2)
    assert nullity(parallel @ rng.normal(size=(4, 4))) >= 2


def test_selection_prefers_cheirality_and_then_plausible_focal_lengths(scene):
    """Not the order of the candidates: of two that see all in front, the one whose focal lengths are nearer to 1."""
    exact = projective(scene, np.random.default_rng(0))
    good = upgrade("calibrated", exact)
    zoomed = replace(good, reconstruction=replace(good.reconstruction, focal=3.0 * good.reconstruction.focal))
    behind = replace(good, positive_depths=0.4)
    assert better(exact, good, zoomed) is good
    assert better(exact, zoomed, good) is good
    assert better(exact, behind, zoomed) is zoomed


def test_the_public_upgrades_leave_nan_where_the_quadric_is_indefinite(scene):
    """Random cameras have no Ω*: its third eigenvalue is negative about as often as not, and that is a failed run."""
    failed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, landmarks = scene.tracks.cameras, scene.tracks.landmarks
        wild = Projective(scene.tracks, rng.normal(size=(n, 3, 4)), rng.normal(size=(landmarks, 4)), False)
        upgraded = upgrade("linear1997-public", wild)
        nowhere = np.isnan(upgraded.reconstruction.R)
        assert nowhere.all() or not nowhere.any()
        if nowhere.all():
            failed += 1
            metrics = score(scene, upgraded)
            assert metrics.rotation_auc20 == metrics.translation_auc20 == 0.0
            assert metrics.cameras_recovered == 0
            assert np.isnan(metrics.landmark_rmse)
    assert 0 < failed < 12


def test_the_public_upgrades_weigh_in_their_own_units(scene):
    """In pixels skew and aspect outweigh the principal point; in units of the image's size the focal length counts too."""
    noisy = projective(scene, np.random.default_rng(0), focal=np.full(12, 1.3), noise=1e-4)
    pixels = replace(noisy, pixels=np.full(12, 320.0), sizes=np.full(12, 1120.0))
    focal = {
        name: np.median(np.abs(np.log(upgrade(name, pixels).reconstruction.focal / 1.3)))  # type: ignore[arg-type]
        for name in ("linear1997-public", "linear2004")
    }
    assert not np.allclose(
        upgrade("linear1997-public", noisy).reconstruction.focal, upgrade("linear1997-public", pixels).reconstruction.focal
    )
    assert max(focal.values()) < 0.5
