"""Projective refinement: its linearisation, its gauge freedom, its scale, its losses."""

import numpy as np
import pytest
from dense import central_differences, project
from numpy.testing import assert_allclose
from synthetic import Scene, random_tracks, ring

from initfree.data.tracks import Array
from initfree.engine.levenberg_marquardt import LMConfig
from initfree.engine.losses import Cauchy, LeastSquares, Loss
from initfree.stages.refinement.landmarks import triangulate_projective
from initfree.stages.refinement.reprojection import ProjectiveRefinement, Reprojection

PATIENT = LMConfig(max_iterations=200, tolerance=1e-12)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ring(cameras=12, landmarks=120, noise=0.5, min_observations=4, seed=4)


def refined(scene: Scene, P: Array, X: Array, unit: Array | None = None) -> tuple[ProjectiveRefinement, float]:
    unit = scene.unit if unit is None else unit
    refinement = ProjectiveRefinement(scene.tracks, Reprojection(scene.m, unit), P, X)
    return refinement, refinement.minimise(PATIENT).cost


def disturbed(scene: Scene, size: float = 1e-2) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    P, X = scene.P, scene.X
    return P + size * rng.normal(size=P.shape), X + size * rng.normal(size=X.shape)


# --- the linearisation --------------------------------------------------------------------------------------------------


@pytest.fixture
def error_and_y() -> tuple[Reprojection, Array]:
    rng = np.random.default_rng(1)
    y = rng.normal(size=(30, 3))
    y[:, 2] = rng.choice([-1.0, 1.0], size=30) * rng.uniform(0.3, 2.0, size=30)
    return Reprojection(rng.normal(size=(30, 2)), rng.uniform(200.0, 900.0, size=(30, 2))), y


def test_reprojection_is_the_pixel_distance_along_each_axis():
    error = Reprojection(np.array([[0.1, -0.2]]), np.array([[400.0, 500.0]]))
    expected = (400.0 * (1.0 / 2.0 - 0.1)) ** 2 + (500.0 * (3.0 / 2.0 + 0.2)) ** 2
    assert_allclose(error.squared_residuals(np.array([[1.0, 3.0, 2.0]])), expected, rtol=1e-14)


def test_reprojection_quadratic_is_gauss_newton(error_and_y: tuple[Reprojection, Array]):
    """g = B'r and S = B'B of the residual's Jacobian B by finite differences; c = r'r."""
    error, y = error_and_y
    q = error.quadratic(y)
    assert_allclose(q.squared_residuals(y), error.squared_residuals(y), rtol=1e-12)
    for a in range(len(y)):

        def residual(v: Array, a: int = a) -> Array:
            return (v[:2] / v[2] - error.m[a]) * error.unit[a]

        B, r = central_differences(residual, y[a]), residual(y[a])
        S = (B.T @ B)[np.triu_indices(3)]
        assert_allclose(q.S[a], S, rtol=1e-6, atol=1e-6 * np.abs(S).max())
        assert_allclose(q.g[a], B.T @ r, rtol=1e-6, atol=1e-6 * np.abs(B.T @ r).max())


def test_the_error_does_not_know_the_scale_of_y(error_and_y: tuple[Reprojection, Array]):
    error, y = error_and_y
    assert_allclose(error.squared_residuals(-3.0 * y), error.squared_residuals(y), rtol=1e-12)
    q = error.quadratic(y)
    S = np.zeros((len(y), 3, 3))
    S[:, *np.triu_indices(3)] = q.S
    S += np.triu(S, 1).transpose(0, 2, 1)
    assert_allclose(np.einsum("nab,nb->na", S, y), 0.0, atol=1e-9 * np.abs(S).max())
    assert_allclose(np.sum(q.g * y, axis=1), 0.0, atol=1e-9 * np.abs(q.g).max())


@pytest.mark.parametrize("z", [0.0, -0.0, 1e-300])
def test_a_point_on_the_principal_plane_is_huge_but_finite(z: float):
    error, y = Reprojection(np.zeros((1, 2)), np.ones((1, 2))), np.array([[1.0, 1.0, z]])
    squared, q = error.squared_residuals(y), error.quadratic(y)
    assert 1e20 < squared[0] < np.inf
    assert np.isfinite(q.S).all()
    assert_allclose(q.c, squared)


# --- the solver ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [LeastSquares(), Cauchy(0.5)])
def test_refinement_ends_at_a_stationary_point(loss: Loss, scene: Scene):
    error = Reprojection(scene.m, scene.unit)
    refinement = ProjectiveRefinement(scene.tracks, error, *disturbed(scene))
    cost = refinement.minimise(PATIENT, loss).cost
    assert_allclose(np.linalg.norm(refinement.P, axis=(1, 2)), 1.0)
    assert_allclose(np.linalg.norm(refinement.X, axis=1), 1.0)
    assert_allclose(cost, loss.total(refinement.squared_residuals), rtol=1e-10)

    def of_cameras(P: Array) -> float:
        return loss.total(error.squared_residuals(project(scene.tracks, P, refinement.X)))

    def of_landmarks(X: Array) -> float:
        return loss.total(error.squared_residuals(project(scene.tracks, refinement.P, X)))

    assert np.abs(central_differences(of_cameras, refinement.P + 1e-4)).max() > 10.0
    assert np.abs(central_differences(of_cameras, refinement.P)).max() < 2e-2
    assert np.abs(central_differences(of_landmarks, refinement.X)).max() < 2e-2


