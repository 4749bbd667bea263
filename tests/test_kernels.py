"""The compiled kernels against explicit dense Jacobians."""

from dataclasses import replace

import numpy as np
import pytest
from dense import DenseProblem, dense_matrix, dense_problem, project
from numpy.testing import assert_allclose
from synthetic import random_tracks, reorder_cameras, tracks_of

from initfree.data.tracks import Array, Tracks
from initfree.engine import reduction
from initfree.engine.quadratic import Quadratic
from initfree.engine.reduced_system import ReducedSystem
from initfree.formulations import LinearFormulation, make, names
from initfree.formulations.base import homogeneous
from initfree.stages.refinement.reprojection import ProjectiveRefinement, Reprojection

LINEAR = [name for name in names() if isinstance(make(name, 0.1), LinearFormulation)]
SEEDS = range(3)


@pytest.fixture(autouse=True, params=["one group", "many"])
def _shares(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """So few observations as these make one group; as many as there can be add up to the same."""
    if request.param == "many":
        for name, value in {"_IN_CACHE": 5, "_LONG": 1, "_PAYS": 1}.items():
            monkeypatch.setattr(reduction, name, value)


class Case:
    """A random problem of one linear formulation, with landmarks at v* or anywhere."""

    def __init__(self, name: str, seed: int, *, at_optimum: bool) -> None:
        rng = np.random.default_rng(seed)
        self.tracks = random_tracks(rng)
        self.m = rng.uniform(-1.0, 1.0, size=(self.tracks.observations, 2))
        self.P = rng.normal(size=(self.tracks.cameras, 3, 4))
        self.weight = rng.uniform(0.1, 1.0, size=self.tracks.observations)
        formulation = make(name, 0.2)
        assert isinstance(formulation, LinearFormulation)
        self.A = formulation.rows(self.m)
        self.quadratic = formulation.quadratic(self.m, homogeneous(self.m))
        self.X = np.column_stack([rng.normal(size=(self.tracks.landmarks, 3)), np.ones(self.tracks.landmarks)])
        if at_optimum:
            self.X = self.quadratic.eliminated(self.tracks, self.P).X

    def dense(self) -> DenseProblem:
        r = np.einsum("nka,na->nk", self.A, project(self.tracks, self.P, self.X) - homogeneous(self.m))
        return dense_problem(self.tracks, self.A, r, self.P, self.X)

    def assembled(self, weight: Array | None = None) -> ReducedSystem:
        system = ReducedSystem(self.tracks)
        options = {} if weight is None else {"weight": weight}
        system.assemble(self.quadratic, self.P, self.X, **options)
        return system


def assert_system(system: ReducedSystem, H: Array, g: Array) -> None:
    scale = np.abs(H).max()
    assert_allclose(dense_matrix(system), H, rtol=1e-9, atol=1e-10 * scale)
    assert_allclose(system.gradient.reshape(-1), g, rtol=1e-9, atol=1e-10 * max(1.0, np.abs(g).max()))


@pytest.mark.parametrize("at_optimum", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", LINEAR)
def test_reduced_system_is_the_dense_schur_complement(name: str, seed: int, at_optimum: bool):
    case = Case(name, seed, at_optimum=at_optimum)
    assert_system(case.assembled(), *case.dense().rw2_system())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", LINEAR)
def test_what_the_elimination_left_of_landmarks_gives_the_same_system_and_their_residuals(name: str, seed: int):
    case = Case(name, seed, at_optimum=True)
    found = case.quadratic.eliminated(case.tracks, case.P)
    system = ReducedSystem(case.tracks)
    system.assemble(case.quadratic, case.P, found.X, whitening=found.M)
    assert_system(system, *case.dense().rw2_system())
    assert system.landmark_gain == 0.0
    assert_allclose(found.y, project(case.tracks, case.P, found.X), rtol=1e-12, atol=1e-12)
    assert_allclose(found.squared, case.quadratic.squared_residuals(found.y), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", LINEAR)
def test_projected_residual_weights_give_the_papers_robust_system(name: str, seed: int):
    """(W J*)'(W J*) and (W J*)'W ε*, landmarks at the unweighted v*."""
    case = Case(name, seed, at_optimum=True)
    assert_system(case.assembled(case.weight), *case.dense().rw2_system(case.weight))


def test_weights_leave_nothing_behind():
    case = Case("pose", 0, at_optimum=True)
    system = case.assembled(case.weight)
    system.assemble(case.quadratic, case.P, case.X)
    assert_system(system, *case.dense().rw2_system())


@pytest.mark.parametrize("name", LINEAR)
def test_weights_of_one_change_nothing(name: str):
    case = Case(name, 0, at_optimum=True)
    plain = case.assembled()
    H = dense_matrix(plain)
    assert_system(case.assembled(np.ones(case.tracks.observations)), H, plain.gradient.reshape(-1))


@pytest.mark.parametrize(("at_optimum", "weighted"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("name", LINEAR)
def test_solve_gives_the_dense_step_and_its_predicted_decrease(name: str, at_optimum: bool, weighted: bool):
    case = Case(name, 7, at_optimum=at_optimum)
    w = case.weight if weighted else None
    dense, damping = case.dense(), 0.05
    solved = case.assembled(w).solve(damping)
    assert solved is not None
    step, predicted = solved
    expected = dense.rw2_step(damping, w)
    assert_allclose(step.reshape(-1), expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())

    W = dense.root_weights(w)
    after = W * (dense.r + dense.projected() @ expected)
    if not weighted:
        # The landmarks follow the cameras: of the residual only what they cannot absorb remains.
        after -= dense.Jv @ (np.linalg.pinv(dense.Jv, rcond=1e-9) @ after)
    before = W * dense.r
    assert_allclose(predicted, 0.5 * (before @ before - after @ after), rtol=1e-8)


def test_solve_accepts_a_damping_of_every_entry():
    case = Case("pose", 1, at_optimum=True)
    damping = np.random.default_rng(0).uniform(0.01, 1.0, size=12 * case.tracks.cameras)
    H, g = case.dense().rw2_system()
    solved = case.assembled().solve(damping)
    assert solved is not None
    assert_allclose(solved[0].reshape(-1), np.linalg.solve(H + np.diag(damping), -g), rtol=1e-7, atol=1e-10)


def test_solve_refuses_an_indefinite_system_and_nan():
    case = Case("rose", 0, at_optimum=True)
    system = case.assembled()
    assert system.solve(-1e-3) is None
    system.gradient[:] = np.nan
    assert system.solve(1.0) is None


def test_camera_order_permutes_the_system():
    case = Case("pose", 2, at_optimum=False)
    order = np.array([3, 0, 4, 1, 2])
    tracks, source = reorder_cameras(case.tracks, order)
    P = np.empty_like(case.P)
    P[order] = case.P
    q = case.quadratic
    moved = Quadratic(q.S[source], q.anchor[source], q.g[source], q.c[source])
    system = ReducedSystem(tracks)
    system.assemble(moved, P, case.X)
    H, g = case.dense().rw2_system()
    entries = np.argsort((12 * order[:, None] + np.arange(12)).reshape(-1))
    assert_system(system, H[np.ix_(entries, entries)], g[entries])


def test_a_camera_without_observations_gets_an_empty_block():
    visible = np.ones((6, 4), dtype=bool)
    visible[:, 2] = False
    tracks = tracks_of(visible)
    rng = np.random.default_rng(0)
    m, P = rng.normal(size=(tracks.observations, 2)), rng.normal(size=(4, 3, 4))
    quadratic = make("pose", 0.1).quadratic(m, homogeneous(m))
    system = ReducedSystem(tracks)
    system.assemble(quadratic, P, quadratic.eliminated(tracks, P).X)
    assert not dense_matrix(system)[24:36].any()
    solved = system.solve(1e-3)
    assert solved is not None
    assert not solved[0][2].any()
    assert solved[0][1].any()


# --- eliminate -------------------------------------------------------------------------------------------------------


def least_squares_landmarks(tracks: Tracks, A: Array, target: Array, P: Array, cutoff: float = 1e-6) -> Array:
    """Minimum-norm x of A (P [x; 1] - target) by NumPy, a landmark at a time."""
    x = np.empty((tracks.landmarks, 3))
    for j in range(tracks.landmarks):
        seen = slice(tracks.ptr[j], tracks.ptr[j + 1])
        cameras = P[tracks.cam[seen]]
        G = np.einsum("nka,nab->nkb", A[seen], cameras[:, :, :3]).reshape(-1, 3)
        z = np.einsum("nka,na->nk", A[seen], target[seen] - cameras[:, :, 3]).reshape(-1)
        x[j] = np.linalg.lstsq(G, z, rcond=cutoff)[0]
    return x


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", LINEAR)
def test_eliminate_is_least_squares(name: str, seed: int):
    case = Case(name, seed, at_optimum=True)
    expected = least_squares_landmarks(case.tracks, case.A, homogeneous(case.m), case.P)
    assert_allclose(case.X[:, :3], expected, rtol=1e-7, atol=1e-9)
    assert_allclose(case.X[:, 3], 1.0, rtol=0.0)


def test_eliminate_does_not_depend_on_the_anchor():
    case = Case("pose", 3, at_optimum=True)
    anchor = np.random.default_rng(0).normal(size=(case.tracks.observations, 3))
    r = np.einsum("nka,na->nk", case.A, anchor - homogeneous(case.m))
    moved = Quadratic.from_rows(case.A, anchor, r).eliminated(case.tracks, case.P).X
    assert_allclose(moved, case.X, rtol=1e-9, atol=1e-10)


def test_quadratics_that_vanish_at_the_anchor_give_the_same_system_as_those_of_another():
    """Of the first, neither g nor c is read."""
    case = Case("pose", 0, at_optimum=False)
    r = np.einsum("nka,na->nk", case.A, case.m[:, :1] * (1.0, 0.0, 0.0))
    elsewhere = Quadratic.from_rows(case.A, homogeneous(case.m) + case.m[:, :1] * (1.0, 0.0, 0.0), r)
    assert case.quadratic.vanishes
    assert not elsewhere.vanishes
    assert not replace(case.quadratic, g=elsewhere.g, c=elsewhere.c).vanishes
    system = case.assembled()
    H, g = dense_matrix(system), system.gradient.reshape(-1).copy()
    system.assemble(elsewhere, case.P, case.X)
    assert_system(system, H, g)
    found, other = (q.eliminated(case.tracks, case.P) for q in (case.quadratic.weighted(case.weight), elsewhere))
    assert found.quadratic.vanishes
    assert_allclose(other.squared, case.quadratic.eliminated(case.tracks, case.P).squared, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_eliminate_gives_the_minimum_norm_where_a_landmark_is_free(rank: int):
    """Cameras whose first three columns share a null space see nothing of a landmark's motion along it."""
    rng = np.random.default_rng(rank)
    case = Case("pose", 4, at_optimum=False)
    P = case.P.copy()
    P[:, :, :3] = rng.normal(size=(len(P), 3, rank)) @ rng.normal(size=(rank, 3))
    X = case.quadratic.eliminated(case.tracks, P).X
    expected = least_squares_landmarks(case.tracks, case.A, homogeneous(case.m), P)
    assert_allclose(X[:, :3], expected, rtol=1e-6, atol=1e-9)


def test_eliminate_and_assemble_survive_a_track_of_one():
    """RpOSE has two rows an observation: one observation leaves a line of landmarks, and no NaN."""
    rng = np.random.default_rng(5)
    visible = np.eye(4, dtype=bool)
    visible[0] = True
    tracks = tracks_of(visible)
    m, P = rng.normal(size=(tracks.observations, 2)), rng.normal(size=(4, 3, 4))
    formulation = make("rpose", 0.1)
    assert isinstance(formulation, LinearFormulation)
    A, quadratic = formulation.rows(m), formulation.quadratic(m, homogeneous(m))
    X = quadratic.eliminated(tracks, P).X
    assert_allclose(X[:, :3], least_squares_landmarks(tracks, A, homogeneous(m), P), rtol=1e-7, atol=1e-9)
    r = np.einsum("nka,na->nk", A, project(tracks, P, X) - homogeneous(m))
    system = ReducedSystem(tracks)
    system.assemble(quadratic, P, X)
    assert_system(system, *dense_problem(tracks, A, r, P, X).rw2_system())


# --- homogeneous landmarks, damped: the refinement's joint step ---------------------------------------------------------


@pytest.mark.parametrize("damping", [1e-3, 0.3])
@pytest.mark.parametrize("seed", SEEDS)
def test_refinement_takes_the_damped_joint_step(seed: int, damping: float):
    """Schur complement and back-substitution equal one dense solve over cameras and landmarks."""
    rng = np.random.default_rng(seed)
    tracks = random_tracks(rng, shortest=3)
    P, X = rng.normal(size=(tracks.cameras, 3, 4)), rng.normal(size=(tracks.landmarks, 4))
    y = project(tracks, P, X)
    unit = rng.uniform(300.0, 600.0, size=(tracks.observations, 2))
    m = y[:, :2] / y[:, 2:] + 1e-2 * rng.normal(size=(tracks.observations, 2))
    refinement = ProjectiveRefinement(tracks, Reprojection(m, unit), P, X)
    cost = refinement.linearise()
    P, X = refinement.P.copy(), refinement.X.copy()

    y = project(tracks, P, X)
    uv = y[:, :2] / y[:, 2:]
    A = np.zeros((tracks.observations, 2, 3))
    A[:, 0, 0] = A[:, 1, 1] = 1.0
    A[:, :, 2] = -uv
    A *= (unit / y[:, 2:])[:, :, None]
    dense = dense_problem(tracks, A, (uv - m) * unit, P, X, homogeneous=True)
    assert_allclose(cost, 0.5 * dense.r @ dense.r, rtol=1e-10)

    V = dense.Jv.T @ dense.Jv
    traces = np.diagonal(V).reshape(-1, 3).sum(axis=1)
    landmark_shift = np.repeat(damping * traces / 3.0, 3)
    V += np.diag(landmark_shift)
    W = dense.Ju.T @ dense.Jv
    U = dense.Ju.T @ dense.Ju
    reduced = U - W @ np.linalg.solve(V, W.T)
    camera_shift = np.repeat(damping * np.diagonal(reduced).reshape(-1, 12).mean(axis=1), 12)
    normal = np.block([[U + np.diag(camera_shift), W], [W.T, V]])
    joint = np.linalg.solve(normal, -np.concatenate([dense.Ju.T @ dense.r, dense.Jv.T @ dense.r]))
    du, dv = joint[: len(U)], joint[len(U) :]

    trial = refinement.attempt(damping)
    assert trial is not None
    moved = P + du.reshape(-1, 3, 4)
    assert_allclose(trial.step, np.linalg.norm(du), rtol=1e-7)
    assert_allclose(trial.P, moved / np.linalg.norm(moved, axis=(1, 2), keepdims=True), rtol=1e-6, atol=1e-8)
    moved = X + np.einsum("jab,jb->ja", dense.basis, dv.reshape(-1, 3))
    assert_allclose(trial.X, moved / np.linalg.norm(moved, axis=1, keepdims=True), rtol=1e-6, atol=1e-8)

    after = dense.r + dense.Ju @ du + dense.Jv @ dv
    decrease = 0.5 * (dense.r @ dense.r - after @ after)
    assert_allclose(trial.predicted, decrease, rtol=1e-6)
