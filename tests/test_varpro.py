"""The engine: RW2 steps, Levenberg-Marquardt, losses, invariances, and noise-free problems solved."""

import numpy as np
import pytest
from dense import central_differences, dense_problem, project
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from synthetic import Scene, random_tracks, reorder_cameras, reorder_landmarks, ring

from initfree.data.tracks import Array, Tracks
from initfree.engine import losses
from initfree.engine.levenberg_marquardt import Convergence, LMConfig
from initfree.engine.losses import Cauchy, scale_from_median
from initfree.engine.reduced_system import ReducedSystem
from initfree.errors import InputError
from initfree.formulations import LinearFormulation, make, names
from initfree.formulations.base import homogeneous
from initfree.formulations.pose_rot import RelativeRotations, RotationTerm
from initfree.stages.initialization import initialize
from initfree.stages.refinement.reprojection import ProjectiveRefinement, Reprojection
from initfree.stages.varpro import VariableProjection, placed

LINEAR = [name for name in names() if isinstance(make(name, 0.1), LinearFormulation)]
LOSSES: list[str] = ["none", "cauchy", "cauchy-consistent"]
SCALE = 0.3


def random_problem(seed: int) -> tuple[Tracks, Array, Array]:
    rng = np.random.default_rng(seed)
    tracks = random_tracks(rng)
    return tracks, rng.uniform(-1.0, 1.0, size=(tracks.observations, 2)), rng.normal(size=(5, 3, 4))


@pytest.fixture(scope="module")
def noisy() -> Scene:
    return ring(cameras=8, landmarks=80, noise=1.0, min_observations=3, seed=2)


# --- steps --------------------------------------------------------------------------------------------------------------


def test_a_loss_of_ones_own_takes_the_way_of_the_built_in_ones(monkeypatch: pytest.MonkeyPatch):
    """The same ρ under another name gives the same bits; another ρ its own weights, and its own total as the cost."""
    tracks, m, P = random_problem(0)

    def run(loss: str) -> tuple[float, Array]:
        return few_iterations(tracks, m, "pose", P, loss)

    class Truncated:
        """ρ(s) = min(s, c²)."""

        def __init__(self, scale: float) -> None:
            self.scale = scale

        def total(self, squared: Array) -> float:
            return 0.5 * float(np.minimum(squared, self.scale**2).sum())

        def weights(self, squared: Array) -> Array:
            return (squared < self.scale**2).astype(float)

    monkeypatch.setitem(losses.LOSSES, "mine", losses.Cauchy)
    monkeypatch.setitem(losses.LOSSES, "truncated", Truncated)
    for suffix in ("", "-consistent"):
        (cost, cameras), (same, those) = run(f"cauchy{suffix}"), run(f"mine{suffix}")
        assert cost == same
        assert np.array_equal(cameras, those)
    stage = VariableProjection(tracks, m, make("pose", 0.1), P, loss="truncated", loss_scale=SCALE)
    before = stage.linearise()
    kept = stage.mean_residual, stage.P
    assert before <= 0.5 * SCALE**2 * tracks.observations
    stage.minimise(LMConfig(5, 1e-6))
    assert stage.linearise() < before
    assert stage.loss_scale == SCALE
    assert not np.array_equal(kept[1], stage.P)
    with pytest.raises(InputError, match=r"loss is 'geman'; expected one of none, cauchy, .*mine, truncated"):
        run("geman")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", LINEAR)
def test_the_step_is_the_dense_rw2_step(name: str, loss: str):
    """none: J* of Ju, Jv; cauchy: W J* of the same; cauchy-consistent: J* of W Ju, W Jv."""
    tracks, m, P = random_problem(0)
    formulation = make(name, 0.2)
    assert isinstance(formulation, LinearFormulation)
    varpro = VariableProjection(tracks, m, formulation, P, loss=loss, loss_scale=SCALE)
    varpro.linearise()
    trial = varpro.attempt(1e-2)
    assert trial is not None

    A = formulation.rows(m)
    r = np.einsum("nka,na->nk", A, project(tracks, P, varpro.X) - homogeneous(m))
    w = None if loss == "none" else 1.0 / (1.0 + np.sum(r**2, axis=1) / SCALE**2)
    if w is not None and loss == "cauchy-consistent":
        root = np.sqrt(w)
        step = dense_problem(tracks, A * root[:, None, None], r * root[:, None], P, varpro.X).rw2_step(1e-2)
    else:
        step = dense_problem(tracks, A, r, P, varpro.X).rw2_step(1e-2, w)
    assert_allclose((trial.P - P).reshape(-1), step, rtol=1e-6, atol=1e-9 * np.abs(step).max())
    assert_allclose(trial.step, np.linalg.norm(step), rtol=1e-8)


