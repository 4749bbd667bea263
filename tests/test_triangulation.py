"""Landmarks from fixed cameras (triangulation) and cameras from fixed landmarks (resection)."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import Scene, ring
from test_euclidean import observed, truth_of

from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Tracks
from initfree.stages.euclidean import Status, resect, triangulate

pytestmark = pytest.mark.slow


def test_triangulation_is_exact_and_needs_no_start() -> None:
    scene = ring(10, 200, min_observations=2, keep=0.5, seed=10)
    rng = np.random.default_rng(0)
    truth = replace(truth_of(scene), focal=rng.uniform(0.8, 1.2, 10), radial=rng.normal(scale=0.05, size=(10, 2)))
    xyz, status = triangulate(replace(scene, m=observed(scene, truth)), truth)
    np.testing.assert_allclose(xyz, scene.landmarks, atol=1e-6)
    assert np.all(status == Status.FOUND)
    kept, _ = triangulate(replace(scene, m=observed(scene, truth)), truth, scene.landmarks)
    np.testing.assert_allclose(kept, scene.landmarks, atol=1e-9)


def test_a_landmark_behind_all_its_cameras_is_somewhere_and_without_cameras_nowhere() -> None:
    tracks = Tracks(np.array([0, 1]), np.array([0, 2]), 2)
    R = np.stack([np.eye(3), np.diag([-1.0, 1.0, -1.0])])  # back to back: no point is in front of both
    centres = np.array([[0.0, 0, 0], [0, 0, -1.0]])
    scene = Scene(tracks, np.full((2, 2), 0.1), R, centres, np.zeros((1, 3)), focal=500.0)
    cameras = Reconstruction(R, scene.P[:, :, 3], np.ones(2), np.zeros((2, 2)), scene.landmarks)
    xyz, status = triangulate(scene, cameras)
    assert np.isfinite(xyz).all()
    assert status[0] == Status.BEHIND
    xyz, status = triangulate(scene, replace(cameras, t=np.full((2, 3), np.nan)))
    assert np.isnan(xyz).all()
    assert status[0] != Status.FOUND


@pytest.mark.parametrize("longest", [4, 30])
def test_triangulation_survives_one_wrong_observation(longest: int) -> None:
    scene = ring(longest, 200, min_observations=4, occlusion=longest > 4, seed=11)
    rng = np.random.default_rng(1)
    m = scene.m.copy()
    length = np.diff(scene.tracks.ptr)
    m[scene.tracks.ptr[:-1] + rng.integers(0, length)] = rng.uniform(-0.7, 0.7, size=(len(length), 2))
    truth = truth_of(scene)
    xyz, _ = triangulate(replace(scene, m=m), truth, scale=1.0)
    assert np.mean(np.linalg.norm(xyz - truth.xyz, axis=1) < 0.02) > 0.97


def test_lost_cameras_come_back_despite_wrong_matches() -> None:
    scene = ring(12, 300, noise=0.5, min_observations=4, seed=15)
    rng = np.random.default_rng(0)
    m = scene.m.copy()
    wrong = rng.random(len(m)) < 0.1
    m[wrong] = rng.uniform(-0.7, 0.7, size=(wrong.sum(), 2))
    truth = truth_of(scene)
    R, t = truth.R.copy(), truth.t.copy()
    R[[2, 5]], t[[2, 5]] = R[[0, 1]], -t[[0, 1]]
    state, found = resect(replace(scene, m=m), replace(truth, R=R, t=t), [2, 5])
    assert found.all()
    np.testing.assert_allclose(state.R, truth.R, atol=0.01)
    np.testing.assert_allclose(state.t, truth.t, atol=0.03)
    others = [k for k in range(12) if k not in (2, 5)]
    np.testing.assert_array_equal(state.R[others], truth.R[others])


def test_distortion_and_focal_length_enter() -> None:
    scene = ring(8, 150, min_observations=3, seed=16)
    truth = replace(truth_of(scene), focal=np.full(8, 1.3), radial=np.tile([-0.1, 0.05], (8, 1)))
    R = truth.R.copy()
    R[3] = R[2]
    state, found = resect(replace(scene, m=observed(scene, truth)), replace(truth, R=R), [3])
    assert found.all()
    np.testing.assert_allclose(state.R, truth.R, atol=1e-5)
    np.testing.assert_allclose(state.t, truth.t, atol=1e-5)


def test_a_camera_with_too_few_landmarks_keeps_its_pose() -> None:
    scene = ring(8, 150, min_observations=3, seed=17)
    truth = truth_of(scene)
    seen = np.count_nonzero(scene.tracks.cam == 2)
    state, found = resect(scene, truth, [2], min_inliers=seen + 1)
    assert not found.any()
    np.testing.assert_array_equal(state.R, truth.R)


KEPT_CODE = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from synthetic import ring
from initfree.data.reconstruction import Reconstruction
from initfree.stages.euclidean.triangulation import triangulate
scene = ring(cameras=12, landmarks=600, min_observations=3, noise=2.0)
rng = np.random.default_rng(0)
q, _ = np.linalg.qr(scene.R + 0.3 * rng.normal(size=scene.R.shape))
R = q * np.linalg.det(q)[:, None, None]
t = -(R @ scene.centres[:, :, None])[:, :, 0]
cameras = Reconstruction(R, t, np.ones(12), np.zeros((12, 2)), scene.landmarks)
xyz, _ = triangulate(scene, cameras)
print(xyz.tobytes().hex())
"""


def test_compiled_and_kept_machine_code_round_alike(tmp_path: Path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", KEPT_CODE, str(Path(__file__).parent)]
    compiled, kept = (subprocess.run(command, env=environment, capture_output=True, check=True).stdout for _ in range(2))
    assert list(tmp_path.rglob("*.nbi"))
    assert compiled == kept
