"""The covariance against algebra without any elimination, and against what noise does."""

from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from scipy.stats import chi2
from synthetic import Scene, ring

import initfree
from initfree.certificate import Evidence, modes, uncertainty
from initfree.certificate.modes import determination
from initfree.certificate.uncertainty import CameraSystem, camera_system
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Tracks
from initfree.engine.levenberg_marquardt import LMConfig
from initfree.engine.losses import LeastSquares
from initfree.generator import generate
from initfree.stages.euclidean import EuclideanAdjustment, FreeIntrinsics, kernels
from initfree.stages.euclidean.parameters import POSES_ONLY

SMALL = ring(cameras=8, landmarks=90, min_observations=3, shuffle=False, seed=4)


def truth(scene: Scene) -> Reconstruction:
    t = -np.einsum("nij,nj->ni", scene.R, scene.centres)
    n = len(scene.R)
    return Reconstruction(scene.R.copy(), t, np.ones(n), np.zeros((n, 2)), scene.landmarks.copy())


def system_of(scene: Scene, state: Reconstruction, m: Array, free: FreeIntrinsics = POSES_ONLY) -> CameraSystem:
    everything = np.ones(scene.tracks.observations, dtype=bool)
    return camera_system(scene.tracks, m, scene.unit, state.cameras, state.xyz, everything, free=free)


def noisy(scene: Scene, pixels: float, seed: int) -> Array:
    return scene.m + pixels / scene.focal * np.random.default_rng(seed).standard_normal(scene.m.shape)


def adjusted(scene: Scene, m: Array) -> Reconstruction:
    stage = EuclideanAdjustment(scene.tracks, m, scene.unit, truth(scene))
    stage.minimise(LMConfig(30, 1e-12), LeastSquares())
    return stage.state


def full_covariance(system: CameraSystem) -> Array:
    """Inverse of all normal equations, landmarks and all, with the first camera and a number of the second held, then moved
    to the gauge in which the cameras fit best: (unknowns + 3 landmarks) squared, times the noise's variance."""
    t, size = system.tracks, system.size
    J, B, r = np.empty((t.observations, 2, 9)), np.empty((t.observations, 2, 3)), np.empty((t.observations, 2))
    kernels.jacobians(t.ptr, t.cam, system.cameras, system.xyz, system.image, system.weight, J, B, r)
    A = np.zeros((t.observations, 2, size + 3 * t.landmarks))
    for a, (k, j) in enumerate(zip(t.cam, t.landmark, strict=True)):
        A[a][:, system.parameters.column[k]] = J[a][:, list(system.parameters.slots)]
        A[a][:, size + 3 * j : size + 3 * j + 3] = B[a]
    A = A.reshape(-1, A.shape[2])
    normal = A.T @ A
    normal.flat[: size * (len(normal) + 1) : len(normal) + 1] += system.parameters.prior
    held = [*range(6), 9]
    rest = np.setdiff1d(np.arange(len(normal)), held)
    covariance = np.zeros_like(normal)
    covariance[np.ix_(rest, rest)] = np.linalg.inv(normal[np.ix_(rest, rest)])
    # The world's motions, as the null space of all equations.
    G = np.linalg.svd(normal)[2][-7:].T
    along = np.column_stack([G[:size].T, np.zeros((7, 3 * t.landmarks))])
    P = np.eye(len(normal)) - G @ np.linalg.solve(G[:size].T @ G[:size], along)
    return system.noise**2 * P @ covariance @ P.T


@pytest.mark.parametrize("free", [FreeIntrinsics(), FreeIntrinsics(focal=True, radial=2)])
@pytest.mark.parametrize("dense", [True, False])
def test_the_blocks_are_those_of_all_normal_equations(free: FreeIntrinsics, dense: bool, monkeypatch: pytest.MonkeyPatch):
    if not dense:
        monkeypatch.setattr(uncertainty, "DENSE", 0)
    system = system_of(SMALL, truth(SMALL), noisy(SMALL, 0.5, 1), free)
    expected, column = full_covariance(system), system.parameters.column
    assert np.abs(system.dense @ system.gauge).max() < 1e-9 * np.diagonal(system.dense).max()
    covariances = system.covariances()
    for k in range(SMALL.tracks.cameras):
        block = expected[np.ix_(column[k], column[k])]
        np.testing.assert_allclose(covariances[k], block, atol=1e-5 * np.abs(block).max())
    found = system.landmark_covariances(np.array([0, 5, 17]))
    for n, j in enumerate((0, 5, 17)):
        rows = system.size + 3 * j + np.arange(3)
        np.testing.assert_allclose(found[n], expected[np.ix_(rows, rows)], atol=1e-5 * np.abs(found[n]).max())
    drift = system.landmark_drifts(np.array([0, 5, 17]), 2.0)
    with_exact_cameras = system.noise**2 * traces_with_exact_cameras(system, (0, 5, 17))
    whole = np.trace(found, axis1=1, axis2=2)
    np.testing.assert_allclose((system.noise * drift / 2.0) ** 2, whole - with_exact_cameras, atol=1e-5 * whole.max())


