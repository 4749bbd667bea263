"""Euclidean adjustment and triangulation against finite differences, dense algebra and known geometry."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from synthetic import Scene, ring

from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.engine import reduction
from initfree.engine.levenberg_marquardt import LMConfig
from initfree.engine.losses import Cauchy, LeastSquares
from initfree.errors import InputError
from initfree.stages.euclidean import (
    AdjustConfig,
    EuclideanAdjustment,
    FreeIntrinsics,
    Status,
    adjust,
    kernels,
    triangulate,
)
from initfree.stages.euclidean.parameters import retracted

FREE = FreeIntrinsics(focal=True, radial=2)


def truth_of(scene: Scene) -> Reconstruction:
    assert scene.tracks.landmarks > 20
    cameras = len(scene.R)
    t = -(scene.R @ scene.centres[:, :, None])[:, :, 0]
    return Reconstruction(scene.R, t, np.ones(cameras), np.zeros((cameras, 2)), scene.landmarks)


def observed(scene: Scene, state: Reconstruction) -> Array:
    """Exact observations of a state, distortion included."""
    cam = scene.tracks.cam
    x = np.einsum("nij,nj->ni", state.R[cam], state.xyz[scene.tracks.landmark]) + state.t[cam]
    image = x[:, :2] / x[:, 2:]
    n = np.sum(image**2, axis=1)
    d = 1.0 + state.radial[cam, 0] * n + state.radial[cam, 1] * n**2
    return (state.focal[cam] * d)[:, None] * image


def perturbed(state: Reconstruction, seed: int, size: float) -> Reconstruction:
    rng = np.random.default_rng(seed)
    step = np.zeros((len(state.R), 9))
    step[:, :6] = size * rng.normal(size=(len(state.R), 6))
    return replace(retracted(state, step), xyz=state.xyz + size * rng.normal(size=state.xyz.shape))


def rotation_error(estimate: Array, truth: Array) -> float:
    """Largest angle in degrees, after the common rotation is taken out by the first camera."""
    relative = (estimate @ estimate[0].T) @ (truth @ truth[0].T).transpose(0, 2, 1)
    return float(np.degrees(Rotation.from_matrix(relative).magnitude().max()))


@pytest.fixture(scope="module")
def small() -> tuple[Scene, Reconstruction]:
    """Few cameras with distinct intrinsics, off their optimum."""
    scene = ring(5, 40, min_observations=2, occlusion=False, keep=0.7, seed=3, noise=1.0)
    rng = np.random.default_rng(1)
    state = perturbed(truth_of(scene), 2, 0.01)
    state = replace(state, focal=rng.uniform(0.8, 1.2, 5), radial=rng.normal(scale=0.1, size=(5, 2)))
    return scene, state


def dense_jacobian(
    scene: Scene, state: Reconstruction, free: FreeIntrinsics, groups: Index, weight: Array
) -> tuple[Array, Array]:
    """J and r over (poses, intrinsics of each group, landmarks), priors last, by scattering the kernel's blocks."""
    tracks = scene.tracks
    n = tracks.observations
    J, B, r = np.empty((n, 2, 9)), np.empty((n, 2, 3)), np.empty((n, 2))
    image = scene.m, scene.unit, True
    kernels.jacobians(tracks.ptr, tracks.cam, state.cameras, state.xyz, image, weight, J, B, r)
    intrinsics = len(free.slots) - 6
    held = 6 * tracks.cameras + intrinsics * (int(groups.max()) + 1)
    dense = np.zeros((2 * n, held + 3 * tracks.landmarks))
    for a in range(n):
        k, j = tracks.cam[a], tracks.landmark[a]
        rows = slice(2 * a, 2 * a + 2)
        dense[rows, 6 * k : 6 * k + 6] = J[a, :, :6]
        at = 6 * tracks.cameras + intrinsics * groups[k]
        dense[rows, at : at + intrinsics] = J[a][:, list(free.slots[6:])]
        dense[rows, held + 3 * j : held + 3 * j + 3] = B[a]
    return dense, r.reshape(-1)


