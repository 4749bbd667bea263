"""The reduced camera system: buffers allocated once, assembled and solved many times."""

import numpy as np

from initfree.data.tracks import Array, Tracks
from initfree.engine import kernels, threads
from initfree.engine.levenberg_marquardt import gradient_cosine
from initfree.engine.linear_solver import EXACT, LinearSolver
from initfree.engine.matrix import UNWEIGHTED, BlockMatrix, CameraTerm, ImplicitMatrix, LandmarkElimination, Matrix
from initfree.engine.quadratic import Quadratic


class ReducedSystem:
    """H δ = -g over all cameras' 12 entries (rows of P in turn), landmarks eliminated."""

    def __init__(self, tracks: Tracks, camera_term: CameraTerm | None = None, solver: LinearSolver = EXACT):
        self.tracks = tracks
        self.matrix: Matrix
        if solver.name == "exact":
            self.matrix = BlockMatrix(tracks, camera_term)
        else:
            self.matrix = ImplicitMatrix(tracks, camera_term, solver)
        self._elimination = LandmarkElimination(tracks, coupled=solver.name == "exact")
        self.gradient = np.empty((tracks.cameras, 3, 4))
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
        whitening: Array | None = None,
    ) -> None:
        """Matrix and gradient at cameras P and landmarks X; `whitening` is M of `Eliminated`, if X is from there."""
        self._elimination.update(quadratic, P, X, weight, homogeneous, landmark_damping, whitening)
        self.landmark_gain = self._elimination.gain
        self.matrix.assemble(self._elimination, P, self.gradient)

    def diagonal(self) -> Array:
        """Diagonal of H, (cameras, 12)."""
        return self.matrix.diagonal()

    def gradient_cosine(self, cost: float) -> float:
        """`levenberg_marquardt.gradient_cosine` of the assembled system, at a state of this cost."""
        return gradient_cosine(self.gradient.reshape(-1), self.diagonal().reshape(-1), cost, self.landmark_gain)

    def solve(self, damping: float | Array) -> tuple[Array, float] | None:
        """The step δ of (H + diag(damping)) δ = -g and the decrease that the quadratic predicts for it.

        None where the damped matrix is not positive definite in floating point.
        """
        solved = self.matrix.solve(damping, -self.gradient)
        if solved is None or not np.all(np.isfinite(solved[0])):
            return None
        step, image = solved
        # -g'δ - 1/2 δ'Hδ, also for a step that does not solve the system exactly.
        decrease = -float(np.vdot(self.gradient, step)) - 0.5 * float(np.vdot(step, image))
        return step, decrease + self.landmark_gain

    def back_substitute(self, step: Array) -> tuple[Array, float]:
        """Homogeneous landmarks after the joint step, on unit spheres, and what their damping adds to the decrease."""
        t, c = self.tracks, self._elimination
        moved, gain = np.empty_like(c.X), np.empty(len(c.reduction.ranges) - 1)
        left = c.columns, c.M, c.u, c.shift, c.X
        threads.run(
            kernels.back_substitute, c.reduction.range_work, c.reduction.ranges, t.ptr, t.cam, *left, step, moved, gain
        )
        return moved, float(gain.sum())