def traces_with_exact_cameras(system: CameraSystem, landmarks: tuple[int, ...]) -> Array:
    """Of the inverse of a landmark's own normal equations, V^-1."""
    t = system.tracks
    J, B, r = np.empty((t.observations, 2, 9)), np.empty((t.observations, 2, 3)), np.empty((t.observations, 2))
    kernels.jacobians(t.ptr, t.cam, system.cameras, system.xyz, system.image, system.weight, J, B, r)
    own = (B[t.ptr[j] : t.ptr[j + 1]].reshape(-1, 3) for j in landmarks)
    return np.array([np.trace(np.linalg.inv(rows.T @ rows)) for rows in own])


def test_moved_observations_move_the_optimum_as_predicted():
    system = system_of(SMALL, truth(SMALL), SMALL.m)
    tiny = 1e-4 * np.random.default_rng(2).standard_normal(SMALL.m.shape)
    other = adjusted(SMALL, SMALL.m + tiny / SMALL.focal)
    moved = parameters_from(system, truth(SMALL), other)
    np.testing.assert_allclose(moved, system.response(tiny), atol=1e-3 * np.abs(moved).max())


def parameters_from(system: CameraSystem, origin: Reconstruction, other: Reconstruction) -> Array:
    """The small step, with no part along the gauge, from one reconstruction to another."""
    turn = other.R @ origin.R.transpose(0, 2, 1)
    omega = 0.5 * np.stack([turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], 1)
    shift = -np.einsum("nji,nj->ni", other.R, other.t) + np.einsum("nji,nj->ni", origin.R, origin.t)
    step = np.column_stack([omega, -np.einsum("nij,nj->ni", origin.R, shift) / system.extent]).ravel()
    return step - system.gauge @ (system.gauge.T @ step)


def test_errors_over_many_runs_are_as_large_as_stated():
    runs, exact = 60, truth(SMALL)
    steps, nees, stated = [], [], []
    for seed in range(runs):
        m = noisy(SMALL, 0.7, seed)
        state = adjusted(SMALL, m)
        system = system_of(SMALL, state, m)
        step = parameters_from(system, exact, state)
        steps.append(step)
        stated.append(system.uncertainty())
        nees.append(step @ system.dense @ step / 0.7**2)
    degrees = 6 * SMALL.tracks.cameras - 7
    low, high = chi2.ppf([0.005, 0.995], runs * degrees) / runs
    assert low < np.mean(nees) < high
    assert np.mean([s.noise for s in stated]) == pytest.approx(0.7, rel=0.02)
    spread = np.reshape(steps, (runs, -1, 6))
    turn = np.degrees(np.sqrt(np.mean(np.sum(spread[:, :, :3] ** 2, axis=2), axis=0)))
    move = np.sqrt(np.mean(np.sum(spread[:, :, 3:] ** 2, axis=2), axis=0))
    rotation, centre = np.mean([s.rotation for s in stated], axis=0), np.mean([s.centre for s in stated], axis=0)
    np.testing.assert_allclose(rotation, turn, rtol=0.25)
    np.testing.assert_allclose(centre, move, rtol=0.25)
    assert np.mean(rotation / turn) == pytest.approx(1.0, abs=0.08)