def test_the_solution_does_not_depend_on_the_projective_frame(scene: Scene):
    """P G, G^-1 X for a general G: the same cost before and after, and the same reprojections."""
    rng = np.random.default_rng(2)
    P, X = disturbed(scene)
    G = rng.normal(size=(4, 4))
    plain, cost = refined(scene, P, X)
    moved, cost_of_moved = refined(scene, P @ G, X @ np.linalg.inv(G).T)
    assert_allclose(cost_of_moved, cost, rtol=1e-8)
    y, z = (project(scene.tracks, r.P, r.X) for r in (plain, moved))
    assert_allclose(y[:, :2] / y[:, 2:], z[:, :2] / z[:, 2:], atol=1e-6)
    # At the solution a change of frame is no change: nothing is left to gain.
    again = ProjectiveRefinement(
        scene.tracks,
        Reprojection(scene.m, scene.unit),
        plain.P @ G,
        plain.X @ np.linalg.inv(G).T,
    )
    run = again.minimise(LMConfig(max_iterations=5))
    assert_allclose([run.initial_cost, run.cost], cost, rtol=1e-8)


def test_the_reconstruction_comes_back_in_the_frame_in_which_it_came():
    """Exact observations: the truth is the solution, and the truth is what comes back, up to scales."""
    exact = ring(cameras=12, landmarks=120, min_observations=4, seed=4)
    refinement = ProjectiveRefinement(exact.tracks, Reprojection(exact.m, exact.unit), exact.P, exact.X)
    P, X = refinement.reconstruction
    truth = exact.P / np.linalg.norm(exact.P, axis=(1, 2), keepdims=True)
    assert_allclose(np.abs(np.sum(P * truth, axis=(1, 2))), 1.0, rtol=1e-10)
    truth = exact.X / np.linalg.norm(exact.X, axis=1, keepdims=True)
    assert_allclose(np.abs(np.sum(X * truth, axis=1)), 1.0, rtol=1e-10)


def test_pixels_only_scale_the_cost(scene: Scene):
    """The step knows no unit: twice the pixels, the same iterations, four times the cost."""
    P, X = disturbed(scene)
    plain, cost = refined(scene, P, X)
    doubled, cost_of_doubled = refined(scene, P, X, 2.0 * scene.unit)
    assert_allclose(cost_of_doubled, 4.0 * cost, rtol=1e-9)
    assert_allclose(doubled.P, plain.P, rtol=1e-6, atol=1e-8)


def test_graduated_cauchy_ignores_wrong_matches(scene: Scene):
    rng = np.random.default_rng(3)
    wrong = rng.random(scene.tracks.observations) < 0.03
    m = np.where(wrong[:, None], rng.uniform(-0.5, 0.5, size=scene.m.shape), scene.m)
    rms = {}
    for robust in (False, True):
        refinement = ProjectiveRefinement(scene.tracks, Reprojection(m, scene.unit), *disturbed(scene, size=1e-3))
        if robust:
            run = refinement.minimise_graduated(LMConfig(max_iterations=100), [20.0, 8.0, 4.0])
        else:
            run = refinement.minimise(LMConfig(max_iterations=100))
        rms[robust] = np.sqrt(refinement.squared_residuals[~wrong].mean())
    assert wrong.sum() > 5
    assert rms[True] < 1.0 < 5.0 < rms[False]
    assert np.all(np.diff([it.seconds for it in run.history]) >= 0.0)
    assert_allclose(run.cost, Cauchy(4.0).total(refinement.squared_residuals), rtol=1e-10)


def test_projective_triangulation_is_exact_on_exact_data():
    scene = ring(cameras=12, landmarks=150)
    X = triangulate_projective(scene.tracks, scene.m, scene.P)
    assert np.allclose(X[:, :3] / X[:, 3:], scene.landmarks, atol=1e-6)


def test_projective_triangulation_finds_the_smallest_eigenvector():
    """Of cameras and observations that are noise as well: nothing singles the smallest one out but itself."""
    rng = np.random.default_rng(2)
    tracks = random_tracks(rng, cameras=7, landmarks=60)
    m, P = rng.normal(size=(tracks.observations, 2)), rng.normal(size=(7, 3, 4))
    X = triangulate_projective(tracks, m, P)
    A = P[tracks.cam, :2] - m[:, :, None] * P[tracks.cam, 2:]
    A /= np.linalg.norm(A, axis=2, keepdims=True)
    assert np.allclose(np.linalg.norm(X, axis=1), 1.0)
    for j in range(tracks.landmarks):
        rows = A[tracks.landmark == j].reshape(-1, 4)
        smallest = np.linalg.svd(rows)[1][-1] if len(rows) >= 4 else 0.0
        assert np.linalg.norm(rows @ X[j]) <= 1.01 * smallest + 1e-6