@pytest.mark.parametrize("name", ["expose", "expose-printed"])
def test_expose_steps_from_where_it_is(name: str):
    """After accepted steps, the next one is that of the quadratic around the current y, not around (m, 1)."""
    tracks, m, P = random_problem(2)
    formulation = make(name, 0.2)
    varpro = VariableProjection(tracks, m, formulation, P)
    assert varpro.minimise(LMConfig(max_iterations=4)).accepted > 0
    trial = varpro.attempt(1e-2)
    system = ReducedSystem(tracks)
    system.assemble(formulation.quadratic(m, project(tracks, varpro.P, varpro.X)), varpro.P, varpro.X)
    solved = system.solve(1e-2)
    assert trial is not None
    assert solved is not None
    assert_allclose(trial.P - varpro.P, solved[0], rtol=1e-7, atol=1e-10)
    assert_allclose(trial.predicted, solved[1], rtol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_trial_has_the_landmarks_that_its_loss_eliminates(loss: str):
    """Only cauchy-consistent carries the weights of the current residuals into the landmarks of the trial."""
    tracks, m, P = random_problem(1)
    varpro = VariableProjection(tracks, m, make("pose", 0.2), P, loss=loss, loss_scale=SCALE)
    varpro.linearise()
    squared = make("pose", 0.2).squared_residuals(m, project(tracks, P, varpro.X))
    w = Cauchy(SCALE).weights(squared) if loss == "cauchy-consistent" else np.ones(len(squared))
    trial = varpro.attempt(1e-2)
    assert trial is not None

    def weighted_cost(x: Array) -> float:
        X = np.column_stack([x, np.ones(len(x))])
        return float(w @ make("pose", 0.2).squared_residuals(m, project(tracks, trial.P, X)))

    gradient = central_differences(weighted_cost, trial.X[:, :3], h=1e-4)
    curvature = weighted_cost(trial.X[:, :3] + 1e-2) - weighted_cost(trial.X[:, :3])
    assert curvature > 1e-5
    assert_allclose(gradient, 0.0, atol=1e-8)


def test_cauchy_consistent_ends_where_the_robust_cost_is_stationary(noisy: Scene):
    """Over cameras and landmarks at once; the paper's cauchy leaves the landmarks at their least-squares place."""
    t, m = noisy.tracks, noisy.m.copy()
    m[::17] += 0.3
    slopes = {}
    for loss in ("cauchy", "cauchy-consistent"):
        varpro = VariableProjection(t, m, make("pose", 0.05), noisy.P / 3.0, loss=loss, loss_scale=0.02)
        varpro.minimise(LMConfig(max_iterations=200, tolerance=1e-13))

        def robust_cost(x: Array, P: Array = varpro.P) -> float:
            y = project(t, P, np.column_stack([x, np.ones(len(x))]))
            return Cauchy(0.02).total(make("pose", 0.05).squared_residuals(m, y))

        slopes[loss] = np.abs(central_differences(robust_cost, varpro.X[:, :3])).max()
    assert slopes["cauchy-consistent"] < 1e-5
    assert slopes["cauchy"] > 1e-3


# --- the loop -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", names())
def test_cost_never_increases_and_history_tells_the_whole_run(name: str, loss: str, noisy: Scene):
    seen = []
    varpro = VariableProjection(
        noisy.tracks, noisy.m, make(name, 0.05), initialize("normal", noisy.tracks, seed=3), loss=loss
    )
    run = varpro.minimise(LMConfig(max_iterations=25), lambda index, iteration: seen.append((index, iteration)))
    assert seen == list(enumerate(run.history))
    assert 1 <= len(run.history) <= 25
    costs = np.array([run.initial_cost, *[it.cost for it in run.history]])
    accepted = np.array([it.accepted for it in run.history])
    assert accepted.any()
    assert accepted.sum() == run.accepted
    assert np.all(np.diff(costs)[accepted] < 0.0)
    assert np.all(np.diff(costs)[~accepted] == 0.0)
    assert run.cost == costs[-1]
    for before, it in zip(run.history, run.history[1:], strict=False):
        assert (it.damping > before.damping) == (not before.accepted or before.gain_ratio < 0.5)
        assert it.seconds >= before.seconds
    assert all(it.gain_ratio > 0.0 and it.step > 0.0 for it in run.history if it.accepted)
    assert run.seconds == run.history[-1].seconds
    assert run.reason in {"limit", "plateau", "converged"}
    assert run.history[0].damping == 1e-4


def test_cost_of_the_history_is_half_the_sum_of_squares(noisy: Scene):
    varpro = VariableProjection(noisy.tracks, noisy.m, make("rose", 0.05), noisy.P)
    run = varpro.minimise(LMConfig(max_iterations=3))
    squared = make("rose", 0.05).squared_residuals(noisy.m, project(noisy.tracks, varpro.P, varpro.X))
    assert_allclose(run.cost, 0.5 * squared.sum(), rtol=1e-10)
    assert_allclose(varpro.mean_residual, np.sqrt(squared).mean(), rtol=1e-10)


def test_why_a_run_ends(noisy: Scene):
    def run(m: Array, P: Array, config: LMConfig) -> Convergence:
        return VariableProjection(noisy.tracks, m, make("pose", 0.05), P).minimise(config)

    assert run(noisy.m, noisy.P / 3.0, LMConfig()).reason == "converged"
    short = run(noisy.m, noisy.P / 3.0, LMConfig(max_iterations=2, tolerance=0.0))
    assert (short.reason, len(short.history)) == ("limit", 2)
    # Stopped early by a loose tolerance, far from any minimum: that is no convergence, and the gradient says so.
    loose = run(noisy.m, initialize("normal", noisy.tracks, seed=3), LMConfig(tolerance=0.9))
    assert loose.reason == "plateau"
    assert loose.gradient > 1e-3
    tight = run(noisy.m, noisy.P / 3.0, LMConfig())
    assert tight.gradient < 1e-4
    # pOSE of an exact affine problem (all depths one) has cost zero.
    affine = noisy.P.copy()
    affine[:, 2] = (0.0, 0.0, 0.0, 1.0)
    exact = project(noisy.tracks, affine, noisy.X)[:, :2]
    solved = run(exact, affine, LMConfig())
    assert (solved.reason, solved.history) == ("zero cost", [])
    assert solved.cost == solved.initial_cost < 1e-25


def test_scale_rule_and_explicit_scale(noisy: Scene):
    assert scale_from_median(np.full(5, 4.0), multiple=3.0, floor=0.1) == pytest.approx(3 * 1.4826 * 2)
    assert scale_from_median(np.zeros(5), multiple=3.0, floor=0.1) == 0.1
    P = initialize("normal", noisy.tracks, seed=0)
    scales = []
    varpro = VariableProjection(noisy.tracks, noisy.m, make("pose", 0.05), P, loss="cauchy-consistent")
    assert varpro.loss_scale is None
    varpro.minimise(LMConfig(max_iterations=20), lambda *_: scales.append(varpro.loss_scale))
    assert np.all(np.diff(scales) <= 0.0)
    assert scales[-1] < scales[0]
    fixed = VariableProjection(noisy.tracks, noisy.m, make("pose", 0.05), P, loss="cauchy", loss_scale=0.5)
    fixed.minimise(LMConfig(max_iterations=2))
    assert fixed.loss_scale == 0.5
    with pytest.raises(InputError, match=r"loss scale is 0\.0"):
        VariableProjection(noisy.tracks, noisy.m, make("pose", 0.05), P, loss="cauchy", loss_scale=0.0)


# --- invariances --------------------------------------------------------------------------------------------------------


def few_iterations(tracks: Tracks, m: Array, name: str, P: Array, loss: str) -> tuple[float, Array]:
    """Cost and y after four iterations."""
    varpro = VariableProjection(tracks, m, make(name, 0.05), P, loss=loss)
    run = varpro.minimise(LMConfig(max_iterations=4, damping=1e-2))
    return run.cost, project(tracks, varpro.P, varpro.X)


a_case = {
    "name": st.sampled_from(names()),
    "loss": st.sampled_from(LOSSES),
    "seed": st.integers(0, 2**32 - 1),
}


@settings(max_examples=20, deadline=None, derandomize=True)
@given(**a_case)
def test_the_order_of_cameras_and_landmarks_changes_nothing(name: str, loss: str, seed: int):
    rng = np.random.default_rng(seed)
    scene = ring(cameras=6, landmarks=40, noise=1.0, min_observations=3, seed=seed)
    P = initialize("normal-affine", scene.tracks, seed)
    cost, y = few_iterations(scene.tracks, scene.m, name, P, loss)

    order = rng.permutation(6)
    tracks, source = reorder_cameras(scene.tracks, order)
    moved = np.empty_like(P)
    moved[order] = P
    cost_of_moved, y_of_moved = few_iterations(tracks, scene.m[source], name, moved, loss)
    assert_allclose(cost_of_moved, cost, rtol=1e-8)
    assert_allclose(y_of_moved, y[source], rtol=1e-5, atol=1e-6)

    tracks, source = reorder_landmarks(scene.tracks, rng.permutation(scene.tracks.landmarks))
    cost_of_moved, y_of_moved = few_iterations(tracks, scene.m[source], name, P, loss)
    assert_allclose(cost_of_moved, cost, rtol=1e-8)
    assert_allclose(y_of_moved, y[source], rtol=1e-5, atol=1e-6)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(**a_case)
def test_the_same_seed_gives_the_same_bits(name: str, loss: str, seed: int):
    runs = []
    for _ in range(2):
        scene = ring(cameras=6, landmarks=40, noise=1.0, min_observations=3, seed=seed)
        P = initialize("uniform", scene.tracks, seed)
        kept = P.copy()
        runs.append(few_iterations(scene.tracks, scene.m, name, P, loss))
        assert_array_equal(P, kept, err_msg="the caller's cameras were overwritten")
    assert runs[0][0] == runs[1][0]
    assert_array_equal(runs[0][1], runs[1][1])


# --- the main promise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pose", "rose", "expose", "pose-rot"])
def test_a_noise_free_ring_is_solved_from_the_covisibility_graph(name: str):
    """20 shuffled cameras, at least 6 observations a landmark: below 1e-6 px after refinement."""
    scene = ring(cameras=20, landmarks=300, seed=1)
    term = None
    if name == "pose-rot":
        pairs = np.argwhere(np.tril(scene.tracks.covisibility, -1) >= 20).astype(np.int64)
        R = scene.R[pairs[:, 0]] @ scene.R[pairs[:, 1]].transpose(0, 2, 1)
        weight = scene.tracks.covisibility[pairs[:, 0], pairs[:, 1]].astype(float)
        term = RotationTerm(RelativeRotations(pairs, R, weight), beta=1.0)
    P = initialize("spectral", scene.tracks, seed=0)
    varpro = VariableProjection(scene.tracks, scene.m, make(name, 0.05), P, camera_term=term)
    varpro.minimise(LMConfig())
    refinement = ProjectiveRefinement(scene.tracks, Reprojection(scene.m, scene.unit), varpro.P, varpro.X)
    refinement.minimise(LMConfig())
    assert np.sqrt(refinement.squared_residuals.mean()) < 1e-6


# --- places of cameras that are turned right -----------------------------------------------------------------------------


def cost_of(scene: Scene, P: Array) -> float:
    return VariableProjection(scene.tracks, scene.m, make("pose-rot", 0.1), P).linearise()


def test_cameras_are_placed_where_no_other_places_fit_better(noisy: Scene):
    formulation = make("pose-rot", 0.1)
    P = np.concatenate([noisy.R, np.tile([[0.0], [0.0], [1.0]], (8, 1, 1))], axis=2)
    found = placed(noisy.tracks, noisy.m, formulation, P)
    assert_array_equal(found[:, :, :3], P[:, :, :3])
    lowest = cost_of(noisy, found)
    assert lowest < 0.8 * cost_of(noisy, P)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        moved = found.copy()
        moved[:, :, 3] += size * rng.normal(size=(8, 3))
        assert cost_of(noisy, moved) > lowest


def test_neither_where_cameras_begin_nor_their_order_changes_where_they_are_placed(noisy: Scene):
    formulation, rng = make("pose-rot", 0.1), np.random.default_rng(1)
    P = noisy.P.copy()
    found = []
    for begin in (np.tile([0.0, 0.0, 1.0], (8, 1)), rng.normal(size=(8, 3))):
        P[:, :, 3] = begin
        found.append(placed(noisy.tracks, noisy.m, formulation, P))
    # Up to the world's origin: t_k and t_k + R_k d are the same.
    between = np.einsum("nji,nj->ni", noisy.R, found[1][:, :, 3] - found[0][:, :, 3])
    assert_allclose(between, np.broadcast_to(between.mean(axis=0), between.shape), atol=1e-5)
    order = rng.permutation(8)
    tracks, source = reorder_cameras(noisy.tracks, order)
    turned = np.empty_like(P)
    turned[order] = P
    again = placed(tracks, noisy.m[source], formulation, turned)[order]
    between = np.einsum("nji,nj->ni", noisy.R, again[:, :, 3] - found[0][:, :, 3])
    assert_allclose(between, np.broadcast_to(between.mean(axis=0), between.shape), atol=1e-5)
