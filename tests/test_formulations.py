"""Every formulation: the paper's scalar formulas, its quadratic, its rotation term, its projected gradient."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dense import central_differences, from_blocks
from numpy.testing import assert_allclose
from synthetic import random_tracks

from initfree.data.tracks import Array, Tracks
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.levenberg_marquardt import LMConfig
from initfree.engine.reduced_system import ReducedSystem
from initfree.errors import InputError
from initfree.formulations import Formulation, LinearFormulation, base, make, names, register
from initfree.formulations.pose_rot import RelativeRotations, RotationTerm
from initfree.stages.varpro import VariableProjection

ALPHA = 0.2
LINEAR = [name for name in names() if isinstance(make(name, ALPHA), LinearFormulation)]


def observations(seed: int, count: int = 40, spread: float = 1.5) -> tuple[Array, Array]:
    """Random m, and y on both sides of the camera."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, size=(count, 2)), spread * rng.normal(size=(count, 3))


# --- the paper's formulas, one number at a time -------------------------------------------------------------------------


def ose(mx: float, my: float, x1: float, x2: float, z: float) -> float:
    return (x1 - z * mx) ** 2 + (x2 - z * my) ** 2


def affine(mx: float, my: float, x1: float, x2: float, z: float) -> float:
    return (x1 - mx) ** 2 + (x2 - my) ** 2


def depth(mx: float, my: float, x1: float, x2: float, z: float) -> float:
    return (z - 1.0) ** 2


def radial(mx: float, my: float, x1: float, x2: float, z: float) -> float:
    return (-my * x1 + mx * x2) ** 2 / (mx * mx + my * my)


def exponential(mx: float, my: float, x1: float, x2: float, z: float) -> float:
    """exp(-d) in front of the camera; behind it, its expansion of order two around d = 0."""
    d = (mx * x1 + my * x2 + z) / math.sqrt(mx * mx + my * my + 1.0)
    return math.exp(-d) if d >= 0.0 else 1.0 - d + d * d / 2.0


FORMULAS = {
    "pose": (ose, affine),
    "pose-rot": (ose, affine),
    "rose": (ose, depth),
    "rpose": (radial, affine),
    "expose": (ose, exponential),
    "expose-printed": (exponential, affine),
}


def test_all_formulations_of_the_paper_are_registered():
    assert set(FORMULAS) <= set(names())


@pytest.mark.parametrize("name", FORMULAS)
def test_squared_residual_is_the_papers_formula(name: str):
    m, y = observations(1)
    main, regulariser = FORMULAS[name]
    expected = [
        (1.0 - ALPHA) * main(*a, *b) + ALPHA * regulariser(*a, *b) for a, b in zip(m.tolist(), y.tolist(), strict=True)
    ]
    assert_allclose(make(name, ALPHA).squared_residuals(m, y), expected, rtol=1e-12)


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_formulation_vanishes_where_y_is_the_observation(name: str):
    m, _ = observations(2)
    assert not make(name, ALPHA).squared_residuals(m, np.column_stack([m, np.ones(len(m))])).any()


def test_rpose_is_finite_at_the_principal_point():
    squared = make("rpose", ALPHA).squared_residuals(np.zeros((1, 2)), np.array([[3.0, 4.0, 1.0]]))
    assert_allclose(squared, ALPHA * 25.0)


@pytest.mark.parametrize("name", ["expose", "expose-printed"])
def test_printed_exponential_residual_is_the_quadratic(name: str):
    """exp(-d̄/2)/sqrt(2) (d - d̄ - 1), plus the constant of the expansion, around y in front of the camera."""
    rng = np.random.default_rng(3)
    m = rng.uniform(-1.0, 1.0, size=(30, 2))
    at = np.column_stack([m, np.ones(30)]) * rng.uniform(0.2, 3.0, size=(30, 1))
    y = at + rng.normal(size=(30, 3))
    a = np.column_stack([m, np.ones(30)]) / np.sqrt(np.sum(m**2, axis=1) + 1.0)[:, None]
    d, d_bar = np.sum(a * y, axis=1), np.sum(a * at, axis=1)
    r_exp = np.exp(-d_bar / 2.0) / np.sqrt(2.0) * (d - d_bar - 1.0)
    exponential = r_exp**2 + 0.5 * np.exp(-d_bar)
    if name == "expose":
        expected = (1.0 - ALPHA) * np.sum((y[:, :2] - y[:, 2:] * m) ** 2, axis=1) + ALPHA * exponential
    else:
        expected = ALPHA * np.sum((y[:, :2] - m) ** 2, axis=1) + (1.0 - ALPHA) * exponential
    assert_allclose(make(name, ALPHA).quadratic(m, at).squared_residuals(y), expected, rtol=1e-11)


