"""Intrinsics unknown, wrong or not to be told: guessed and found, doubted, or said so."""

from dataclasses import replace

import numpy as np
import pytest
from models import to_reconstruction
from scipy.spatial.transform import Rotation
from solving import single
from synthetic import Scene, ring, tracks_of

import initfree
from initfree.auto.doubt import euclidean_to_projective, without_intrinsics
from initfree.two_view.focal import guess_focals, unequal, with_focals
from initfree.two_view.geometry import two_view_geometries

pytestmark = pytest.mark.slow


def street(cameras: int = 24, landmarks: int = 1500, noise: float = 0.5) -> Scene:
    """Cameras that drive along a bend and look ahead, between house fronts: forward motion, no point in common."""
    rng = np.random.default_rng(1)
    angle = np.linspace(0.0, 1.6, cameras)
    radius = 20.0
    centres = np.column_stack([radius * np.sin(angle), np.zeros(cameras), radius * (1.0 - np.cos(angle))])
    centres[:, 1] += 0.05 * rng.normal(size=cameras)
    forward = np.column_stack([np.cos(angle), np.zeros(cameras), np.sin(angle)])
    down = np.broadcast_to([0.0, 1.0, 0.0], forward.shape)
    R = np.stack([np.cross(down, forward), down, forward], axis=1)
    R = Rotation.from_rotvec(0.03 * rng.normal(size=(cameras, 3))).as_matrix() @ R
    along, side = rng.uniform(0.0, 2.2, landmarks), rng.choice([-1.0, 1.0], landmarks)
    away = radius + side * rng.uniform(3.0, 5.0, landmarks)
    X = np.column_stack([away * np.sin(along), rng.uniform(-3.0, 2.0, landmarks), radius - away * np.cos(along)])
    y = np.einsum("iab,jib->jia", R, X[:, None] - centres[None])
    m = y[..., :2] / y[..., 2:]
    visible = (y[..., 2] > 2.0) & (y[..., 2] < 15.0) & np.all(np.abs(420.0 * m) < (320.0, 240.0), axis=2)
    kept = visible.sum(axis=1) >= 3
    observed = m[kept][visible[kept]]
    observed = observed + noise / 420.0 * rng.normal(size=observed.shape)
    return Scene(tracks_of(visible[kept]), observed, R, centres, X[kept], 420.0)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ring(cameras=16, landmarks=400, noise=0.5, keep=0.6, min_observations=3)


def test_how_unequal_singular_values_are_is_that_of_their_decomposition():
    rng = np.random.default_rng(0)
    F, fk, fl = rng.normal(size=(5, 3, 3)), rng.uniform(0.5, 3.0, size=(5, 7)), rng.uniform(0.5, 3.0, size=(5, 1))
    F[:, :, 2] = F[:, :, :2] @ [0.3, -0.7]  # rank two, as of every pair
    found = unequal(F, fk, fl)
    for n, k in np.ndindex(5, 7):
        first, second, _ = np.linalg.svd(np.diag([fk[n, k]] * 2 + [1.0]) @ F[n] @ np.diag([fl[n, 0]] * 2 + [1.0]))[1] ** 2
        assert found[n, k] == pytest.approx(((first - second) / (first + second)) ** 2, abs=1e-12)


def test_focal_lengths_are_guessed_from_pairs():
    """Not on a ring: of two cameras equally far from where their axes meet, no pair tells the focal length."""
    problem = initfree.load(to_reconstruction(street(noise=0.2), "SIMPLE_PINHOLE"), intrinsics="unknown")
    focal = guess_focals(problem, 0)
    assert focal is not None
    assert focal * problem.unit[0, 0] == pytest.approx(np.full(24, 420.0), rel=0.15)


def test_a_guess_off_by_a_third_leaves_rotations_of_pairs_usable():
    scene = street()
    problem = initfree.load(to_reconstruction(scene, "SIMPLE_PINHOLE"), intrinsics="unknown")
    true = 420.0 / problem.unit[0, 0]
    seen = with_focals(problem, np.full(problem.tracks.cameras, 1.33 * true))
    assert seen.calibrated
    assert seen.m * seen.unit == pytest.approx(problem.m * problem.unit)
    pairs = two_view_geometries(seen, 0)
    errors = [Rotation.from_matrix(p.R @ (scene.R[p.k] @ scene.R[p.l].T).T).magnitude() for p in pairs]
    assert np.degrees(np.median(errors)) < 4.0


def test_pairs_without_matches_give_no_guess():
    scene = ring(cameras=12, landmarks=150, keep=0.35, min_observations=3)
    problem = initfree.load(to_reconstruction(scene, "SIMPLE_PINHOLE"), intrinsics="unknown")
    assert np.tril(problem.tracks.covisibility, -1).max() < 16
    assert guess_focals(problem, 0) is None