def test_jacobian_against_finite_differences(small: tuple[Scene, Reconstruction]) -> None:
    scene, state = small
    tracks, n = scene.tracks, scene.tracks.observations
    J, B, r = np.empty((n, 2, 9)), np.empty((n, 2, 3)), np.empty((n, 2))
    image = scene.m, scene.unit, True
    kernels.jacobians(tracks.ptr, tracks.cam, state.cameras, state.xyz, image, np.full(n, 4.0), J, B, r)

    def residual(moved: Reconstruction) -> Array:
        return 2.0 * (observed(scene, moved) - scene.m) * scene.unit

    np.testing.assert_allclose(r, residual(state), atol=1e-9)
    h = 1e-6
    for slot in range(9):
        step = np.zeros((tracks.cameras, 9))
        step[:, slot] = h
        numeric = (residual(retracted(state, step)) - residual(retracted(state, -step))) / (2.0 * h)
        np.testing.assert_allclose(J[:, :, slot], numeric, rtol=1e-6, atol=1e-4)
    for axis in range(3):
        shift = h * np.eye(3)[axis]
        ahead, behind = replace(state, xyz=state.xyz + shift), replace(state, xyz=state.xyz - shift)
        numeric = (residual(ahead) - residual(behind)) / (2.0 * h)
        np.testing.assert_allclose(B[:, :, axis], numeric, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize(
    ("free", "groups"),
    [
        (FreeIntrinsics(), np.arange(5)),
        (FREE, np.arange(5)),
        (FreeIntrinsics(focal=True, focal_sigma=1e-3), np.zeros(5, dtype=np.int64)),
        (FreeIntrinsics(radial=1, radial_sigma=1e-3), np.array([0, 1, 0, 1, 1])),
        (FREE, np.array([0, 1, 0, 1, 1])),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_step_is_that_of_the_dense_damped_normal_equations(
    small: tuple[Scene, Reconstruction],
    free: FreeIntrinsics,
    groups: Index,
    many: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene, state = small
    reduction._made[True].pop(scene.tracks, None)
    if many:
        monkeypatch.setattr(reduction, "_PAYS", 1)
        assert len(reduction.reduction_of(scene.tracks, coupled=True).groups) > 2
    weight = np.random.default_rng(5).uniform(0.5, 1.5, scene.tracks.observations)
    weight[::7] = 0.0
    stage = EuclideanAdjustment(scene.tracks, scene.m, scene.unit, state, free=free, groups=groups, weight=weight)
    stage._loss = Cauchy(20.0)
    state = stage.state
    cost = stage.linearise()
    trial = stage.attempt(1e-2)
    assert trial is not None

    squared = np.sum(((observed(scene, state) - scene.m) * scene.unit) ** 2, axis=1)
    irls = weight / (1.0 + weight * squared / 400.0)
    J, r = dense_jacobian(scene, state, free, groups, irls)
    intrinsics = len(free.slots) - 6
    poses, held = 30, 30 + intrinsics * (int(groups.max()) + 1)
    H, g = J.T @ J, J.T @ r
    sigma = {6: free.focal_sigma, 7: free.radial_sigma, 8: free.radial_sigma}
    prior = 0.0
    for group in range(int(groups.max()) + 1):
        camera = int(np.flatnonzero(groups == group)[0])
        for place, slot in enumerate(free.slots[6:]):
            # log f stands at its reference, k about zero.
            value = 0.0 if slot == 6 else state.radial[camera, slot - 7]
            at = poses + intrinsics * group + place
            H[at, at] += sigma[slot] ** -2
            g[at] += value / sigma[slot] ** 2
            prior += 0.5 * (value / sigma[slot]) ** 2
    assert cost == pytest.approx(200.0 * np.sum(np.log1p(weight * squared / 400.0)) + prior)
    damping = np.diag(H).copy()
    damping[held:] = np.repeat(np.add.reduceat(damping[held:], np.arange(0, len(damping) - held, 3)) / 3.0, 3)
    delta = np.linalg.solve(H + 1e-2 * np.diag(damping), -g)
    np.testing.assert_allclose(trial.state.xyz - state.xyz, delta[held:].reshape(-1, 3), atol=1e-9 * np.abs(delta).max())
    np.testing.assert_allclose(trial.step, np.linalg.norm(delta[:held]), rtol=1e-8)
    assert trial.predicted == pytest.approx(-g @ delta - 0.5 * delta @ H @ delta, rel=1e-8)
    assert trial.cost < cost


def test_noise_free_problem_converges_to_zero() -> None:
    scene = ring(10, 150, min_observations=3, seed=1)
    truth = truth_of(scene)
    rng = np.random.default_rng(0)
    truth = replace(truth, focal=rng.uniform(0.8, 1.2, 10), radial=rng.normal(scale=0.03, size=(10, 2)))
    start = replace(perturbed(truth, 4, 0.03), focal=np.ones(10), radial=np.zeros((10, 2)))
    free = replace(FREE, focal_sigma=1e6, radial_sigma=1e6)
    stage = EuclideanAdjustment(scene.tracks, observed(scene, truth), scene.unit, start, free=free)
    result = stage.minimise(LMConfig(100, 0.0))
    assert np.sqrt(stage.squared_residuals.max()) < 1e-9
    np.testing.assert_allclose(stage.state.focal, truth.focal, rtol=1e-9)
    assert result.cost < 1e-8 * result.initial_cost

    known = EuclideanAdjustment(scene.tracks, scene.m, scene.unit, perturbed(truth_of(scene), 4, 0.05))
    known.minimise(LMConfig(100, 0.0))
    assert np.sqrt(known.squared_residuals.max()) < 1e-9
    assert rotation_error(known.state.R, scene.R) < 1e-9


def test_shared_focal_stays_shared() -> None:
    scene = ring(8, 100, min_observations=3, seed=2)
    truth = replace(truth_of(scene), focal=np.full(8, 1.1))
    start = perturbed(truth_of(scene), 1, 0.01)
    reconstruction, _ = adjust(
        replace(scene, m=observed(scene, truth)), start,
        AdjustConfig(FreeIntrinsics(focal=True), least_squares=True), groups=np.zeros(8, dtype=np.int64),
    )  # fmt: skip
    assert np.ptp(reconstruction.focal) == 0.0
    assert reconstruction.focal[0] == pytest.approx(1.1, rel=1e-4)
    assert not reconstruction.radial.any()


def test_robust_adjustment_ignores_gross_outliers() -> None:
    scene = ring(12, 300, noise=0.5, min_observations=4, seed=5)
    rng = np.random.default_rng(6)
    wrong = rng.random(scene.tracks.observations) < 0.1
    m = scene.m.copy()
    m[wrong] = rng.uniform(-0.7, 0.7, size=(wrong.sum(), 2))
    truth = truth_of(scene)
    start = perturbed(truth, 7, 0.02)
    reconstruction, convergence = adjust(replace(scene, m=m), start)
    clean, _ = adjust(scene, start, AdjustConfig(least_squares=True))
    assert convergence.reason == "converged"
    assert rotation_error(reconstruction.R, scene.R) < max(2.0 * rotation_error(clean.R, scene.R), 0.05)
    final = EuclideanAdjustment(scene.tracks, m, scene.unit, reconstruction)
    error = np.sqrt(final.squared_residuals)
    assert np.mean(error[~wrong] < 4.0) > 0.98
    off, _ = adjust(replace(scene, m=m), start, AdjustConfig(least_squares=True), weight=(~wrong).astype(float))
    assert rotation_error(off.R, scene.R) < 2.0 * rotation_error(clean.R, scene.R)


def test_world_similarity_does_not_change_the_costs() -> None:
    scene = ring(8, 100, noise=1.0, min_observations=3, seed=8)
    start = perturbed(truth_of(scene), 9, 0.03)
    turn, shift, scale = Rotation.from_rotvec([0.4, -1.0, 2.0]).as_matrix(), np.array([5.0, -9.0, 3.0]), 70.0
    R = start.R @ turn.T
    moved = replace(start, R=R, t=scale * start.t - R @ shift, xyz=np.ascontiguousarray(scale * start.xyz @ turn.T + shift))
    costs = []
    for state in (start, moved):
        stage = EuclideanAdjustment(scene.tracks, scene.m, scene.unit, state, free=FREE)
        result = stage.minimise_graduated(LMConfig(8, 0.0), (20.0, 4.0))
        costs.append([step.cost for step in result.history])
    np.testing.assert_allclose(costs[0], costs[1], rtol=1e-6)


def test_an_observation_behind_its_camera_has_the_worst_error() -> None:
    scene = ring(6, 60, min_observations=2, seed=12)
    truth = truth_of(scene)
    camera, mirrored = scene.tracks.cam[0], truth.xyz.copy()
    # The point mirrored in the camera's centre has the same image, and a negative depth.
    mirrored[0] = 2.0 * scene.centres[camera] - mirrored[0]
    for cheirality, expected in ((True, kernels.WORST**2 * scene.focal**2), (False, 0.0)):
        state = replace(truth, xyz=mirrored)
        stage = EuclideanAdjustment(scene.tracks, scene.m, scene.unit, state, cheirality=cheirality)
        assert stage.squared_residuals[0] == pytest.approx(expected, abs=1e-12)
    moved = mirrored.copy()
    weight = (scene.tracks.cam == camera).astype(float)
    t = scene.tracks
    kernels.stay_in_front(0, t.landmarks, t.ptr, t.cam, weight, truth.R, truth.t, truth.xyz, moved)
    # Half way is the centre itself, a quarter of the way is in front.
    np.testing.assert_allclose(moved[0], 0.5 * (truth.xyz[0] + scene.centres[camera]))
    np.testing.assert_array_equal(moved[1:], truth.xyz[1:])


def test_points_behind_cameras_and_at_infinity_stay_finite() -> None:
    scene = ring(6, 60, noise=0.5, min_observations=2, seed=12)
    truth = truth_of(scene)
    xyz = truth.xyz.copy()
    xyz[:10] *= -5.0
    xyz[10:15] *= 1e18
    xyz[15] = truth.R[0].T @ -truth.t[0]
    xyz[16] = np.nan
    weight = np.ones(scene.tracks.observations)
    weight[scene.tracks.landmark == 20] = 0.0
    weight[scene.tracks.ptr[21] + 1 : scene.tracks.ptr[22]] = 0.0
    for loss in (LeastSquares(), Cauchy(4.0)):
        stage = EuclideanAdjustment(scene.tracks, scene.m, scene.unit, replace(truth, xyz=np.nan_to_num(xyz)), weight=weight)
        result = stage.minimise(LMConfig(20), loss)
        assert np.isfinite([step.cost for step in result.history]).all()
        assert np.isfinite(stage.state.xyz).all()
        assert np.isfinite(stage.state.R).all()
    found, status = triangulate(scene, truth, xyz, weight=weight)
    assert np.isfinite(found).all()
    assert set(np.flatnonzero(status == Status.UNSEEN)) == {20, 21}
    seen = status != Status.UNSEEN
    assert np.linalg.norm(found - truth.xyz, axis=1)[seen].max() < 0.1


def test_a_camera_without_observations_stays() -> None:
    scene = ring(6, 60, noise=0.5, min_observations=2, seed=13)
    start = perturbed(truth_of(scene), 1, 0.01)
    weight = (scene.tracks.cam != 2).astype(float)
    stage = EuclideanAdjustment(scene.tracks, scene.m, scene.unit, start, weight=weight)
    assert stage.minimise(LMConfig(30)).accepted > 2
    np.testing.assert_array_equal(stage.state.R[2], start.R[2])


def test_bad_arguments_are_named() -> None:
    scene = ring(6, 60, min_observations=2, seed=14)
    with pytest.raises(InputError, match="radial coefficients is 3"):
        FreeIntrinsics(radial=3)
    with pytest.raises(InputError, match="scales"):
        AdjustConfig(scales=())
    with pytest.raises(InputError, match="weights"):
        EuclideanAdjustment(scene.tracks, scene.m, scene.unit, truth_of(scene), weight=np.full(3, 1.0))
