"""Levenberg-Marquardt over metric cameras and landmarks, landmarks eliminated by Schur complement."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index, Tracks
from initfree.engine import threads
from initfree.engine.factorisation import factorisation
from initfree.engine.levenberg_marquardt import (
    NEAR,
    Convergence,
    Iteration,
    LMConfig,
    OnIteration,
    coarse,
    gradient_cosine,
    joined,
)
from initfree.engine.losses import Cauchy, LeastSquares, Loss
from initfree.engine.robust_stage import RobustStage
from initfree.errors import InputError
from initfree.stages.euclidean import kernels
from initfree.stages.euclidean.parameters import POSES_ONLY, FreeIntrinsics, Parameters, retracted
from initfree.stages.euclidean.system import MetricSystem, squared_residuals
from initfree.stages.euclidean.triangulation import triangulate

_WIDE = 1000.0
"""pixels: a scale at which Cauchy is least squares for all but points that are nowhere near"""

OnStep = Callable[[int, Iteration, Reconstruction], None]
"""called with the attempt, its figures and where the adjustment is after it"""


@dataclass(frozen=True)
class _Trial:
    state: Reconstruction
    squared: Array
    cost: float
    predicted: float
    step: float


class EuclideanAdjustment(RobustStage):
    """Minimise 1/2 sum ρ(w |r|²) + 1/2 |priors|² over rotations, translations, free intrinsics and landmarks.

    Cameras are damped by λ diag(J'J) (Marquardt), each landmark by λ times the mean diagonal of its own block: neither the
    unit of the world nor its origin or orientation changes a step. The damping also takes care of the seven degrees of
    the gauge.
    """

    def __init__(
        self,
        tracks: Tracks,
        m: Array,
        unit: Array,
        state: Reconstruction,
        *,
        free: FreeIntrinsics = POSES_ONLY,
        groups: Index | None = None,
        weight: Array | None = None,
        cheirality: bool = True,
    ) -> None:
        """`groups` (cameras,) numbers the cameras that share intrinsics (default: one each); `weight` (observations,)
        multiplies |r|², zero switches an observation off. Without `cheirality` a point behind a camera projects like any
        other, as in BAL."""
        self._tracks = tracks
        self._image = m, unit, cheirality
        self._weight = np.ones(tracks.observations) if weight is None else np.asarray(weight, dtype=np.float64)
        if self._weight.shape != (tracks.observations,) or not np.all(self._weight >= 0.0):
            raise InputError(f"expected {tracks.observations} weights, none negative")
        groups = np.arange(tracks.cameras) if groups is None else groups
        state = _with_shared_intrinsics(state, groups, free)
        self._parameters = Parameters(free.at(state.focal), groups)
        self._free, self._reference, self.state = free, state, state
        if free.focal_about is not None:
            self._reference = replace(state, focal=free.focal_about)
        self._system = MetricSystem(tracks, free.slots)
        self._factorisation = factorisation(self._system.pairs, self._parameters.column, self._parameters.size)
        self._irls = self._weight
        self._squared = self._evaluate(state)

    def _evaluate(self, state: Reconstruction) -> Array:
        """Weighted squared residuals."""
        return self._weight * squared_residuals(self._tracks, state.cameras, state.xyz, self._image)

    def _cost(self, state: Reconstruction, squared: Array) -> float:
        held = self._parameters.intrinsics(state, self._reference)
        return self._loss.total(squared) + 0.5 * float(self._parameters.prior @ held**2)

    def linearise(self) -> float:
        self._irls = self._weight
        if isinstance(self._loss, Cauchy):
            self._irls = self._weight * self._loss.weights(self._squared)
        return self._cost(self.state, self._squared)

    def _assemble(self, damping: float) -> tuple[Array, Array]:
        """Gradient and diagonal over the free parameters, priors included."""
        state, p = self.state, self._parameters
        self._system.assemble(state.cameras, state.xyz, self._image, self._irls, damping)
        gradient = p.fold(self._system.gradient) + p.prior * p.intrinsics(state, self._reference)
        return gradient, p.fold(self._system.diagonal) + p.prior

    def gradient_cosine(self) -> float:
        return gradient_cosine(*self._assemble(0.0), self._cost(self.state, self._squared))

    def attempt(self, damping: float) -> _Trial | None:
        t, state, p = self._tracks, self.state, self._parameters
        gradient, diagonal = self._assemble(damping)
        # A camera whose observations are all switched off stays where it is.
        shift = damping * np.where(diagonal > 0.0, diagonal, 1.0)
        if not self._factorisation.factorise(self._system.blocks, shift + p.prior):
            return None
        step = self._factorisation.solve(-gradient)
        if not np.all(np.isfinite(step)):
            return None
        by_slot = p.unfold(step)
        moved = retracted(state, p.complete(by_slot))
        if self._free.focal:
            moved = replace(moved, focal=self._free.bounded(moved.focal))
        xyz, gain = self._system.back_substitute(by_slot, state.xyz)
        if self._image[2]:
            threads.run(kernels.stay_in_front, t.ptr, t.ptr, t.cam, self._weight, moved.R, moved.t, state.xyz, xyz)
        moved = replace(moved, xyz=xyz)
        # -g'δ - 1/2 δ'Hδ of the joint system, with (H + damping) δ = -g.
        predicted = 0.5 * float(shift @ step**2 - gradient @ step) + gain
        squared = self._evaluate(moved)
        return _Trial(moved, squared, self._cost(moved, squared), predicted, float(np.linalg.norm(step)))

    def accept(self, trial: _Trial) -> None:
        self.state, self._squared = trial.state, trial.squared

    def callback(self, on_step: OnStep | None) -> OnIteration | None:
        """The loop's callback, which passes on where a step led."""
        return None if on_step is None else lambda index, step: on_step(index, step, self.state)

    @property
    def squared_residuals(self) -> Array:
        """|r|² of every observation in pixels², without loss and weight."""
        return squared_residuals(self._tracks, self.state.cameras, self.state.xyz, self._image)


def _with_shared_intrinsics(state: Reconstruction, groups: Index, free: FreeIntrinsics) -> Reconstruction:
    """Cameras that share intrinsics begin with their group's geometric mean focal length and mean k1, k2."""
    _, group = np.unique(groups, return_inverse=True)
    if len(group) != len(state.focal):
        raise InputError(f"{len(group)} camera groups given for {len(state.focal)} cameras; expected one each")
    size = np.bincount(group)
    focal, radial = state.focal, state.radial
    if free.focal:
        focal = np.exp(np.bincount(group, weights=np.log(focal)) / size)[group]
    if free.radial:
        mean = [np.bincount(group, weights=k)[group] / size[group] for k in radial.T]
        radial = np.stack(mean, axis=1)
    return replace(state, focal=focal, radial=radial)


@dataclass(frozen=True)
class AdjustConfig:
    """The Euclidean end of the pipeline."""

    free: FreeIntrinsics = POSES_ONLY
    scales: tuple[float, ...] = (50.0, 10.0, 4.0)
    """scales of the Cauchy loss in pixels, wide to narrow"""
    least_squares: bool = False
    """end with least squares over all observations"""
    cheirality: bool = True
    """whether landmarks must end in front of their cameras; if not, a last round of least squares lets them pass behind
    (how BAL's costs are counted)"""
    max_iterations: int = 100
    """most attempted steps at each scale"""
    tolerance: float = 1e-10
    """the last scale ends when a step lowers the cost by less than this share"""
    floor: float = 0.0
    """the share is of the cost above this value, for a caller that only needs to know whether the cost reaches it"""
    near: bool = False
    """whether the beginning is near the optimum: the first scale's damping is low then, as that of a last one always is"""

    def __post_init__(self) -> None:
        if not self.scales or not all(scale > 0.0 for scale in self.scales):
            raise InputError(f"the scales of the adjustment are {self.scales}; expected positive numbers of pixels")


DEFAULT = AdjustConfig()


def adjust(
    problem: Problem,
    reconstruction: Reconstruction,
    config: AdjustConfig = DEFAULT,
    *,
    groups: Index | None = None,
    weight: Array | None = None,
    on_step: OnStep | None = None,
) -> tuple[Reconstruction, Convergence]:
    """Re-triangulate and adjust at each scale in turn; the metric reconstruction and the history.

    `groups` (cameras,) numbers the cameras that share intrinsics, by default those of one camera of the input; `weight`
    (observations,) multiplies |r|².
    Never least squares first: a single point near infinity would outweigh all others.
    """
    state = reconstruction.contiguous()
    groups = problem.camera_ids if groups is None else groups
    limits = LMConfig(config.max_iterations, config.tolerance, floor=config.floor)
    rounds: list[tuple[Loss, bool]] = [(Cauchy(scale), True) for scale in config.scales]
    if config.least_squares or not config.cheirality:
        rounds.append((LeastSquares(), True))
    if not config.cheirality:
        rounds.append((LeastSquares(), False))
    parts = []
    last = len(rounds) - 1
    for k, (loss, cheirality) in enumerate(rounds):
        scale = loss.scale if isinstance(loss, Cauchy) else _WIDE
        xyz, _ = triangulate(problem, state, state.xyz, weight=weight, scale=scale, cheirality=cheirality)
        stage = EuclideanAdjustment(
            problem.tracks, problem.m, problem.unit, replace(state, xyz=xyz),
            free=config.free, groups=groups, weight=weight, cheirality=cheirality,
        )  # fmt: skip
        ended = limits if k == last else coarse(limits)
        if config.near if k == 0 else k == last:
            ended = replace(ended, damping=NEAR)
        parts.append(stage.minimise(ended, loss, stage.callback(on_step)))
        state = stage.state
    return state, joined(parts)
