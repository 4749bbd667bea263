"""The inexact solvers against the dense reference and against Cholesky."""

import numpy as np
import pytest
from dense import dense_matrix, dense_problem, project
from numpy.testing import assert_allclose
from synthetic import random_tracks, ring

import initfree
from initfree.benchmark.series_gap import series_gap
from initfree.data.tracks import Array, Tracks
from initfree.engine.levenberg_marquardt import LMConfig
from initfree.engine.linear_solver import LINEAR_SOLVERS, DampedSystem, LinearSolver, conjugate_gradients, power_series
from initfree.engine.matrix import ImplicitMatrix
from initfree.engine.reduced_system import ReducedSystem
from initfree.errors import InputError
from initfree.formulations import LinearFormulation, make
from initfree.formulations.base import homogeneous
from initfree.formulations.pose_rot import RelativeRotations, RotationTerm
from initfree.generator import generate
from initfree.stages.initialization import initialize
from initfree.stages.varpro import VariableProjection

INEXACT = ("power", "pcg")


class Case:
    """A random problem at v*, with a rotation term if asked for."""

    def __init__(self, seed: int, *, weighted: bool = False, rotations: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.tracks: Tracks = random_tracks(rng, cameras=7, landmarks=30, shortest=3)
        m = rng.uniform(-1.0, 1.0, size=(self.tracks.observations, 2))
        self.P = rng.normal(size=(7, 3, 4))
        formulation = make("pose", 0.2)
        assert isinstance(formulation, LinearFormulation)
        self.quadratic = formulation.quadratic(m, homogeneous(m))
        self.X = self.quadratic.eliminated(self.tracks, self.P).X
        r = np.einsum("nka,na->nk", formulation.rows(m), project(self.tracks, self.P, self.X) - homogeneous(m))
        self.dense = dense_problem(self.tracks, formulation.rows(m), r, self.P, self.X)
        self.weight = rng.uniform(0.5, 1.0, self.tracks.observations) if weighted else np.empty(0)
        self.term = None
        if rotations:
            pairs = np.array([(k, l) for k in range(7) for l in range(k) if (k + l) % 2], dtype=np.int64)
            R = np.linalg.qr(rng.normal(size=(len(pairs), 3, 3)))[0]
            self.term = RotationTerm(RelativeRotations(pairs, R, rng.uniform(0.1, 1.0, len(pairs))), 0.3)

    def system(self, name: str, iterations: int = 20, tolerance: float = 0.0) -> ReducedSystem:
        system = ReducedSystem(self.tracks, self.term, LinearSolver(name, iterations, tolerance))  # type: ignore[arg-type]
        system.assemble(self.quadratic, self.P, self.X, weight=self.weight)
        return system

    def step(self, name: str, damping: float | Array, iterations: int = 20, tolerance: float = 0.0) -> tuple[Array, float]:
        solved = self.system(name, iterations, tolerance).solve(damping)
        assert solved is not None
        return solved


@pytest.mark.parametrize("weighted", [False, True])
def test_products_are_those_of_the_dense_system(weighted: bool):
    case = Case(0, weighted=weighted)
    H, g = case.dense.rw2_system(case.weight if weighted else None)
    system = case.system("pcg")
    assert isinstance(system.matrix, ImplicitMatrix)
    assert_allclose(system.gradient.reshape(-1), g, rtol=1e-9, atol=1e-10)
    assert_allclose(system.diagonal().reshape(-1), np.diagonal(H), rtol=1e-9)
    for x in np.random.default_rng(1).normal(size=(3, 7, 3, 4)):
        assert_allclose(system.matrix.product(x).reshape(-1), H @ x.reshape(-1), rtol=1e-8, atol=1e-9 * np.abs(H).max())
        # What the power series multiplies by: W V^-1 W' of the undamped problem.
        coupling = -system.matrix.product(x, 0.0).reshape(-1)
        if not weighted:
            U = case.dense.Ju.T @ case.dense.Ju
            assert_allclose(coupling, (U - H) @ x.reshape(-1), rtol=1e-8, atol=1e-9 * np.abs(H).max())


def test_products_with_a_rotation_term_are_those_of_the_blocks():
    case = Case(2, rotations=True)
    H = dense_matrix(case.system("exact"))
    matrix = case.system("power").matrix
    assert isinstance(matrix, ImplicitMatrix)
    x = np.random.default_rng(3).normal(size=(7, 3, 4))
    assert_allclose(matrix.product(x).reshape(-1), H @ x.reshape(-1), rtol=1e-9, atol=1e-9 * np.abs(H).max())
    assert_allclose(matrix.diagonal().reshape(-1), np.diagonal(H), rtol=1e-9)


@pytest.mark.parametrize("rotations", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", INEXACT)
def test_all_solvers_agree_as_the_tolerance_falls(name: str, weighted: bool, rotations: bool):
    case = Case(4, weighted=weighted, rotations=rotations)
    damping = 3.0
    exact, predicted = case.step("exact", damping)
    errors = []
    for tolerance in (1e-1, 1e-3, 1e-6, 1e-12):
        step, decrease = case.step(name, damping, 5000, tolerance)
        errors.append(np.linalg.norm(step - exact) / np.linalg.norm(exact))
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 1e-4
    assert errors[-1] < 1e-9
    assert_allclose(decrease, predicted, rtol=1e-9)


@pytest.mark.parametrize("name", INEXACT)
def test_a_step_cut_short_predicts_its_own_decrease(name: str):
    """Not that of the exact step: -g'δ - 1/2 δ'Hδ, whatever δ is."""
    case = Case(5)
    H, g = case.dense.rw2_system()
    step, predicted = case.step(name, 1e-3, iterations=3)
    exact, _ = case.step("exact", 1e-3)
    x = step.reshape(-1)
    assert np.linalg.norm(step - exact) > 1e-2 * np.linalg.norm(exact)
    assert_allclose(predicted, -g @ x - 0.5 * x @ H @ x, rtol=1e-8)


def test_terms_of_the_series_are_those_of_its_definition():
    """sum_k (A^-1 E)^k A^-1 b with A = U + D and E = W V^-1 W', three terms beyond the first."""
    case = Case(6)
    H, g = case.dense.rw2_system()
    A = case.dense.Ju.T @ case.dense.Ju + 0.1 * np.eye(len(H))
    E = A - 0.1 * np.eye(len(H)) - H
    term = total = np.linalg.solve(A, -g)
    for _ in range(3):
        term = np.linalg.solve(A, E @ term)
        total = total + term
    assert_allclose(case.step("power", 0.1, iterations=3)[0].reshape(-1), total, rtol=1e-7, atol=1e-9)


def test_solvers_refuse_what_is_not_positive_definite():
    case = Case(7)
    for name in ("exact", *INEXACT):
        assert case.system(name).solve(-1e3) is None
    assert conjugate_gradients(lambda x: -x, lambda x: x, np.ones((1, 3, 4)), LinearSolver("pcg")) is None


@pytest.mark.parametrize("name", INEXACT)
def test_a_solve_with_an_inexact_solver_reaches_the_same_optimum(name: str):
    scene = ring(10, 200, seed=1, noise=0.3)
    costs = []
    for solver in (LinearSolver(), LinearSolver(name, 200, 1e-3)):
        stage = VariableProjection(scene.tracks, scene.m, make("pose", 0.05), scene.P / 3.0, solver=solver)
        costs.append(stage.minimise(LMConfig(100, 1e-9)).cost)
    assert_allclose(costs[1], costs[0], rtol=1e-4)


@pytest.mark.parametrize("rotations", [False, True])
def test_a_solver_of_ones_own_is_given_the_damped_system(rotations: bool, monkeypatch: pytest.MonkeyPatch):
    """Its product, solved densely, gives the step of Cholesky; U + D - E is the same matrix."""
    case = Case(8, rotations=rotations)

    def dense(system: DampedSystem, b: Array, limits: LinearSolver) -> Array:
        units = np.eye(b.size).reshape(-1, *b.shape)
        H = np.stack([system.product(unit).reshape(-1) for unit in units])
        E = np.stack([system.coupling(unit).reshape(-1) for unit in units])
        A = np.linalg.inv(np.stack([system.uncoupled(unit).reshape(-1) for unit in units]))
        assert_allclose(A - E, H, atol=1e-7 * np.abs(H).max())
        return np.linalg.solve(H, b.reshape(-1)).astype(np.float64).reshape(b.shape)

    monkeypatch.setitem(LINEAR_SOLVERS, "dense", dense)
    found, predicted = case.step("dense", 3.0)
    step, decrease = case.step("exact", 3.0)
    assert_allclose(found, step, rtol=1e-7, atol=1e-9 * np.abs(step).max())
    assert_allclose(predicted, decrease, rtol=1e-9)
    assert initfree.SolveConfig(linear_solver="dense").linear_solver == "dense"  # type: ignore[arg-type]


def test_limits_of_a_solver_are_checked():
    with pytest.raises(InputError, match="linear_solver is 'cg'; expected one of exact, power, pcg"):
        LinearSolver("cg")
    with pytest.raises(InputError, match="0 iterations"):
        LinearSolver("pcg", 0)
    with pytest.raises(InputError, match="linear_solver is 'cg'"):
        initfree.SolveConfig(linear_solver="cg")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="inner_tolerance is 1"):
        initfree.SolveConfig(inner_tolerance=1.0)


def test_the_counted_stop_is_that_of_povar():
    """Of terms 2^-i the sum is 2 - 2^-i: PoVar goes on until i 2^-i is below a share of it, the other stop until 2^-i is."""

    def terms(stop: str) -> int:
        calls = 0

        def half(x: Array) -> Array:
            nonlocal calls
            calls += 1
            return 0.5 * x

        power_series(lambda x: x, half, np.ones((1, 3, 4)), LinearSolver("power", 50, 0.01, stop))  # type: ignore[arg-type]
        return calls

    assert terms("term") == next(i for i in range(1, 50) if 2.0**-i <= 0.01 * (2.0 - 2.0**-i))
    assert terms("counted") == next(i for i in range(1, 50) if i * 2.0**-i <= 0.01 * (2.0 - 2.0**-i))
    assert terms("counted") > terms("term")


@pytest.mark.parametrize("solver", ["exact", "power"])
def test_column_scaling_damps_by_the_columns(solver):
    """λ diag(Ju'Ju): a first step is that of a dense solve with just that damping."""
    case = Case(3)
    stage = VariableProjection(
        case.tracks, np.random.default_rng(3).uniform(-1.0, 1.0, (case.tracks.observations, 2)), make("pose", 0.2), case.P,
        solver=LinearSolver(solver, 4000, 1e-14), column_scaling=True,
    )  # fmt: skip
    scene = dense_problem(*_dense_at(stage, case.tracks))
    stage.linearise()
    H, g = scene.rw2_system(None)
    U = np.diagonal(scene.Ju.T @ scene.Ju)
    trial = stage.attempt(0.5)
    assert trial is not None
    assert_allclose((trial.P - stage.P).reshape(-1), -np.linalg.solve(H + 0.5 * np.diag(U), g), rtol=1e-6, atol=1e-9)


def _dense_at(stage: VariableProjection, tracks: Tracks) -> tuple:
    """What the dense reference is made of, at the state of a stage."""
    m, formulation = stage._m, make("pose", 0.2)
    assert isinstance(formulation, LinearFormulation)
    r = np.einsum("nka,na->nk", formulation.rows(m), project(tracks, stage.P, stage.X) - homogeneous(m))
    return tracks, formulation.rows(m), r, stage.P, stage.X


def test_the_slowest_direction_of_the_series_is_that_of_its_matrix():
    case = Case(3)
    damping = 1e-3
    system = case.system("power")
    assert isinstance(system.matrix, ImplicitMatrix)
    n = 12 * len(case.P)
    H, _ = case.dense.rw2_system(None)
    shifted = H + damping * np.eye(n)
    blocks = case.system("power").matrix
    assert isinstance(blocks, ImplicitMatrix)
    E = np.column_stack([-blocks.product(unit.reshape(-1, 3, 4), 0.0).reshape(-1) for unit in np.eye(n)])
    found = system.matrix.spectrum(damping)
    expected = np.sort(np.linalg.eigvals(np.linalg.solve(shifted + E, shifted)).real)
    assert_allclose(found, expected, atol=1e-9)


def test_what_a_term_gains_is_small_where_cameras_share_landmarks_with_their_neighbours_only():
    gaps = []
    for angle in (180.0, 60.0):
        data = generate("set1", cameras=24, points=200, density=5.0, visibility="frustum", track_angle=angle)
        problem = initfree.load(data.to_colmap())
        gaps.append(series_gap(problem, initialize("normal", problem.tracks, 0)))
    assert gaps[0] > 2.0 * gaps[1] > 0.0
