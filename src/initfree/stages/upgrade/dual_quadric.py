"""The absolute dual quadric Ω*: K_i K_i' ~ P_i Ω* P_i' (paper, eq. qac), as a linear system in its ten entries."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from initfree.data.tracks import Array
from initfree.stages.refinement.frames import whitening

# Symmetric 4x4 as ten numbers, symmetric 3x3 as six. Off-diagonal entries of Ω* carry sqrt(2), so that |q| = |Ω*|_F = 1
# is the same condition in every rotated frame.
PAIRS4 = [(a, b) for a in range(4) for b in range(a, 4)]
_PAIRS3 = [(a, b) for a in range(3) for b in range(a, 3)]
W00, W01, W02, W11, W12, W22 = np.eye(6)
"""Selectors of the entries of ω_i = P_i Ω* P_i'; a constraint is a combination of them that must vanish."""
CALIBRATED = np.stack([W00 - W11, W00 - W22, W11 - W22, 2.0 * W01, 2.0 * W02, 2.0 * W12])
"""ω_i ~ I, symmetric in the three axes"""
_L1_ROUNDS = 12
REWEIGHTED = _L1_ROUNDS + 6
"""rounds that `reweighted` is for"""


@dataclass(frozen=True)
class DualQuadric:
    """Ω* in the frame of the cameras that it was solved for, and how well these cameras fix it."""

    Q: Array
    """(4, 3): Ω* = QQ', rank 3 and positive semidefinite"""
    singular_values: Array
    """of the last linear system, descending, largest = 1; the last is the residual"""


def image_of_quadric(P: Array) -> Array:
    """(cameras, 6, 10): ω_i = C_i q, q the distinct entries of Ω* with its off-diagonal ones times sqrt(2)."""
    C = np.empty((len(P), 6, 10))
    for row, (r, s) in enumerate(_PAIRS3):
        for column, (a, b) in enumerate(PAIRS4):
            if a == b:
                C[:, row, column] = P[:, r, a] * P[:, s, a]
            else:
                C[:, row, column] = (P[:, r, a] * P[:, s, b] + P[:, r, b] * P[:, s, a]) / np.sqrt(2.0)
    return C


Reweight = Callable[[Array, Array], Array]
"""from ω (cameras, 6) and |constraints ω| (cameras,) of a round to the weights of the next"""


def solve_dual_quadric(P: Array, constraints: Array, reweight: Reweight, rounds: int) -> DualQuadric:
    """The unit Ω* that minimises sum_i w_i² |constraints ω_i|² (null vector by SVD).

    The first round has w_i = 1.
    """
    C = image_of_quadric(P)
    L = np.einsum("kc,ncd->nkd", constraints, C)
    weight = np.ones(len(P))
    q, s = np.zeros(10), np.ones(10)
    for _ in range(rounds):
        system = (L * weight[:, None, None]).reshape(-1, 10)
        if len(system) < 10:
            system = np.concatenate([system, np.zeros((10 - len(system), 10))])
        _, s, Vt = np.linalg.svd(system, full_matrices=False)
        q = Vt[-1]
        omega_images = C @ q
        if np.median(omega_images[:, [0, 3, 5]].sum(axis=1)) < 0.0:
            q, omega_images = -q, -omega_images
        weight = reweight(omega_images, np.linalg.norm(L @ q, axis=1))
    omega = np.empty((4, 4))
    for value, (a, b) in zip(q, PAIRS4, strict=True):
        omega[a, b] = omega[b, a] = value if a == b else value / np.sqrt(2.0)
    return DualQuadric(_factor(omega), s / max(s[0], 1e-300))


def reweighted(number: int, omega: Array, residual: Array) -> Array:
    """Weights of calibrated cameras (..., cameras) after round `number`: 1/trace(ω_i), and Cauchy over cameras so that a bad
    one is ignored; ω (..., cameras, 6)."""
    trace = np.abs(omega[..., [0, 3, 5]].sum(axis=-1))
    weight = 1.0 / np.maximum(trace, 1e-3 * np.median(trace, axis=-1, keepdims=True))
    relative = residual * weight
    middle = np.median(relative, axis=-1, keepdims=True)
    if number < _L1_ROUNDS:
        # Least absolute residuals first: from a start that a bad camera has spoilt, Cauchy would not recover.
        return weight / np.sqrt(np.maximum(relative, 1e-3 * middle + 1e-12))
    return weight / np.sqrt(1.0 + (relative / np.maximum(3.0 * 1.4826 * middle, 1e-12)) ** 2)


def _factor(omega: Array) -> Array:
    """Q (4x3) with Ω* ~ QQ': the three largest eigenpairs, in the frame of the solve, because truncation depends on it."""
    values, vectors = np.linalg.eigh(omega)
    return vectors[:, :0:-1] * np.sqrt(np.maximum(values[:0:-1], 1e-12 * abs(values[-1])))


def homography(Q: Array) -> Array:
    """H with P H metric: [Q, n], n the null vector of Q' (the plane at infinity, also a finite point)."""
    n = np.linalg.svd(Q.T)[2][-1]
    H = np.column_stack([Q / np.linalg.norm(Q) * np.sqrt(3.0), n])
    return H


def whitened(P: Array) -> tuple[Array, Array]:
    """Unit-norm cameras in the frame that whitens their rows, and the G (4x4) of that frame: P_w ~ P G.

    The linear solve minimises an algebraic error that depends on the projective frame; this one makes it canonical.
    """
    G, _ = whitening(P)
    P = P @ G
    return P / np.linalg.norm(P, axis=(1, 2), keepdims=True), G
