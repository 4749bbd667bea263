"""Resection: a camera's pose from landmarks that the other cameras hold."""

from dataclasses import replace

import numpy as np
from synthetic import ring

from initfree.euclidean import MetricState, resect


def test_lost_cameras_come_back_despite_wrong_matches() -> None:
    scene = ring(12, 300, noise=0.5, min_observations=4, seed=15)
    rng = np.random.default_rng(0)
    m = scene.m.copy()
    wrong = rng.random(len(m)) < 0.1
    m[wrong] = rng.uniform(-0.7, 0.7, size=(wrong.sum(), 2))
    t = -(scene.R @ scene.centres[:, :, None])[:, :, 0]
    truth = MetricState(scene.R, t, np.ones(12), np.zeros((12, 2)), scene.landmarks)
    R, t = truth.R.copy(), truth.t.copy()
    R[[2, 5]], t[[2, 5]] = R[[0, 1]], -t[[0, 1]]
    state, found = resect(scene.tracks, m, scene.pixels, replace(truth, R=R, t=t), [2, 5])
    assert found.all()
    np.testing.assert_allclose(state.R, truth.R, atol=0.01)
    np.testing.assert_allclose(state.t, truth.t, atol=0.03)
    others = [k for k in range(12) if k not in (2, 5)]
    np.testing.assert_array_equal(state.R[others], truth.R[others])


def test_distortion_and_focal_length_enter() -> None:
    scene = ring(8, 150, min_observations=3, seed=16)
    n = np.sum(scene.m**2, axis=1, keepdims=True)
    m = 1.3 * scene.m * (1.0 - 0.1 * n + 0.05 * n**2)
    t = -(scene.R @ scene.centres[:, :, None])[:, :, 0]
    truth = MetricState(scene.R, t, np.full(8, 1.3), np.tile([-0.1, 0.05], (8, 1)), scene.landmarks)
    lost = replace(truth, R=np.roll(truth.R, 1, axis=0), t=np.roll(truth.t, 1, axis=0))
    lost = replace(truth, R=np.where(np.arange(8)[:, None, None] == 3, lost.R, truth.R))
    state, found = resect(scene.tracks, m, scene.pixels, lost, [3])
    assert found.all()
    np.testing.assert_allclose(state.R, truth.R, atol=1e-5)
    np.testing.assert_allclose(state.t, truth.t, atol=1e-5)


def test_a_camera_with_too_few_landmarks_keeps_its_pose() -> None:
    scene = ring(8, 150, min_observations=3, seed=17)
    t = -(scene.R @ scene.centres[:, :, None])[:, :, 0]
    truth = MetricState(scene.R, t, np.ones(8), np.zeros((8, 2)), scene.landmarks)
    weight = (scene.tracks.cam != 2).astype(float)
    state, found = resect(scene.tracks, scene.m, scene.pixels, truth, [2], weight=weight)
    assert not found.any()
    np.testing.assert_array_equal(state.R, truth.R)
