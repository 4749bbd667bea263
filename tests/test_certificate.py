"""Garbage must not be accepted, whatever the fit."""

from dataclasses import replace

import numpy as np
import pytest
from models import to_reconstruction
from solving import single
from synthetic import Scene, ring

import initfree
from initfree.certificate import History
from initfree.certificate import evidence as figures
from initfree.certificate.focal import FocalLengths, clear
from initfree.certificate.thresholds import SIGNIFICANT
from initfree.certificate.verdict import certify, judge
from initfree.generator import generate


def rotating(noise: float) -> Scene:
    """Cameras that only turn: every landmark is a direction."""
    scene = ring(cameras=12, landmarks=400, min_observations=3)
    rng = np.random.default_rng(0)
    centres = np.zeros_like(scene.centres)
    far = rng.normal(size=scene.landmarks.shape) * 0.1 + np.array([0.0, 0.0, 5.0])
    angles = np.linspace(-0.2, 0.2, 12)
    R = np.stack([[[np.cos(a), 0.0, np.sin(a)], [0.0, 1.0, 0.0], [-np.sin(a), 0.0, np.cos(a)]] for a in angles])
    spread = far * (3.0, 3.0, 1.0)
    x = np.einsum("nij,nj->ni", R[scene.tracks.cam], spread[scene.tracks.landmark])
    m = x[:, :2] / x[:, 2:] + noise / scene.focal * rng.normal(size=(len(x), 2))
    return Scene(scene.tracks, m, R, centres, spread, scene.focal)


def collapsed(point: tuple[float, float]) -> Scene:
    scene = ring(cameras=12, landmarks=400, min_observations=3)
    return Scene(
        scene.tracks, np.tile(point, (scene.tracks.observations, 1)), scene.R, scene.centres, scene.landmarks, 420.0
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "scene",
    [rotating(0.0), rotating(0.5), collapsed((0.0, 0.0)), collapsed((0.2, -0.1))],
    ids=["pure rotation", "pure rotation with noise", "all at the principal point", "all at one point"],
)
def test_degenerate_data_are_not_accepted(scene):
    result = single(initfree.load(to_reconstruction(scene, "SIMPLE_PINHOLE")))
    assert not result.certificate.accepted
    assert result.certificate.reason


def test_duplicate_cameras_are_not_accepted_as_a_baseline():
    scene = ring(cameras=12, landmarks=400, min_observations=3, occlusion=False)
    R, centres = np.repeat(scene.R[:1], 12, axis=0), np.repeat(scene.centres[:1], 12, axis=0)
    x = (scene.landmarks - centres[0]) @ R[0].T
    m = (x[:, :2] / x[:, 2:])[scene.tracks.landmark]
    same = Scene(scene.tracks, m, R, centres, scene.landmarks, scene.focal)
    assert not single(initfree.load(to_reconstruction(same, "SIMPLE_PINHOLE"))).certificate.accepted


def test_two_images_are_refused_before_a_solve():
    scene = ring(cameras=2, landmarks=200, occlusion=False, min_observations=2)
    with pytest.raises(initfree.InputError, match="two images do not check each other"):
        initfree.load(to_reconstruction(scene), min_obs=2)


def test_a_good_reconstruction_is_accepted():
    scene = ring(cameras=12, landmarks=300, min_observations=3, noise=0.5)
    certificate = single(initfree.load(to_reconstruction(scene))).certificate
    assert certificate.accepted
    assert certificate.evidence.parallax > 5.0
    assert certificate.evidence.by_camera.share.min() > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.3, 1.5])
def test_cameras_that_only_turn_are_told_whatever_the_noise(noise: float):
    """By what rotations and homographies leave over, in units of the noise: 0.45 px are no baseline at 0.3 px of noise."""
    for intrinsics in ("known", "unknown"):
        model = generate("adversarial-panorama", seed=5, shuffle=True, noise=noise).to_colmap(noisy=True)
        problem = initfree.load(model, intrinsics=intrinsics)
        result = initfree.solve(problem)
        assert not result.accepted
        assert "alone explain the images" in result.certificate.reason