def hinged(joint: Array, seed: int = 0) -> tuple[Scene, np.ndarray]:
    """Two rings of cameras around two boxes far apart; all that both see are the landmarks `joint` between them."""
    rng = np.random.default_rng(seed)
    halves = [ring(cameras=8, landmarks=150, min_observations=3, shuffle=False, seed=seed + k) for k in (0, 1)]
    offset = np.array([[-6.0, 0.0, 0.0], [6.0, 0.0, 0.0]])
    R = np.concatenate([h.R for h in halves])
    centres = np.concatenate([h.centres + o for h, o in zip(halves, offset, strict=True)])
    tracks = [(j + k * halves[0].tracks.landmarks, c + 8 * k) for k, h in enumerate(halves)
              for j, c in zip(h.tracks.landmark, h.tracks.cam, strict=True)]  # fmt: skip
    X = np.concatenate([*(h.landmarks + o for h, o in zip(halves, offset, strict=True)), joint])
    own = sum(h.tracks.landmarks for h in halves)
    for j in range(len(joint)):
        tracks += [(own + j, int(k)) for half in (0, 1) for k in 8 * half + rng.choice(8, 3, replace=False)]
    landmark, cam = np.array(sorted(tracks)).T
    y = np.einsum("nij,nj->ni", R[cam], X[landmark] - centres[cam])
    # Behind some of the ring's cameras: a test needs no image frame.
    seen = y[:, 2] > 0.3
    landmark, cam, y = landmark[seen], cam[seen], y[seen]
    ptr = np.searchsorted(landmark, np.arange(len(X) + 1))
    return Scene(Tracks(cam, ptr, 16), y[:, :2] / y[:, 2:], R, centres, X, 420.0), np.arange(16) >= 8


@pytest.mark.parametrize(
    ("where", "shape"),
    [(np.array([0.02, 0.02, 0.02]), "at a spot"), (np.array([0.02, 0.02, 2.0]), "along a line")],
)
def test_parts_joined_at_a_spot_or_along_a_line_are_not_determined(where: Array, shape: str):
    rng = np.random.default_rng(3)
    scene, second = hinged(where * rng.uniform(-1.0, 1.0, size=(14, 3)))
    found = determination(system_of(scene, truth(scene), noisy(scene, 0.5, 0)))
    assert found.rotation_auc20 < 90.0
    weakest = found.weakest
    assert np.array_equal(weakest.smaller, second) or np.array_equal(~weakest.smaller, second)
    assert weakest.rigid > 0.95
    assert weakest.turn > 2.0
    assert weakest.joining <= 14
    words = weakest.sentence(tuple(f"{k}.jpg" for k in range(16)))
    assert f"landmarks {shape}; they can turn against each other" in words


def test_parts_joined_all_over_are_determined():
    rng = np.random.default_rng(5)
    scene, _ = hinged(np.array([3.0, 3.0, 3.0]) * rng.uniform(-1.0, 1.0, size=(60, 3)))
    found = determination(system_of(scene, truth(scene), noisy(scene, 0.5, 0)))
    assert found.rotation_auc20 > 97.0
    assert found.translation_auc20 > 97.0
    assert found.drift < 0.02


def test_a_perfect_fit_is_not_perfectly_certain():
    scene, _ = hinged(0.02 * np.random.default_rng(3).uniform(-1.0, 1.0, size=(14, 3)))
    system = system_of(scene, truth(scene), scene.m)
    assert system.noise < 1e-9
    assert determination(system).rotation_auc20 < 90.0


def test_the_distance_that_is_predicted_is_that_of_the_truth():
    from initfree.evaluation import auc, rotation_errors

    scene = ring(cameras=12, landmarks=120, min_observations=3, shuffle=False, seed=8)
    measured = []
    for seed in range(20):
        state = adjusted(scene, noisy(scene, 2.0, seed))
        measured.append(auc(rotation_errors(state.R, scene.R), 20))
    m = noisy(scene, 2.0, 0)
    predicted = determination(system_of(scene, adjusted(scene, m), m)).rotation_auc20
    # The second worst of 24 draws.
    assert np.sort(measured)[0] - 0.3 < predicted < np.median(measured)


