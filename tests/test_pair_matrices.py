"""W_kl of pOSE+rot: what a pair's matches say about its rotation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from initfree.data.tracks import Array
from initfree.two_view.pair_matrices import confidence, rotation_hessian


def two_views(matches: int, seed: int = 0) -> tuple[Array, Array, Array, Array, Array]:
    """Observations in k and in l, R_kl, t and landmarks in the frame of l, median depth one."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(scale=0.4, size=(matches, 2)), rng.uniform(0.7, 1.4, size=matches)])
    X /= np.median(X[:, 2])
    R, t = Rotation.from_rotvec([0.1, -0.3, 0.05]).as_matrix(), np.array([0.4, 0.1, 0.2])
    y = X @ R.T + t
    return y[:, :2] / y[:, 2:], X[:, :2] / X[:, 2:], R, t, X


def test_hessian_is_the_schur_complement_of_the_pairs_object_space_error():
    mk, ml, R, t, X = two_views(7)

    def residuals(p: Array) -> Array:
        turned = Rotation.from_rotvec(p[:3]).as_matrix() @ R
        points = p[6:].reshape(-1, 3)
        yk = points @ turned.T + p[3:6]
        return np.concatenate([yk[:, :2] - yk[:, 2:] * mk, points[:, :2] - points[:, 2:] * ml]).reshape(-1)

    p0 = np.concatenate([np.zeros(3), t, X.reshape(-1)])
    J = np.column_stack([(residuals(p0 + h) - residuals(p0 - h)) / 2e-5 for h in 1e-5 * np.eye(len(p0))])
    S = J.T @ J
    expected = S[:3, :3] - S[:3, 3:] @ np.linalg.pinv(S[3:, 3:], rcond=1e-8) @ S[3:, :3]
    assert_allclose(rotation_hessian(mk, ml, R, 1e-3), expected, rtol=1e-4, atol=1e-6 * np.trace(expected))


def test_wrong_matches_do_not_count():
    mk, ml, R, *_ = two_views(60)
    clean = rotation_hessian(mk, ml, R, 5e-3)
    wrong = np.concatenate([mk, np.random.default_rng(1).normal(scale=0.5, size=(4, 2))])
    spoilt = rotation_hessian(wrong, np.concatenate([ml, ml[:4]]), R, 5e-3)
    assert_allclose(spoilt, clean, rtol=0.2, atol=0.05 * np.trace(clean))


def test_confidence_weighs_small_rotations_by_the_hessian():
    root = np.diag([1.0, 1.2, 0.9]) + 0.1
    H = root @ root
    W = confidence(H)
    omega = 1e-4 * np.array([0.3, -0.5, 0.8])
    D = Rotation.from_rotvec(omega).as_matrix() - np.eye(3)
    assert np.trace(D.T @ W @ D) == pytest.approx(omega @ H @ omega, rel=1e-3)


def test_confidence_is_never_negative():
    values = np.linalg.eigvalsh(confidence(np.diag([100.0, 1.0, 1.0])))
    assert values.min() >= -1e-12
