"""Stage 1: minimise a formulation over cameras and landmarks by variable projection.

RW2 (Kaufman's approximation, paper eq. RW2): landmarks are solved in closed form after every camera step and are never
damped; the cameras' step solves (Ju'(I - Jv Jv†)Ju + λ I) δ = -Ju*'ε, the reduced system of `engine.reduced_system`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from initfree.data.tracks import Array, Tracks
from initfree.engine.factorisation import factorisation
from initfree.engine.levenberg_marquardt import Convergence, LMConfig, OnIteration, minimise
from initfree.engine.linear_solver import EXACT, LinearSolver
from initfree.engine.losses import CONSISTENT, LOSSES, LeastSquares, Loss, RobustLoss, scale_from_median, stage_1_losses
from initfree.engine.matrix import UNWEIGHTED, BlockMatrix, CameraTerm, ImplicitMatrix
from initfree.engine.quadratic import Eliminated, Quadratic
from initfree.engine.reduced_system import ReducedSystem
from initfree.errors import InputError
from initfree.formulations.base import Formulation, homogeneous

_HELD = 1e-9
"""share of a middling stiffness by which cameras are held in place where nothing else does"""
_GAUGE = 16
"""dimension of x -> H x, which changes no residual"""
_SCALE_MULTIPLE = 3.0
_SCALE_FLOOR = 2e-3
"""In normalised units, where an image is about 2 wide: around a pixel."""


@dataclass(frozen=True)
class VarProTrial:
    """Cameras after an attempted step, landmarks in closed form, and |r|² of every observation."""

    P: Array
    landmarks: Eliminated
    """with what the next linear system begins with"""
    squared: Array
    cost: float
    predicted: float
    step: float

    @property
    def X(self) -> Array:
        return self.landmarks.X


class VariableProjection:
    """The state of stage 1, driven by `levenberg_marquardt.minimise`.

    Losses: `cauchy`, and any other of `LOSSES`, eliminates landmarks by least squares and reweights the projected residuals
    and their Jacobian, (W J*)'(W J*) δ = -(W J*)' W ε* (paper, appendix A: robust VarPro); `cauchy-consistent` carries the
    weights into the elimination, so that v* minimises the (majorised) robust cost itself.
    """

    def __init__(
        self,
        tracks: Tracks,
        m: Array,
        formulation: Formulation,
        P: Array,
        *,
        loss: str = "none",
        loss_scale: float | None = None,
        camera_term: CameraTerm | None = None,
        weight: Array | None = None,
        solver: LinearSolver = EXACT,
        column_scaling: bool = False,
    ) -> None:
        """`weight` (observations,) multiplies the squared residuals, whatever the loss does with them then.

        `column_scaling`: λ diag(Ju'Ju) in the place of λ I, as where every column of Ju is divided by its norm first
        (`jacobi_scaling` of PoVar, on by default there).
        """
        if loss_scale is not None and not loss_scale > 0.0:
            raise InputError(f"loss scale is {loss_scale}; expected a positive number")
        if loss not in stage_1_losses():
            raise InputError(f"loss is {loss!r}; expected one of {', '.join(stage_1_losses())}")
        self._tracks = tracks
        self._m = m
        self._formulation = formulation
        self._make = LOSSES.get(loss.removesuffix(CONSISTENT))
        self._consistent = loss.endswith(CONSISTENT)
        self._loss_scale = loss_scale
        self._loss: Loss = LeastSquares()
        self._camera_term = camera_term
        self._system = ReducedSystem(tracks, camera_term, solver)
        self._given = weight
        self._column_scaling = column_scaling
        self._quadratic = self._effective = self._linearised(homogeneous(m))
        self._weight = UNWEIGHTED
        self.P = np.ascontiguousarray(P, dtype=np.float64).copy()
        self._landmarks, self._squared = self._projected(self.P)

    def _linearised(self, y: Array) -> Quadratic:
        quadratic = self._formulation.quadratic(self._m, y)
        return quadratic if self._given is None else quadratic.weighted(self._given)

    def _projected(self, P: Array) -> tuple[Eliminated, Array]:
        """Landmarks v*(P), and the squared residuals of the formulation, which have no weights of the loss."""
        found = self._effective.eliminated(self._tracks, P)
        if self._formulation.relinearises:
            squared = self._formulation.squared_residuals(self._m, found.y)
            return found, squared if self._given is None else self._given * squared
        return found, found.squared if self._effective is self._quadratic else self._quadratic.squared_residuals(found.y)

    @property
    def X(self) -> Array:
        """Landmarks v*(P), homogeneous, (landmarks, 4)."""
        return self._landmarks.X

    def _cost(self, P: Array, squared: Array) -> float:
        cameras = 0.0 if self._camera_term is None else self._camera_term.cost(P)
        return self._loss.total(squared) + cameras

    def _weights(self, make: Callable[[float], RobustLoss]) -> Array:
        """Under the loss at the given scale, or at three robust deviations of the residuals so far: it only shrinks."""
        scale = self._loss_scale
        if scale is None:
            scale = scale_from_median(self._squared, _SCALE_MULTIPLE, _SCALE_FLOOR)
            scale = scale if self.loss_scale is None else min(scale, self.loss_scale)
        self._loss = robust = make(scale)
        return robust.weights(self._squared)

    def linearise(self) -> float:
        if self._formulation.relinearises:
            self._quadratic = self._effective = self._linearised(self._landmarks.y)
        if self._make is not None:
            weight = self._weights(self._make)
            if self._consistent:
                self._effective = self._quadratic.weighted(weight)
            else:
                self._weight = weight
        known = self._landmarks.quadratic is self._effective and not self._weight.size
        whitening = self._landmarks.M if known else None
        self._system.assemble(self._effective, self.P, self.X, weight=self._weight, whitening=whitening)
        if self._column_scaling:
            self._scale = self._squared_columns()
        return self._cost(self.P, self._squared)

    def _squared_columns(self) -> Array:
        """diag(Ju'Ju), flat: Σ_j S_rr X_c² for entry (r, c) of a camera, before landmarks are eliminated."""
        t = self._tracks
        S = self._effective.S[:, [0, 3, 5]]
        if self._weight.size:
            S = S * self._weight[:, None]
        total = np.zeros((t.cameras, 3, 4))
        np.add.at(total, t.cam, S[:, :, None] * self.X[t.landmark, None, :] ** 2)
        return np.maximum(total, 1e-12 * total.max()).reshape(-1)

    def attempt(self, damping: float) -> "VarProTrial | None":
        solved = self._system.solve(damping * self._scale if self._column_scaling else damping)
        if solved is None:
            return None
        step, predicted = solved
        P = self.P + step
        found, squared = self._projected(P)
        return VarProTrial(P, found, squared, self._cost(P, squared), predicted, float(np.linalg.norm(step)))

    def accept(self, trial: "VarProTrial") -> None:
        self.P, self._landmarks, self._squared = trial.P, trial.landmarks, trial.squared

    def gradient_cosine(self) -> float:
        return self._system.gradient_cosine(self._cost(self.P, self._squared))

    def series_spectrum(self, damping: float) -> Array:
        """Eigenvalues μ of A^-1 (A - E), ascending: along each a term of the power series leaves 1 - μ of the error.

        Needs an inexact linear solver, and a small problem.
        """
        matrix = self._system.matrix
        assert isinstance(matrix, ImplicitMatrix)
        self.linearise()
        return matrix.spectrum(damping * self._scale if self._column_scaling else damping)

    def series_gap(self, damping: float) -> float:
        """The smallest that is not of the gauge."""
        return float(self.series_spectrum(damping)[_GAUGE])

    @property
    def loss_scale(self) -> float | None:
        """Of the loss in use."""
        return None if isinstance(self._loss, LeastSquares) else self._loss.scale

    @property
    def mean_residual(self) -> float:
        """Mean over observations of the norm of the formulation's residual, in normalised units."""
        return float(np.mean(np.sqrt(np.maximum(self._squared, 0.0))))

    def minimise(self, config: LMConfig, on_iteration: OnIteration | None = None) -> Convergence:
        """Run to convergence; a mean squared residual of 1e-30 is a perfect fit in double precision."""
        return minimise(self, config, on_iteration, zero_cost=1e-30 * self._tracks.observations)


def placed(tracks: Tracks, m: Array, formulation: Formulation, P: Array) -> Array:
    """Cameras whose left 3x3 is right (`two_view.averaging`), moved to where the observations put them.

    With R_k held, y = R_k X + t_k is linear in translations and landmarks together, and so is a quadratic formulation's
    optimum over both: one sparse system of three numbers a camera, 64 times cheaper to factorise than that of all twelve,
    however far apart in the graph two cameras are. The world's origin is free: it stays about where it is.
    """
    P = np.ascontiguousarray(P, dtype=np.float64)
    quadratic = formulation.quadratic(m, homogeneous(m))
    system = ReducedSystem(tracks)
    landmarks = quadratic.eliminated(tracks, P)
    system.assemble(quadratic, P, landmarks.X, whitening=landmarks.M)
    assert isinstance(system.matrix, BlockMatrix)
    pairs, blocks = system.matrix.pairs, np.ascontiguousarray(system.matrix.blocks[:, 3::4, 3::4])
    gradient = np.ascontiguousarray(system.gradient[:, :, 3])
    del system
    column = np.arange(3 * tracks.cameras).reshape(-1, 3)
    factor = factorisation(pairs, column, column.size)
    level = float(np.median(np.einsum("nii->ni", blocks[pairs.diagonal])))
    if not factor.factorise(blocks, _HELD * level):
        return P
    step = factor.solve(-gradient.reshape(-1))
    moved = P.copy()
    moved[:, :, 3] += step.reshape(-1, 3)
    return moved if np.isfinite(moved).all() else P