@pytest.mark.parametrize("name", ["expose", "expose-printed"])
def test_exponential_behind_the_camera_neither_overflows_nor_jumps(name: str):
    formulation = make(name, ALPHA)
    far = np.array([[0.0, 0.0, -1e4]])
    with np.errstate(all="raise"):
        assert np.isfinite(formulation.squared_residuals(np.zeros((1, 2)), far)).all()
        assert np.isfinite(formulation.quadratic(np.zeros((1, 2)), far).g).all()
    m = np.zeros((2, 2))
    sides = np.array([[0.1, 0.0, 1e-9], [0.1, 0.0, -1e-9]])
    q = formulation.quadratic(m, sides)
    assert_allclose(formulation.squared_residuals(m, sides)[0], formulation.squared_residuals(m, sides)[1])
    assert_allclose(q.g[0], q.g[1], atol=1e-8)
    assert_allclose(q.S[0], q.S[1], atol=1e-8)


# --- the quadratic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_quadratic_matches_value_gradient_and_curvature_at_y(name: str):
    formulation = make(name, ALPHA)
    m, y = observations(4)
    q = formulation.quadratic(m, y)
    assert_allclose(q.squared_residuals(y), formulation.squared_residuals(m, y), rtol=1e-12, atol=1e-14)
    direction = np.random.default_rng(5).normal(size=y.shape)

    def along(t: float) -> Array:
        return formulation.squared_residuals(m, y + t * direction)

    def model(t: float) -> Array:
        return q.squared_residuals(y + t * direction)

    h = 1e-5
    assert_allclose((model(h) - model(-h)) / (2 * h), (along(h) - along(-h)) / (2 * h), rtol=1e-7, atol=1e-7)
    h = 1e-3
    curvature = (along(h) - 2.0 * along(0.0) + along(-h)) / h**2
    assert_allclose((model(h) - 2.0 * model(0.0) + model(-h)) / h**2, curvature, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("name", LINEAR)
def test_quadratic_of_a_linear_formulation_is_exact_everywhere(name: str):
    formulation = make(name, ALPHA)
    m, y = observations(6)
    far = 100.0 * np.random.default_rng(7).normal(size=y.shape)
    assert_allclose(formulation.quadratic(m, y).squared_residuals(far), formulation.squared_residuals(m, far), rtol=1e-11)


@pytest.mark.parametrize("name", LINEAR)
def test_rows_of_some_observations_at_a_time_give_the_quadratics_of_all(name: str, monkeypatch: pytest.MonkeyPatch):
    formulation = make(name, ALPHA)
    m, y = observations(6)
    whole = formulation.quadratic(m, y)
    monkeypatch.setattr(base, "_AT_ONCE", 7)
    assert len(m) % 7  # a last part that is shorter
    parts = formulation.quadratic(m, y)
    for one, other in zip((whole.S, whole.anchor, whole.g, whole.c), (parts.S, parts.anchor, parts.g, parts.c), strict=True):
        assert_allclose(other, one, rtol=1e-15)


# --- pOSE+rot -----------------------------------------------------------------------------------------------------------


def rotation_term(seed: int, cameras: int, beta: float) -> tuple[RotationTerm, Array]:
    rng = np.random.default_rng(seed)
    pairs = np.array([(k, l) for k in range(cameras) for l in range(k) if (k + l) % 3], dtype=np.int64)
    R = np.linalg.qr(rng.normal(size=(len(pairs), 3, 3)))[0]
    weight = rng.uniform(1.0, 20.0, size=len(pairs))
    return RotationTerm(RelativeRotations(pairs, R, weight), beta), rng.normal(size=(cameras, 3, 4))


def rotation_residuals(term: RotationTerm, beta: float, P: Array) -> Array:
    """sqrt(β W_kl) (R_k R_l' - R_kl), all pairs in one vector."""
    given = term.rotations
    W = given.weight[:, None, None] * np.eye(3) if given.matrix is None else given.matrix
    return np.concatenate(
        [
            (np.linalg.cholesky(beta * w).T @ (P[k, :, :3] @ P[l, :, :3].T - R)).reshape(-1)
            for (k, l), R, w in zip(given.pairs, given.R, W, strict=True)
        ]
    )


@pytest.mark.parametrize("matrices", [False, True])
def test_rotation_term_against_a_dense_jacobian(matrices: bool):
    beta = 0.7
    term, P = rotation_term(0, cameras=5, beta=beta)
    if matrices:
        root = np.random.default_rng(4).normal(size=(len(term.pairs), 3, 3))
        term = RotationTerm(replace(term.rotations, matrix=root @ root.transpose(0, 2, 1)), beta)
    r = rotation_residuals(term, beta, P)
    assert_allclose(term.cost(P), 0.5 * r @ r, rtol=1e-12)
    # The residuals are quadratic in P, so central differences are exact up to rounding.
    J = central_differences(lambda p: rotation_residuals(term, beta, p), P, h=1e-3).reshape(len(r), -1)
    pairs = CameraPairs.only(5, term.pairs)
    blocks, gradient = np.ones((len(pairs), 12, 12)), np.ones((5, 3, 4))
    term.add(P, pairs.number(term.pairs), pairs.diagonal, blocks, gradient)
    assert_allclose(from_blocks(pairs, blocks - 1.0), J.T @ J, rtol=1e-9, atol=1e-9)
    assert_allclose(gradient.reshape(-1) - 1.0, J.T @ r, rtol=1e-9, atol=1e-9)
    assert_allclose(gradient - 1.0, central_differences(term.cost, P, h=1e-4), rtol=1e-6, atol=1e-6)


def test_rotation_term_is_zero_at_the_true_rotations():
    term, P = rotation_term(1, cameras=4, beta=1.0)
    P[:, :, :3] = np.linalg.qr(P[:, :, :3])[0]
    k, l = term.rotations.pairs.T
    exact = RelativeRotations(term.rotations.pairs, P[k, :, :3] @ P[l, :, :3].transpose(0, 2, 1), term.rotations.weight)
    assert RotationTerm(exact, 1.0).cost(P) == 0.0


# --- the projected gradient -----------------------------------------------------------------------------------------------


def settled(formulation: Formulation, tracks: Tracks, m: Array, P: Array) -> tuple[Array, Array]:
    """v*(P) of the true cost: relinearise and eliminate until nothing moves, and y there."""
    y = np.column_stack([m, np.ones(len(m))])
    X = np.empty((tracks.landmarks, 4))
    for _ in range(60 if formulation.relinearises else 1):
        q = formulation.quadratic(m, y)
        found = q.eliminated(tracks, P)
        X, y = found.X, found.y
    return X, y


@pytest.mark.parametrize("name", names())
def test_projected_gradient_is_that_of_the_reduced_cost(name: str):
    """d/dP of min over X of the cost, by finite differences: RW2 changes the Hessian, not the gradient."""
    rng = np.random.default_rng(8)
    formulation = make(name, ALPHA)
    tracks = random_tracks(rng, cameras=4, landmarks=8, shortest=3)
    m, P = rng.uniform(-1.0, 1.0, size=(tracks.observations, 2)), rng.normal(size=(4, 3, 4))
    term = rotation_term(9, cameras=4, beta=0.1)[0] if formulation.uses_rotations else None

    def reduced_cost(cameras: Array) -> float:
        _, y = settled(formulation, tracks, m, cameras)
        rotations = 0.0 if term is None else term.cost(cameras)
        return 0.5 * float(formulation.squared_residuals(m, y).sum()) + rotations

    X, y = settled(formulation, tracks, m, P)
    system = ReducedSystem(tracks, term)
    system.assemble(formulation.quadratic(m, y), P, X)
    expected = central_differences(reduced_cost, P, h=1e-5)
    assert np.abs(expected).max() > 1e-2
    assert_allclose(system.gradient, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    assert system.landmark_gain < 1e-12


# --- the register ---------------------------------------------------------------------------------------------------------


def test_a_formulation_of_ones_own(monkeypatch: pytest.MonkeyPatch):
    """rows, a name, and the engine solves it."""
    monkeypatch.setattr(base, "_REGISTER", dict(base._REGISTER))

    @register("fixed-depth-affine")
    class FixedDepthAffine(LinearFormulation):
        def rows(self, m: Array) -> Array:
            A = np.zeros((len(m), 3, 3))
            A[:, [0, 1, 2], [0, 1, 2]] = 1.0, 1.0, np.sqrt(self.alpha)
            return A

    assert "fixed-depth-affine" in names()
    formulation = make("fixed-depth-affine", 0.25)
    assert isinstance(formulation, FixedDepthAffine)
    m, y = observations(10)
    expected = np.sum((y[:, :2] - m) ** 2, axis=1) + 0.25 * (y[:, 2] - 1.0) ** 2
    assert_allclose(formulation.squared_residuals(m, y), expected, rtol=1e-12)

    rng = np.random.default_rng(11)
    tracks = random_tracks(rng, cameras=6, landmarks=30, shortest=4)
    affine = rng.normal(size=(6, 2, 4))
    X = np.column_stack([rng.normal(size=(30, 3)), np.ones(30)])
    exact = np.einsum("nab,nb->na", affine[tracks.cam], X[tracks.landmark])
    varpro = VariableProjection(tracks, exact, formulation, rng.normal(size=(6, 3, 4)))
    assert varpro.minimise(LMConfig()).cost < 1e-20


def test_unknown_names_and_weights_are_refused():
    with pytest.raises(InputError, match=r"'pOSE'.*expose.*pose.*rose"):
        make("pOSE", 0.05)
    for alpha in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(InputError, match="alpha"):
            make("pose", alpha)


def test_a_linear_formulation_must_give_its_rows():
    with pytest.raises(NotImplementedError, match="LinearFormulation must give its rows"):
        LinearFormulation(0.1).quadratic(np.zeros((1, 2)), np.zeros((1, 3)))
