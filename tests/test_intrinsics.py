"""Intrinsics of every camera model: derivatives and reduced system against a dense version, and what a refinement finds."""

from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from dense import central_differences
from models import CAMERA_PARAMS
from scipy.spatial.transform import Rotation
from synthetic import Scene, ring

from initfree.engine.losses import Cauchy
from initfree.stages.euclidean.intrinsics import IntrinsicsAdjustment, View, refine
from initfree.stages.euclidean.lenses import Deviations, Lenses, Projection, with_parameters
from initfree.stages.euclidean.opencv_lenses import PLACES, OpenCVProjection

PARAMS = CAMERA_PARAMS | {
    "FULL_OPENCV": [420.0, 425.0, 322.0, 238.0, -0.05, 0.01, 0.001, -0.001, 0.004, 0.01, -0.02, 0.003],
    "THIN_PRISM_FISHEYE": [420.0, 425.0, 320.0, 240.0, 0.01, 0.003, 0.001, -0.002, 0.001, 0.0, 0.002, -0.001],
    "FOV": [420.0, 425.0, 320.0, 240.0, 0.4],
}
MODELS = sorted(PARAMS)


def camera(model: str, camera_id: int = 1) -> pycolmap.Camera:
    return pycolmap.Camera(camera_id=camera_id, model=model, width=640, height=480, params=PARAMS[model])


def view_of(scene: Scene, lenses: Lenses) -> View:
    return View(scene.R, scene.P[:, :, 3].copy(), scene.landmarks, lenses)


def rolled(scene: Scene) -> Scene:
    """Cameras turned about their axes: of a turntable that stays level, no image tells the aspect ratio."""
    roll = np.random.default_rng(3).uniform(-0.8, 0.8, len(scene.R))
    return replace(scene, R=Rotation.from_rotvec(roll[:, None] * [0.0, 0.0, 1.0]).as_matrix() @ scene.R)


