"""What is said of each camera: its error, its wrong detections, and who is bad."""

import json
from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from synthetic import Scene, ring

import initfree
from initfree.arrays.camera_reports import all_detections

FOCAL = 420.0


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ring(cameras=8, landmarks=200, min_observations=4, noise=0.3, occlusion=False)


def solved(scene: Scene, xy: np.ndarray) -> initfree.Result:
    K = np.array([[FOCAL, 0.0, 320.0], [0.0, FOCAL, 240.0], [0.0, 0.0, 1.0]])
    t = scene.tracks
    problem = initfree.Problem.from_tracks(t.cam, t.landmark, xy, cameras=K, sizes=(640, 480))
    return initfree.solve(problem)


def pixels(scene: Scene) -> np.ndarray:
    return FOCAL * scene.m + (320.0, 240.0)


def test_wrong_detections_are_counted_for_the_camera_that_has_them(scene, tmp_path):
    xy, rng = pixels(scene), np.random.default_rng(1)
    wrong = {2: 12, 5: 3}
    for camera, count in wrong.items():
        rows = rng.choice(np.flatnonzero(scene.tracks.cam == camera), count, replace=False)
        xy[rows] += rng.choice([-1.0, 1.0], (count, 2)) * rng.uniform(30.0, 60.0, (count, 2))
    result = solved(scene, xy)
    reports = result.cameras
    assert [one.wrong for one in reports] == [wrong.get(k, 0) for k in range(8)]
    assert [one.detections for one in reports] == np.bincount(scene.tracks.cam).tolist()
    # Rayleigh's mean of 0.3 px is 0.376 px; a landmark takes its share of the noise.
    assert all(0.25 < one.mean_pixels < 0.38 for one in reports)
    u = result.uncertainty
    assert [one.rotation_degrees for one in reports] == u.rotation.tolist()
    assert all(one.focal_share is None for one in reports)
    result.write(tmp_path / "out")
    written = json.loads((tmp_path / "out" / "run.json").read_text())["cameras"]
    assert [written[name]["wrong"] for name in result.problem.names] == [one.wrong for one in reports]


def test_landmarks_that_the_solve_left_out_are_judged_too(scene):
    result = solved(scene, pixels(scene))
    t = result.problem.tracks
    half = np.flatnonzero(np.arange(t.landmarks) % 2 == 0)
    rows = np.isin(t.landmark, half)
    smaller = replace(
        result,
        problem=initfree.data.problem.restricted(result.problem, rows)[0],
        reconstruction=result.reconstruction.subset(slice(None), half),
    )
    everything, found = all_detections(smaller.problem, smaller.reconstruction)
    assert everything.tracks.landmarks == t.landmarks
    assert np.abs(found.xyz - result.reconstruction.xyz).max() < 0.02 * np.ptp(result.reconstruction.xyz)
    assert [one.detections for one in smaller.cameras] == [one.detections for one in result.cameras]


def test_a_guess_that_is_far_off_is_judged_by_what_it_became():
    """Cameras given 5% too long, without their distortion, principal points 60 px off: one image hardly fits before the
    refinement, all do after it."""
    rng = np.random.default_rng(0)
    scene = ring(cameras=10, landmarks=300, min_observations=4, noise=0.2, occlusion=False, seed=3)
    n = np.sum(scene.m**2, axis=1, keepdims=True)
    xy = FOCAL * scene.m * (1.0 - 0.2 * n + 0.03 * n**2) + (320.0, 240.0)
    middles = (320.0, 240.0) + 60.0 * rng.normal(size=(10, 2))
    guesses = [
        pycolmap.Camera(model="OPENCV", width=640, height=480, params=[441.0, 441.0, *middle, 0.0, 0.0, 0.0, 0.0])
        for middle in middles.tolist()
    ]
    t = scene.tracks
    problem = initfree.Problem.from_tracks(t.cam, t.landmark, xy, cameras=guesses, intrinsics="refine")
    result = initfree.solve(problem)
    assert result.accepted, result.certificate.reason
    assert result.certificate.evidence.mean_pixels < 0.3
    assert np.abs(result.focal_pixels / FOCAL - 1.0).max() < 0.01
    assert any("refined" in note for note in result.notes)
