"""Given intrinsics: kept where they are right, refined where they are not, whatever the camera model."""

from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from models import to_reconstruction
from solving import solution_of
from synthetic import Scene
from test_unknown_intrinsics import street

import initfree
from initfree.auto.calibration import recalibrate
from initfree.auto.intrinsics import Recalibrated, free_where_it_pays, refine_intrinsics
from initfree.auto.search import Search
from initfree.data.problem import Problem
from initfree.data.recalibration import found_camera, keypoints_of, with_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.evaluation import evaluate_models
from initfree.io.colmap import reconstruction_of
from initfree.stages.euclidean import adjust


@pytest.fixture(scope="module")
def scene() -> Scene:
    return street()


def long_focal(truth: pycolmap.Reconstruction, factor: float) -> pycolmap.Reconstruction:
    """The model with focal lengths times `factor`."""
    model = pycolmap.Reconstruction(truth)
    for camera in model.cameras.values():
        params = np.array(camera.params)
        params[camera.focal_length_idxs()] *= factor
        camera.params = params
    return model


def solved(problem: Problem, truth: pycolmap.Reconstruction) -> Reconstruction:
    """What a solve with the problem's intrinsics ends with: adjusted from the truth."""
    exact = reconstruction_of(truth)
    place = {int(k): j for j, k in enumerate(exact.ids)}
    xyz = exact.xyz[[place[int(k)] for k in problem.landmark_ids]]
    cameras = len(exact.R)
    start = Reconstruction(exact.R, exact.t, np.ones(cameras), np.zeros((cameras, 2)), xyz)
    return adjust(problem, start)[0]


def aucs(problem: Problem, reconstruction: Reconstruction, truth: pycolmap.Reconstruction) -> float:
    found = Reconstruction.of_poses(
        problem.names, reconstruction.R, reconstruction.t, problem.landmark_ids, reconstruction.xyz
    )
    metrics = evaluate_models(found, reconstruction_of(truth))
    return min(metrics.rotation_auc5, metrics.translation_auc5)


def with_outliers(problem: Problem, share: float) -> Problem:
    """Some observations at random places of their images."""
    rng = np.random.default_rng(5)
    images = list(problem.observations.images)
    for n, image in enumerate(images):
        keypoints = image.keypoints.copy()
        wrong = rng.random(len(keypoints)) < share
        keypoints[wrong] = rng.uniform((0.0, 0.0), (640.0, 480.0), size=(int(wrong.sum()), 2))
        images[n] = replace(image, keypoints=keypoints)
    found = with_cameras(
        replace(problem, observations=replace(problem.observations, images=tuple(images))), problem.observations.cameras
    )
    assert found is not None
    return found[0]


@pytest.mark.parametrize("model", ["PINHOLE", "OPENCV", "OPENCV_FISHEYE"])
@pytest.mark.parametrize("outliers", [0.0, 0.2])
def test_right_intrinsics_stay_as_given(scene, model, outliers):
    truth = to_reconstruction(scene, model)
    problem = with_outliers(initfree.load(truth), outliers)
    assert free_where_it_pays(problem, solved(problem, truth)) is None


@pytest.mark.parametrize(
    ("model", "factor", "outliers"),
    [("SIMPLE_PINHOLE", 1.03, 0.0), ("RADIAL", 1.06, 0.2), ("FULL_OPENCV", 0.94, 0.0), ("OPENCV_FISHEYE", 1.1, 0.0)],
)
def test_focal_lengths_off_are_refined(scene, model, factor, outliers):
    truth = to_reconstruction(scene, model)
    problem = with_outliers(initfree.load(long_focal(truth, factor)), outliers)
    reconstruction = solved(problem, truth)
    found = free_where_it_pays(problem, reconstruction)
    assert found is not None
    before, after = aucs(problem, reconstruction, truth), aucs(found.problem, found.reconstruction, truth)
    assert before < 96.0 < 97.0 < after
    camera = found.problem.observations.cameras[3]
    assert camera.model_name == model
    assert camera.mean_focal_length() == pytest.approx(truth.cameras[3].mean_focal_length(), rel=5e-3)
    assert f"one camera ({model})" in found.note
    _check_consistent(found)


