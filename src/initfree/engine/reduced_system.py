"""The reduced camera system: buffers allocated once, assembled and factorised many times."""

from typing import Protocol

import numpy as np
from scipy.linalg import get_lapack_funcs

from initfree.engine import kernels
from initfree.engine.quadratic import Quadratic
from initfree.tracks import Array, Tracks

UNWEIGHTED = np.empty(0)
_potrf, _potrs = get_lapack_funcs(("potrf", "potrs"), dtype=np.float64)


class CameraTerm(Protocol):
    """A cost on the cameras alone, added to the observations' (the rotation term of pOSE+rot)."""

    def cost(self, P: Array) -> float: ...

    def add(self, P: Array, H: Array, gradient: Array) -> None:
        """Add its Gauss-Newton blocks to the lower triangle of H and its gradient to `gradient`."""
        ...


class ReducedSystem:
    """H δ = -g over all cameras' 12 entries (rows of P in turn), landmarks eliminated."""

    def __init__(self, tracks: Tracks, camera_term: CameraTerm | None = None):
        self.tracks = tracks
        self.camera_term = camera_term
        m = tracks.cameras
        row, column = np.nonzero(np.tril(tracks.covisibility))
        self._pairs = np.stack([row, column], axis=1)
        self._pair = np.full((m, m), -1, dtype=np.int64)
        self._pair[row, column] = self._pair[column, row] = np.arange(len(row))
        self._blocks = np.empty((len(row), kernels.BLOCK))
        self.H = np.zeros((12 * m, 12 * m))
        self._factor = np.empty_like(self.H)
        self.gradient = np.empty((m, 3, 4))
        self.landmark_gain = 0.0

    def assemble(
        self,
        quadratic: Quadratic,
        P: Array,
        X: Array,
        *,
        weight: Array = UNWEIGHTED,
        homogeneous: bool = False,
        landmark_damping: float = 0.0,
    ) -> None:
        """Fill H and the gradient at cameras P and landmarks X."""
        q, t = quadratic, self.tracks
        self.landmark_gain = kernels.assemble(
            t.ptr, t.cam, self._pair, q.S, q.anchor, q.g, weight, P, X,
            homogeneous, landmark_damping, self._blocks, self.gradient,
        )  # fmt: skip
        kernels.scatter(self._pairs, self._blocks, self.H)
        if self.camera_term is not None:
            self.camera_term.add(P, self.H, self.gradient)

    def diagonal(self) -> Array:
        """Diagonal of H, (cameras, 12)."""
        return np.diagonal(self.H).reshape(-1, 12)

    def solve(self, damping: float | Array) -> tuple[Array, float] | None:
        """The step δ of (H + diag(damping)) δ = -g and the decrease that the quadratic predicts for it.

        None where the damped matrix is not positive definite in floating point.
        """
        np.copyto(self._factor, self.H)
        self._factor.flat[:: len(self._factor) + 1] += damping
        # LAPACK reads columns first: our lower triangle is the upper one of the transpose, without a copy.
        factor, info = _potrf(self._factor.T, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            return None
        g = self.gradient.reshape(-1)
        step, info = _potrs(factor, -g, lower=0)
        if info != 0 or not np.all(np.isfinite(step)):
            return None
        # -g'δ - 1/2 δ'Hδ with Hδ = -g - damping δ; no second product with H is needed.
        predicted = 0.5 * float(np.sum(damping * step * step) - g @ step) + self.landmark_gain
        return step.reshape(-1, 3, 4), predicted
