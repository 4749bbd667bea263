"""What RpOSE needs between stage 1 and the refinement: a radial refinement and the cameras' third rows.

A radial camera is the first two rows of P: it says on which line through the principal point a landmark appears. The
distance along the line, which distortion changes, fixes the third row afterwards.
"""

from dataclasses import dataclass

import numpy as np

from initfree.data.tracks import Array, Tracks
from initfree.engine.levenberg_marquardt import Convergence, LMConfig, OnIteration
from initfree.engine.linear_solver import EXACT, LinearSolver
from initfree.engine.losses import LeastSquares
from initfree.engine.quadratic import Quadratic
from initfree.stages.refinement.reprojection import ProjectiveRefinement


@dataclass(frozen=True)
class RadialError:
    """r = f |m| sin∠(m, x) = f m⊥'x/|x|, x = (y1, y2): pixels between observation and radial line."""

    m: Array
    unit: Array
    """(observations, 2)"""

    def _parts(self, y: Array) -> tuple[Array, Array, Array]:
        f = self.unit.mean(axis=1, keepdims=True)
        normal = f * np.column_stack([-self.m[:, 1], self.m[:, 0]])
        x = y[:, :2]
        norm = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        return normal, x / norm, norm

    def squared_residuals(self, y: Array) -> Array:
        normal, direction, _ = self._parts(y)
        return np.einsum("nk,nk->n", normal, direction) ** 2

    def quadratic(self, y: Array) -> Quadratic:
        normal, direction, norm = self._parts(y)
        r = np.einsum("nk,nk->n", normal, direction)
        B = np.zeros((len(y), 1, 3))
        B[:, 0, :2] = (normal - r[:, None] * direction) / norm
        return Quadratic.from_rows(B, y, r[:, None])


def refine_radial(
    tracks: Tracks,
    m: Array,
    unit: Array,
    P: Array,
    X: Array,
    *,
    distortion: bool,
    config: LMConfig,
    on_iteration: OnIteration | None = None,
    solver: LinearSolver = EXACT,
) -> tuple[Array, Array, Convergence]:
    """RpOSE's local refinement of the radial error, then the third rows (matrix completion)."""
    P = P.copy()
    P[:, 2] = 0.0
    stage = ProjectiveRefinement(tracks, RadialError(m, unit), P, X, solver=solver)
    convergence = stage.minimise(config, LeastSquares(), on_iteration)
    P, X = stage.reconstruction
    return third_rows(tracks, m, P, X, distortion), X, convergence


def third_rows(tracks: Tracks, m: Array, P: Array, X: Array, distortion: bool) -> Array:
    """Per camera, linear least squares for p3 (and k1, k2 where there may be distortion):

        p3'X - λ (k1 r² + k2 r⁴) = λ,   λ = m'x/|m|², r = |m|,

    because the distorted observation is m = (x/z)(1 + k1 r² + k2 r⁴) for a depth z = p3'X. Each equation is divided by
    λ/r, which turns it into a distance in the image.
    """
    P = P.copy()
    for camera in range(tracks.cameras):
        here = tracks.seen_by(camera)
        observed, points = m[here], X[tracks.landmark[here]]
        r2 = np.maximum(np.einsum("nk,nk->n", observed, observed), 1e-12)
        along = np.einsum("nk,nk->n", observed, points @ P[camera, :2].T) / r2
        floor = 1e-3 * float(np.median(np.abs(along))) + 1e-300
        weight = np.sqrt(r2) / np.maximum(np.abs(along), floor)
        columns = [points]
        if distortion and len(here) >= 12:
            columns += [-(along * r2)[:, None], -(along * r2**2)[:, None]]
        system = np.concatenate(columns, axis=1)
        # A landmark on the wrong side of the centre has the wrong sign of λ; weights from the residuals play it down.
        robust, solution = np.ones(len(here)), np.zeros(system.shape[1])
        for _ in range(4):
            scaled = (weight * robust)[:, None] * system
            solution = np.linalg.lstsq(scaled, weight * robust * along, rcond=None)[0]
            residual = np.abs(weight * (system @ solution - along))
            scale = max(4.5 * float(np.median(residual)), 1e-9)
            robust = 1.0 / np.sqrt(1.0 + (residual / scale) ** 2)
        P[camera, 2] = solution[:4]
    return P