def test_draws_by_moved_observations_have_the_covariance_of_draws_from_the_factor(monkeypatch: pytest.MonkeyPatch):
    system = system_of(SMALL, truth(SMALL), noisy(SMALL, 0.5, 1))
    monkeypatch.setattr(modes, "DRAWN_LARGE", 200)
    monkeypatch.setattr(modes, "DRAWN", 200)
    dense = modes._drawn(system, np.random.default_rng(0))
    monkeypatch.setattr(modes, "DENSE", 0)
    moved = modes._drawn(replace(system), np.random.default_rng(0))
    spreads = [np.sqrt(np.mean(x**2, axis=1)) for x in (dense, moved)]
    np.testing.assert_allclose(*spreads, rtol=0.35)
    assert np.mean(spreads[0] / spreads[1]) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("longer", [1e3, 1e9])
def test_a_part_out_of_all_proportion_drifts(longer: float):
    """Half of the cameras and what they see, blown up about one of them: what joins both no longer tells the scale."""
    scene, second = hinged(np.array([3.0, 3.0, 3.0]) * np.random.default_rng(5).uniform(-1.0, 1.0, size=(60, 3)))
    state, tracks = truth(scene), scene.tracks
    votes = np.bincount(tracks.landmark, weights=second[tracks.cam], minlength=tracks.landmarks)
    blown = votes == np.diff(tracks.ptr)
    across = (votes > 0) & ~blown
    origin = scene.centres[-1]
    centres = np.where(second[:, None], origin + longer * (scene.centres - origin), scene.centres)
    xyz = np.where(blown[:, None], origin + longer * (state.xyz - origin), state.xyz)
    t = -np.einsum("nij,nj->ni", state.R, centres)
    fits = ~(across[tracks.landmark] & second[tracks.cam]) | (tracks.cam == len(second) - 1)
    system = camera_system(tracks, noisy(scene, 0.5, 0), scene.unit, (state.R, t, *state.cameras[2:]), xyz, fits)
    assert determination(system).drift > 0.05


def test_cameras_and_landmarks_at_infinity_are_as_uncertain_as_can_be():
    state = truth(SMALL)
    t, xyz = state.t.copy(), state.xyz.copy()
    t[3], xyz[7] = np.nan, np.inf
    counts = (SMALL.tracks.cam != 3) & (SMALL.tracks.landmark != 7)
    system = camera_system(SMALL.tracks, SMALL.m, SMALL.unit, (state.R, t, *state.cameras[2:]), xyz, counts)
    rotation = system.uncertainty(0.5).rotation
    assert np.isfinite(rotation).all()
    assert rotation[3] > 1e4
    assert rotation[3] > 10.0 * np.delete(rotation, 3).max()
    assert np.isinf(replace(system, redundancy=0).uncertainty().rotation).all()


def test_relative_rotations_have_the_covariance_that_colmap_states():
    """Of R_j R_i', which no gauge changes: ω_j - R_ji ω_i. COLMAP holds two cameras, and its tangent of a quaternion is half
    the angle."""
    result = initfree.solve(initfree.load(generate("thin1", seed=3, noise=0.5).to_colmap(noisy=True)))
    model, names = result.to_colmap(), result.problem.names
    config = pycolmap.BundleAdjustmentConfig()
    for image_id in model.images:
        config.add_image(image_id)
    for camera_id in model.cameras:
        config.set_constant_cam_intrinsics(camera_id)
    config.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    adjuster = pycolmap.create_default_ceres_bundle_adjuster(pycolmap.BundleAdjustmentOptions(), config, model)
    options = pycolmap.BACovarianceOptions(params=pycolmap.BACovarianceOptionsParams.POSES, damping=0.0)
    theirs = pycolmap.estimate_ba_covariance(options, model, adjuster)
    assert theirs is not None
    ids = {image.name: image_id for image_id, image in model.images.items()}
    system = Evidence(result.problem, result.reconstruction).system
    R, column = result.reconstruction.R, system.parameters.column
    for i, j in ((5, 9), (3, 20), (10, 11)):
        a, b = model.images[ids[names[i]]], model.images[ids[names[j]]]
        stated = theirs.get_cam2_cov_from_cam1(a.image_id, a.cam_from_world(), b.image_id, b.cam_from_world())
        assert stated is not None
        relative = np.zeros((3, system.size))
        relative[:, column[i, :3]], relative[:, column[j, :3]] = -R[j] @ R[i].T, np.eye(3)
        ours = relative @ system.inverse @ relative.T
        np.testing.assert_allclose(np.linalg.eigvalsh(ours), 4.0 * np.linalg.eigvalsh(stated[:3, :3]), rtol=1e-4)
