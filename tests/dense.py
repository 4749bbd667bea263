"""The naive reference that the compiled kernels are compared with: explicit Jacobians, NumPy, no structure."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

from initfree.data.tracks import Array, Tracks
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.matrix import BlockMatrix
from initfree.engine.reduced_system import ReducedSystem


@dataclass(frozen=True)
class DenseProblem:
    """Residuals r of all observations, and their Jacobians by cameras (12 each) and by landmarks (3 each)."""

    r: Array
    Ju: Array
    Jv: Array
    basis: Array
    """Directions in which the landmarks move, (landmarks, 4, 3)"""
    rows: int
    """Residuals an observation"""

    def projected(self) -> Array:
        """J* = (I - Jv Jv†) Ju (paper, eq. RW2)."""
        return self.Ju - self.Jv @ (np.linalg.pinv(self.Jv, rcond=1e-9) @ self.Ju)

    def root_weights(self, w: Array | None) -> Array:
        """W of the robust normal equations: the square root of an observation's weight on each of its residuals."""
        return np.ones(len(self.r)) if w is None else np.repeat(np.sqrt(w), self.rows)

    def rw2_system(self, w: Array | None = None) -> tuple[Array, Array]:
        """(W J*)'(W J*) and (W J*)'W ε."""
        W = self.root_weights(w)
        J = W[:, None] * self.projected()
        return J.T @ J, J.T @ (W * self.r)

    def rw2_step(self, damping: float, w: Array | None = None) -> Array:
        H, g = self.rw2_system(w)
        return np.linalg.solve(H + damping * np.eye(len(H)), -g)


def dense_problem(tracks: Tracks, A: Array, r: Array, P: Array, X: Array, *, homogeneous: bool = False) -> DenseProblem:
    """Jacobians of residuals r that depend on y = P_i X_j through A = dr/dy, (observations, rows, 3)."""
    n, rows, _ = A.shape
    basis = np.tile(np.eye(4, 3), (tracks.landmarks, 1, 1))
    if homogeneous:
        basis = np.stack([null_space(x[None]) for x in X])
    Ju = np.zeros((n, rows, tracks.cameras, 3, 4))
    Jv = np.zeros((n, rows, tracks.landmarks, 3))
    for a, (i, j) in enumerate(zip(tracks.cam, tracks.landmark, strict=True)):
        for k in range(rows):
            Ju[a, k, i] = np.outer(A[a, k], X[j])
            Jv[a, k, j] = A[a, k] @ P[i] @ basis[j]
    return DenseProblem(r.reshape(-1), Ju.reshape(n * rows, -1), Jv.reshape(n * rows, -1), basis, rows)


def from_blocks(pairs: CameraPairs, blocks: Array) -> Array:
    """The whole symmetric matrix of 12x12 blocks."""
    n = pairs.cameras
    H = np.zeros((n, 12, n, 12))
    for i, k, block in zip(pairs.row, pairs.column, blocks, strict=True):
        H[i, :, k], H[k, :, i] = block, block.T
    return H.reshape(12 * n, 12 * n)


def dense_matrix(system: ReducedSystem) -> Array:
    """H of a system that is solved exactly."""
    assert isinstance(system.matrix, BlockMatrix)
    return from_blocks(system.matrix.pairs, system.matrix.blocks)


def project(tracks: Tracks, P: Array, X: Array) -> Array:
    """y = P X of every observation."""
    return np.einsum("nab,nb->na", P[tracks.cam], X[tracks.landmark])


def central_differences(f: Callable[[Array], Array | float], x: Array, h: float = 1e-6) -> Array:
    """df/dx, shape of f's value followed by the shape of x."""
    columns = []
    for index in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[index] = h
        columns.append((np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2.0 * h))
    return np.stack(columns, axis=-1).reshape(columns[0].shape + x.shape)
