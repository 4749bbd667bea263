"""Stage 2: the projective reconstruction that minimises a geometric error, on the same kernels.

Cameras (3x4) and landmarks (homogeneous) live on unit spheres. The error of an observation depends on y = P X and not on
its scale, so S y = 0 and a step never has a component along P_i: twelve numbers a camera, no tangent basis, and the
damping takes care of the fifteen degrees of the projective gauge.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from initfree.data.tracks import Array, Tracks
from initfree.engine import threads
from initfree.engine.kernels import kernel
from initfree.engine.linear_solver import EXACT, LinearSolver
from initfree.engine.losses import Cauchy
from initfree.engine.quadratic import Quadratic, project
from initfree.engine.reduced_system import ReducedSystem
from initfree.engine.robust_stage import RobustStage
from initfree.stages.refinement.frames import cameras_on_spheres, on_spheres, whitening


class ProjectiveError(Protocol):
    """A residual of every observation that does not change with the scale of y."""

    def squared_residuals(self, y: Array) -> Array: ...

    def quadratic(self, y: Array) -> Quadratic:
        """Gauss-Newton: residual and Jacobian at y."""
        ...


@dataclass(frozen=True)
class Reprojection:
    """r = f (π(y) - m) in pixels, π(y) = (y1, y2)/y3, with f pixels per normalised unit.

    Cameras stay in normalised coordinates, for their conditioning; the cost is that of pixel coordinates.
    """

    m: Array
    unit: Array
    """(observations, 2): f in x and in y"""

    def squared_residuals(self, y: Array) -> Array:
        squared = np.empty(len(y))
        threads.run(_squared_reprojection, len(y), y, self.m, self.unit, squared)
        return squared

    def quadratic(self, y: Array) -> Quadratic:
        n = len(y)
        S, g, c = np.empty((n, 6)), np.empty((n, 3)), np.empty(n)
        threads.run(_linearise_reprojection, n, y, self.m, self.unit, S, g, c)
        return Quadratic(S, y, g, c)


def reprojection_errors(tracks: Tracks, m: Array, unit: Array, P: Array, X: Array) -> Array:
    """Of every observation, in pixels, for projective cameras and landmarks."""
    return np.sqrt(Reprojection(m, unit).squared_residuals(project(tracks, P, X)))


@kernel(inline="always")
def _depth(z):
    """y3 kept away from zero: a point on the principal plane has a huge residual, not an infinite one."""
    away = 1e-12 if z >= 0.0 else -1e-12
    return away if abs(z) < 1e-12 else z


@kernel()
def _squared_reprojection(begin, end, y, m, unit, squared):
    for a in range(begin, end):
        over = 1.0 / _depth(y[a, 2])
        r0, r1 = (y[a, 0] * over - m[a, 0]) * unit[a, 0], (y[a, 1] * over - m[a, 1]) * unit[a, 1]
        squared[a] = r0 * r0 + r1 * r1


@kernel()
def _linearise_reprojection(begin, end, y, m, unit, S, g, c):
    """B = dr/dy = 1/y3 [fx 0 -fx u; 0 fy -fy v]; S = B'B, g = B'r."""
    for a in range(begin, end):
        z = _depth(y[a, 2])
        u, v = y[a, 0] / z, y[a, 1] / z
        b0, b1 = unit[a, 0] / z, unit[a, 1] / z
        r0, r1 = (u - m[a, 0]) * unit[a, 0], (v - m[a, 1]) * unit[a, 1]
        s0, s1 = b0 * b0, b1 * b1
        S[a, 0], S[a, 1], S[a, 2] = s0, 0.0, -s0 * u
        S[a, 3], S[a, 4], S[a, 5] = s1, -s1 * v, s0 * u * u + s1 * v * v
        g[a, 0], g[a, 1], g[a, 2] = b0 * r0, b1 * r1, -(u * b0 * r0 + v * b1 * r1)
        c[a] = r0 * r0 + r1 * r1


_UNDAMPED = 1e-12
"""as good as none, for homogeneous landmarks, whose blocks are singular along them"""


@dataclass(frozen=True)
class ProjectiveTrial:
    """Projective cameras P and landmarks X after an attempted step, y = PX and |r|² of every observation."""

    P: Array
    X: Array
    y: Array
    squared: Array
    cost: float
    predicted: float
    step: float


class ProjectiveRefinement(RobustStage):
    """Joint Levenberg-Marquardt over cameras and landmarks with Schur complement.

    Each camera is damped by λ times the mean of its own diagonal, each landmark by λ times that of its own block, so the
    step does not depend on the pixel scale or on the gauge's scale.
    """

    def __init__(self, tracks: Tracks, error: ProjectiveError, P: Array, X: Array, *, solver: LinearSolver = EXACT) -> None:
        self._tracks = tracks
        self._error = error
        self._system = ReducedSystem(tracks, solver=solver)
        G, inverse = whitening(P)
        self._undo = inverse, G
        self.P, self.X = on_spheres(P @ G, X @ inverse.T)
        self._y = project(tracks, self.P, self.X)
        self._squared = error.squared_residuals(self._y)

    def linearise(self) -> float:
        self._quadratic = self._error.quadratic(self._y)
        if isinstance(self._loss, Cauchy):
            self._quadratic = self._quadratic.weighted(self._loss.weights(self._squared))
        return self._loss.total(self._squared)

    def attempt(self, damping: float) -> ProjectiveTrial | None:
        self._system.assemble(self._quadratic, self.P, self.X, homogeneous=True, landmark_damping=damping)
        scale = np.maximum(self._system.diagonal().mean(axis=1), 1e-300)
        solved = self._system.solve(np.repeat(damping * scale, 12))
        if solved is None:
            return None
        step, predicted = solved
        X, landmarks = self._system.back_substitute(step)
        P = cameras_on_spheres(self.P + step)
        y = project(self._tracks, P, X)
        squared = self._error.squared_residuals(y)
        return ProjectiveTrial(
            P, X, y, squared, self._loss.total(squared), predicted + landmarks, float(np.linalg.norm(step))
        )

    def accept(self, trial: ProjectiveTrial) -> None:
        self.P, self.X, self._y, self._squared = trial.P, trial.X, trial.y, trial.squared

    def gradient_cosine(self) -> float:
        self._system.assemble(self._quadratic, self.P, self.X, homogeneous=True, landmark_damping=_UNDAMPED)
        return self._system.gradient_cosine(self._loss.total(self._squared))

    @property
    def reconstruction(self) -> tuple[Array, Array]:
        """Cameras and landmarks in the projective frame in which they came, on unit spheres."""
        inverse, G = self._undo
        return on_spheres(self.P @ inverse, self.X @ G.T)

    @property
    def squared_residuals(self) -> Array:
        """Of every observation, without the loss."""
        return self._squared