def test_a_small_baseline_is_one_where_the_noise_is_smaller():
    result = initfree.solve(initfree.load(generate("set2", shuffle=True, noise=0.1).to_colmap(noisy=True)))
    evidence = result.certificate.evidence
    assert result.accepted
    moved = evidence.assuming(baselines=replace(evidence.baselines, turning=1.0, three_places=1.0))
    assert judge(moved).accepted
    assert not judge(moved.assuming(noise=0.6)).accepted


def test_camera_models_that_fit_as_well_must_agree_on_the_focal_length():
    result = initfree.solve(initfree.load(generate("set2", shuffle=True, noise=0.5).to_colmap(noisy=True)))
    tried = [("SIMPLE_PINHOLE", 900.0, 500.0), ("RADIAL", 594.0, 277.0), ("OPENCV", 540.0, 248.0)]
    lengths = FocalLengths.of(tried)
    assert lengths == FocalLengths(540.0, 594.0, ("OPENCV", "RADIAL"))
    certificate = judge(result.certificate.evidence.adding(focal_lengths=lengths))
    assert not certificate.accepted
    assert "540 px with a OPENCV camera and 594 px with a RADIAL one" in certificate.reason
    assert FocalLengths.of(tried[:1]) is None
    close = FocalLengths.of([("RADIAL", 594.0, 277.0), ("OPENCV", 590.0, 248.0)])
    assert judge(result.certificate.evidence.adding(focal_lengths=close)).accepted


def test_a_rise_that_is_known_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch):
    model = generate("set2", shuffle=True, noise=0.5).to_colmap(noisy=True)
    unknown = initfree.load(model, intrinsics="unknown")
    result = initfree.solve(unknown, initfree.SolveConfig(upgrade="calibrated"), strategy="single")
    asked = certify(result.problem, result.reconstruction).evidence.focal_rise

    def never(*_: object) -> float:
        raise AssertionError("it is known")

    monkeypatch.setattr(figures, "focal_rise", never)
    again = certify(result.problem, result.reconstruction, History(focal_rise=asked)).evidence.focal_rise
    assert asked is not None
    assert again == asked
    assert clear(asked)
    assert not clear(None)
    assert not clear(2.0 * SIGNIFICANT)


@pytest.mark.slow
def test_a_plane_is_told_among_wrong_matches():
    """Homographies fit no pair with wrong matches in it: what they leave is asked again of the clean ones."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-3.0, 3.0, 400), rng.uniform(-2.0, 2.0, 400), np.zeros(400)])
    image, landmark, xy = [], [], []
    for k, angle in enumerate(np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)):
        centre = np.array([2.5 * np.cos(angle), 2.5 * np.sin(angle), -6.0]) + 0.3 * rng.normal(size=3)
        forward = -centre / np.linalg.norm(centre)
        right = np.cross([0.0, 1.0, 0.0], forward)
        right /= np.linalg.norm(right)
        y = (X - centre) @ np.stack([right, np.cross(forward, right), forward]).T
        pixel = 1000.0 * y[:, :2] / y[:, 2:] + (800.0, 600.0) + 0.5 * rng.normal(size=(400, 2))
        seen = np.flatnonzero(np.all((pixel > 0.0) & (pixel < (1600.0, 1200.0)), axis=1) & (rng.random(400) < 0.6))
        named, wrong = seen.copy(), np.flatnonzero(rng.random(len(seen)) < 0.05)
        named[wrong] = seen[np.roll(wrong, 1)]
        image.append(np.full(len(seen), k))
        landmark.append(named)
        xy.append(pixel[seen])
    observed = np.concatenate(image), np.concatenate(landmark), np.concatenate(xy)
    result = initfree.solve(initfree.Problem.from_tracks(*observed, sizes=(1600, 1200)))
    assert not result.accepted
    assert "homographies alone explain the images" in result.certificate.reason