def _check_consistent(found: Recalibrated) -> None:
    """The new problem's rays are those of its cameras, and the reconstruction's error in them is small."""
    p = found.problem
    assert p.calibrated
    assert np.isfinite(p.m).all()
    assert found.reconstruction.focal == pytest.approx(1.0)
    ids = p.camera_ids[p.tracks.cam]
    camera = p.observations.cameras[int(ids[0])]
    rays = np.column_stack([p.m[ids == ids[0]], np.ones(np.count_nonzero(ids == ids[0]))])
    assert camera.img_from_cam(rays) == pytest.approx(keypoints_of(p)[ids == ids[0]], abs=1e-6)
    assert len(found.landmarks) == p.tracks.landmarks == len(found.reconstruction.xyz)
    assert 0.2 < found.error < 0.8


def test_a_guess_is_refined_with_its_principal_point(scene):
    truth = to_reconstruction(scene, "RADIAL")
    guess = long_focal(truth, 1.08)
    params = np.array(guess.cameras[3].params)
    params[1:3] += (30.0, -25.0)
    params[3:] = 0.0
    guess.cameras[3].params = params
    problem = initfree.load(guess)
    reconstruction = solved(problem, truth)
    found = refine_intrinsics(problem, reconstruction)
    assert found is not None
    # A principal point is told to some 3 px here, and turns the cameras with it.
    assert aucs(problem, reconstruction, truth) < 30.0 < 95.0 < aucs(found.problem, found.reconstruction, truth)
    assert found.problem.observations.cameras[3].params[:3] == pytest.approx(truth.cameras[3].params[:3], abs=5.0)


def test_principal_points_stay_unless_asked_for(scene):
    truth = to_reconstruction(scene, "SIMPLE_RADIAL")
    problem = initfree.load(long_focal(truth, 1.05))
    reconstruction = solved(problem, truth)
    kept, moved = (
        refine_intrinsics(problem, reconstruction),
        refine_intrinsics(problem, reconstruction, principal_point=True),
    )
    assert kept is not None
    assert moved is not None
    assert kept.problem.observations.cameras[3].params[1:3] == pytest.approx([320.0, 240.0], abs=1e-12)
    assert abs(moved.problem.observations.cameras[3].params[1:3] - [320.0, 240.0]).max() > 1e-3


def test_keypoints_without_a_ray_are_left_out(scene):
    """A fisheye of 420 px maps no ray to what lies further than 420 π/2 px from its middle."""
    problem = initfree.load(to_reconstruction(scene, "SIMPLE_PINHOLE"))
    narrow = pycolmap.Camera(
        camera_id=3, model="SIMPLE_RADIAL_FISHEYE", width=640, height=480, params=[200.0, 320.0, 240.0, 0.0]
    )
    found = with_cameras(problem, {3: narrow})
    assert found is not None
    part, left = found
    assert np.isfinite(part.m).all()
    assert part.tracks.observations < problem.tracks.observations
    assert part.landmark_ids.tolist() == problem.landmark_ids[left].tolist()
    assert part.observations.undistortable > 0


def test_unknown_intrinsics_become_a_camera(scene):
    problem = initfree.load(to_reconstruction(scene, "SIMPLE_PINHOLE"), intrinsics="unknown")
    focal = np.full(problem.tracks.cameras, 420.0) / problem.observations.image_unit[problem.images, 0]
    camera = found_camera(problem, focal, np.zeros((problem.tracks.cameras, 2)), 3)
    found = with_cameras(problem, {3: camera})
    assert found is not None
    assert found[0].calibrated
    assert found[0].m == pytest.approx(problem.m * problem.unit / 420.0)


def test_a_guess_ends_refined(scene):
    truth = to_reconstruction(scene, "RADIAL")
    result = initfree.solve(initfree.load(long_focal(truth, 1.15), intrinsics="refine"))
    assert result.accepted
    assert result.stages[-1].name == "intrinsics"
    assert result.to_colmap().cameras[3].params[0] == pytest.approx(420.0, rel=0.01)
    assert aucs(result.problem, result.reconstruction, truth) > 97.0


def test_a_right_result_stays_as_it_is(scene):
    result = initfree.solve(initfree.load(to_reconstruction(scene, "RADIAL")))
    assert result.accepted
    assert not any("intrinsics" in note for note in result.notes)
    assert recalibrate(Search(result.problem, result.config), solution_of(result)) is None
