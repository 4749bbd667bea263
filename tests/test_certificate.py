"""Garbage must not be accepted, whatever the fit."""

import numpy as np
import pytest
from models import to_reconstruction
from solving import single
from synthetic import Scene, ring

import initfree


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


def test_two_images_are_not_accepted():
    scene = ring(cameras=2, landmarks=200, min_observations=2, occlusion=False)
    result = single(initfree.load(to_reconstruction(scene), min_obs=2))
    assert not result.certificate.accepted
    assert "2 images" in result.certificate.reason


def test_a_good_reconstruction_is_accepted():
    scene = ring(cameras=12, landmarks=300, min_observations=3, noise=0.5)
    certificate = single(initfree.load(to_reconstruction(scene))).certificate
    assert certificate.accepted
    assert certificate.evidence.parallax > 5.0
    assert certificate.evidence.by_camera.share.min() > 0.99