def images_of(scene: Scene, view: View, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """Keypoints of every observation, one call an observation: not how the stage does it."""
    x = view.points(scene.tracks)
    lens = view.lenses.lens[scene.tracks.cam]
    keypoints = np.array([view.lenses.cameras[g].img_from_cam(point) for g, point in zip(lens, x, strict=True)])
    return keypoints + noise * np.random.default_rng(seed).normal(size=keypoints.shape)


def dense_system(stage: IntrinsicsAdjustment, keypoints: np.ndarray, scale: float):
    """(H, g) of poses and lenses with landmarks eliminated, from differences of all residuals by all unknowns."""
    view, tracks = stage.view, stage._tracks
    cameras, numbers = tracks.cameras, len(view.lenses.values)
    sizes = np.cumsum([6 * cameras, numbers])
    sigma = view.lenses.prior(Deviations()).deviation

    def residuals(unknowns: np.ndarray) -> np.ndarray:
        poses, values, xyz = np.split(unknowns, sizes)
        turn = Rotation.from_rotvec(poses.reshape(-1, 6)[:, :3]).as_matrix()
        t = (turn @ view.t[:, :, None])[:, :, 0] + poses.reshape(-1, 6)[:, 3:]
        lenses = view.lenses.at(view.lenses.values + sigma * values)
        moved = View(turn @ view.R, t, view.xyz + xyz.reshape(-1, 3), lenses)
        lens = lenses.lens[tracks.cam]
        x = moved.points(tracks)
        seen = np.array([lenses.cameras[g].img_from_cam(point) for g, point in zip(lens, x, strict=True)])
        return (seen - keypoints).reshape(-1)

    zero = np.zeros(sizes[-1] + view.xyz.size)
    J, r = central_differences(residuals, zero, 1e-5), residuals(zero)
    J[:, sizes[0] : sizes[1]] /= sigma
    root = np.sqrt(np.repeat(Cauchy(scale).weights(np.sum(r.reshape(-1, 2) ** 2, axis=1)), 2))
    J, r = root[:, None] * J, root * r
    Ju, Jv = J[:, : sizes[1]], J[:, sizes[1] :]
    project = np.eye(len(r)) - Jv @ np.linalg.pinv(Jv)
    return Ju.T @ project @ Ju, Ju.T @ project @ r


def assembled(stage: IntrinsicsAdjustment) -> tuple[np.ndarray, np.ndarray]:
    """H and gradient of the stage's system, undamped and without priors, its blocks summed into one matrix."""
    system, column = stage._system, stage._column
    system.assemble(stage.view.R, stage._linear, stage._irls)
    H = np.zeros((len(stage._prior),) * 2)
    for i in range(len(column)):
        for n in range(system.pairs.ptr[i], system.pairs.ptr[i + 1]):
            k = int(system.pairs.column[n])
            np.add.at(H, (column[i][:, None], column[k][None, :]), system.blocks[n])
            if k != i:
                np.add.at(H, (column[k][:, None], column[i][None, :]), system.blocks[n].T)
    return H[:-1, :-1], stage._fold(system.gradient)[:-1]


@pytest.mark.parametrize("model", MODELS)
def test_reduced_system_is_the_dense_one(model):
    scene = ring(cameras=4, landmarks=14, occlusion=False, min_observations=3, keep=0.8)
    cameras = {1: camera(model), 2: camera(model, 2)}
    lenses = Lenses.of(cameras, np.array([1, 2, 1, 2]), principal_point=True)
    view = view_of(scene, lenses)
    keypoints = images_of(scene, view, noise=1.0)
    stage = IntrinsicsAdjustment(scene.tracks, keypoints, view)
    stage._loss = Cauchy(2.0)
    stage.linearise()
    trial = stage.attempt(1e-14)
    H, gradient = dense_system(stage, keypoints, 2.0)
    found, mine = assembled(stage)
    assert mine == pytest.approx(gradient, rel=1e-5, abs=1e-5 * np.abs(gradient).max())
    size = np.sqrt(np.diag(H) + 1e-12)
    assert found / np.outer(size, size) == pytest.approx(H / np.outer(size, size), abs=1e-5)
    assert trial is None or np.isfinite(trial.cost)


def test_lenses_of_two_models_share_a_system():
    scene = ring(cameras=4, landmarks=12, occlusion=False, min_observations=3)
    lenses = Lenses.of({1: camera("FULL_OPENCV"), 2: camera("SIMPLE_RADIAL", 2)}, np.array([2, 1, 2, 1]))
    assert lenses.numbers.tolist() == [10, 2]
    view = view_of(scene, lenses)
    keypoints = images_of(scene, view, noise=1.0)
    stage = IntrinsicsAdjustment(scene.tracks, keypoints, view)
    stage._loss = Cauchy(2.0)
    stage.linearise()
    stage.attempt(1e-14)
    _, gradient = dense_system(stage, keypoints, 2.0)
    assert assembled(stage)[1] == pytest.approx(gradient, rel=1e-5, abs=1e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("model", MODELS)
def test_true_intrinsics_are_found(model):
    """From focal lengths 5% long, principal points 5 px off and half of the distortion."""
    scene = rolled(ring(cameras=16, landmarks=400, keep=0.7, min_observations=3))
    truth = camera(model)
    lenses = Lenses.of({1: truth}, np.ones(16, dtype=int), principal_point=True)
    view = view_of(scene, lenses)
    keypoints = images_of(scene, view)
    params = np.array(truth.params)
    params[truth.focal_length_idxs()] *= 1.05
    params[truth.principal_point_idxs()] += 5.0
    params[truth.extra_params_idxs()] *= 0.5
    start = replace(view, lenses=replace(lenses, cameras=(with_parameters(truth, params),)))
    loose = start.lenses.prior(Deviations(10.0, 10.0, 10.0, 10.0, 1.0))
    stage, convergence = refine(scene.tracks, keypoints, start, scales=(20.0, 4.0), prior=loose)
    assert convergence.accepted > 3
    assert np.sqrt(stage.squared_residuals.max()) < 1e-2
    assert stage.view.lenses.cameras[0].params[:2] == pytest.approx(truth.params[:2], rel=2e-3)


@pytest.mark.parametrize("model", sorted(PLACES))
def test_closed_form_is_what_pycolmap_projects(model):
    """Residuals to rounding, derivatives to that of differences; points behind a camera and far outside an image too."""
    scene = ring(cameras=4, landmarks=60, occlusion=False, min_observations=3)
    lenses = Lenses.of({1: camera(model), 2: camera(model, 2)}, np.array([1, 2, 1, 2]), principal_point=True)
    view = view_of(scene, lenses)
    keypoints, x = images_of(scene, view, noise=1.0), view.points(scene.tracks)
    x[::17] *= -1.0
    x[5::17, :2] *= 40.0
    closed, general = (kind(lenses, scene.tracks.cam, keypoints) for kind in (OpenCVProjection, Projection))
    squared = general.squared_residuals(lenses, x)
    assert closed.squared_residuals(lenses, x) == pytest.approx(squared, rel=1e-9)
    assert np.count_nonzero(squared > 400.0**2) > 5
    for mine, theirs in zip(closed.linearised(lenses, x), general.linearised(lenses, x), strict=True):
        assert mine == pytest.approx(theirs, abs=1e-6 * np.abs(theirs).max())
