"""Nonlinear refinement of Ω* (Pollefeys 1999) with one focal length a camera."""

from typing import Any

import numpy as np

from initfree.data.tracks import Array
from initfree.stages.upgrade.dual_quadric import DualQuadric
from initfree.stages.upgrade.linear import expected_focal, linear_quadric
from initfree.stages.upgrade.linear1997 import quadric1997
from initfree.stages.upgrade.metric import Projective, Upgraded, metric_from_quadric

_SOFT_L1 = 0.1
_PRIOR = 0.01
"""weight of log f_i - log f0: only decides for cameras that say nothing about their focal length"""
_TWICE = np.sqrt(np.array([1.0, 2.0, 2.0, 1.0, 2.0, 1.0]))
_I, _J = np.triu_indices(3)


def refined(scene: Projective) -> Upgraded:
    """The frame-free linear Ω*, refined."""
    return _refined(scene, linear_quadric(scene))


def refined1997(scene: Projective) -> Upgraded:
    """The paper's: Ω* of `linear1997`, refined."""
    return _refined(scene, quadric1997(scene))


def _refined(scene: Projective, quadric: DualQuadric) -> Upgraded:
    start = metric_from_quadric(scene, quadric.Q, None, quadric.singular_values)
    f0 = expected_focal(scene)
    Q, focal = refine_quadric(scene.P, quadric.Q, np.clip(start.reconstruction.focal, f0 / 5.0, f0 * 5.0))
    return metric_from_quadric(scene, Q, focal, quadric.singular_values)


def refine_quadric(P: Array, Q: Array, focal: Array, tolerance: float = 1e-8) -> tuple[Array, Array]:
    """Minimise sum_i ρ(|ω_i/|ω_i| - K_i K_i'/|K_i K_i'||²) over Q (4x3, Ω* = QQ') and log f_i; soft-L1 at 0.1.

    Q enters up to a rotation, which the normalisation leaves free; least squares tolerates it.
    """
    # A slow import that known intrinsics, the common case, do without.
    from scipy.optimize import least_squares

    m = len(P)
    P = P / np.linalg.norm(P, axis=(1, 2), keepdims=True)
    f0 = float(np.median(focal))

    def unpack(x: Array) -> tuple[Array, Array]:
        return x[:12].reshape(4, 3), np.exp(x[12:])

    def residuals(x: Array) -> Array:
        Q, f = unpack(x)
        unit, _ = _unit_omega(P @ Q)
        K, _ = _unit_calibration(f)
        return np.concatenate([((unit - K) * _TWICE).reshape(-1), _PRIOR * (x[12:] - np.log(f0))])

    def jacobian(x: Array) -> Array:
        Q, f = unpack(x)
        A = P @ Q
        unit, norm = _unit_omega(A)
        J = np.zeros((6 * m + m, 12 + m))
        for a in range(4):
            for b in range(3):
                # dA = P e_a e_b', dω = dA A' + A dA'.
                outer = P[:, :, a][:, :, None] * A[:, None, :, b]
                d = (outer + outer.transpose(0, 2, 1))[:, _I, _J]
                along = np.einsum("nk,nk,k->n", unit, d, _TWICE**2)
                J[: 6 * m, 3 * a + b] = (((d - unit * along[:, None]) / norm[:, None]) * _TWICE).reshape(-1)
        _, dK = _unit_calibration(f)
        rows = np.arange(6 * m).reshape(m, 6)
        J[rows, 12 + np.arange(m)[:, None]] = -dK * _TWICE
        J[6 * m :, 12:] = _PRIOR * np.eye(m)
        return J

    x0 = np.concatenate([(Q / np.linalg.norm(Q)).reshape(-1), np.log(focal)])
    # SciPy takes a callable here; its annotation names strings only.
    jac: Any = jacobian
    try:
        x = least_squares(residuals, x0, jac=jac, loss="soft_l1", f_scale=_SOFT_L1, max_nfev=200, ftol=tolerance).x
    except (np.linalg.LinAlgError, ValueError):  # focal lengths ran out of what numbers can hold: the quadric is none
        x = x0
    return unpack(x)


def _unit_omega(A: Array) -> tuple[Array, Array]:
    """ω = AA' as six entries of unit Frobenius norm, and the norm."""
    omega = (A @ A.transpose(0, 2, 1))[:, _I, _J]
    norm = np.sqrt(np.maximum(np.einsum("nk,nk,k->n", omega, omega, _TWICE**2), 1e-300))
    return omega / norm[:, None], norm


def _unit_calibration(f: Array) -> tuple[Array, Array]:
    """diag(f², f², 1) as six entries of unit norm, and the derivative by log f."""
    square = f**2
    norm = np.sqrt(2.0 * square**2 + 1.0)
    K = np.zeros((len(f), 6))
    K[:, 0] = K[:, 3] = square / norm
    K[:, 5] = 1.0 / norm
    d = np.zeros_like(K)
    d[:, 0] = d[:, 3] = 2.0 * square / norm**3
    d[:, 5] = -4.0 * square**2 / norm**3
    return K, d