@pytest.mark.parametrize("make", [ring, street])
def test_focal_length_and_distortion_are_found(make):
    scene = make(cameras=24, landmarks=1500, noise=0.5)
    truth = to_reconstruction(scene, "RADIAL")
    result = initfree.solve(initfree.load(truth, intrinsics="unknown"))
    assert result.certificate.accepted
    metrics = initfree.evaluate(result, truth)
    assert min(metrics.rotation_auc5, metrics.translation_auc5) > 97.0
    camera = result.to_colmap().cameras[3]
    assert camera.model_name in ("SIMPLE_RADIAL", "RADIAL")
    assert camera.params[0] == pytest.approx(420.0, rel=0.01)
    assert camera.params[3] == pytest.approx(-0.05, abs=0.03)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_focal_lengths_that_images_do_not_tell_are_not_accepted(scene, noise):
    """Cameras side by side, all turned the same way."""
    centres = np.column_stack([np.linspace(-2.0, 2.0, 10), 0.3 * np.sin(np.arange(10)), np.zeros(10)])
    landmarks = scene.landmarks[:200] + np.array([0.0, 0.0, 6.0])
    R = np.broadcast_to(np.eye(3), (10, 3, 3))
    tracks = tracks_of(np.ones((200, 10), dtype=bool))
    x = landmarks[tracks.landmark] - centres[tracks.cam]
    m = x[:, :2] / x[:, 2:] + noise / 420.0 * np.random.default_rng(0).normal(size=(len(x), 2))
    shifted = Scene(tracks, m, R, centres, landmarks, 420.0)
    result = initfree.solve(initfree.load(to_reconstruction(shifted, "SIMPLE_PINHOLE"), intrinsics="unknown"))
    assert not result.certificate.accepted
    # Without a focal length a scene seen from one side may be turned inside out too.
    assert any(word in result.certificate.reason for word in ("do not determine the focal length", "inside out"))


def test_wrong_intrinsics_are_refined(scene):
    truth = to_reconstruction(scene, "SIMPLE_PINHOLE")
    given = to_reconstruction(scene, "SIMPLE_PINHOLE")
    given.cameras[3].params = [450.0, 260.0, 270.0]
    result = initfree.solve(initfree.load(given))
    assert result.certificate.accepted
    assert "intrinsics look wrong" in result.notes[0]
    camera = result.to_colmap().cameras[3]
    assert camera.model_name == "SIMPLE_PINHOLE"
    assert camera.params == pytest.approx([420.0, 320.0, 240.0], rel=0.01)
    metrics = initfree.evaluate(result, truth)
    assert min(metrics.rotation_auc5, metrics.translation_auc5) > 95.0


def test_right_intrinsics_are_not_doubted(scene):
    noisy = replace(scene, m=scene.m + 1.0 / 420.0 * np.random.default_rng(3).normal(size=scene.m.shape))
    result = initfree.solve(initfree.load(to_reconstruction(noisy, "SIMPLE_PINHOLE")))
    assert result.certificate.evidence.median_pixels > 0.5
    assert not any("intrinsics" in note for note in result.notes)
    assert result.problem.calibrated
    assert 0.9 < euclidean_to_projective(result.problem, result.reconstruction) < 1.2


def test_without_intrinsics_is_what_loading_without_them_gives(scene):
    truth = to_reconstruction(scene)
    known, unknown = initfree.load(truth), initfree.load(truth, intrinsics="unknown")
    stripped = without_intrinsics(known)
    assert not stripped.calibrated
    assert stripped.m == pytest.approx(unknown.m)
    assert stripped.unit == pytest.approx(unknown.unit)


def sideways(cameras: int, garbage: bool) -> Scene:
    """Cameras that shift sideways and look ahead fit with any focal length; the last image may be garbage."""
    rng = np.random.default_rng(0)
    centres = np.column_stack([np.linspace(-2.0, 2.0, cameras), np.zeros((cameras, 2))])
    landmarks = rng.uniform((-3.0, -3.0, 4.0), (3.0, 3.0, 9.0), size=(300, 3))
    tracks = tracks_of(np.ones((len(landmarks), cameras), dtype=bool))
    x = landmarks[tracks.landmark] - centres[tracks.cam]
    m = x[:, :2] / x[:, 2:] + 0.5 / 420.0 * rng.normal(size=(len(x), 2))
    if garbage:
        seen = np.flatnonzero(tracks.cam == cameras - 1)
        m[seen] = m[rng.permutation(seen)]
    return Scene(tracks, m, np.repeat(np.eye(3)[None], cameras, axis=0), centres, landmarks, 420.0)


def test_a_single_pipeline_asks_whether_the_focal_length_is_told():
    result = single(initfree.load(to_reconstruction(sideways(10, garbage=False)), intrinsics="unknown"))
    assert not result.certificate.accepted


def test_the_part_without_failing_images_is_asked_too():
    result = initfree.solve(initfree.load(to_reconstruction(sideways(26, garbage=True)), intrinsics="unknown"))
    assert not result.certificate.accepted
