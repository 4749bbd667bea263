"""The reduced camera system: buffers allocated once, assembled and factorised many times."""

from typing import Protocol

import numpy as np

from initfree.engine import kernels, threads
from initfree.engine.blocks import gather
from initfree.engine.camera_pairs import NO_PAIRS, CameraPairs, row_work
from initfree.engine.factorisation import factorisation
from initfree.engine.quadratic import Quadratic
from initfree.tracks import Array, Index, Tracks

UNWEIGHTED = np.empty(0)


class CameraTerm(Protocol):
    """A cost on the cameras alone, added to the observations' (the rotation term of pOSE+rot)."""

    @property
    def pairs(self) -> Index:
        """Cameras (k, l), k > l, that it couples, (pairs, 2)."""
        ...

    def cost(self, P: Array) -> float: ...

    def add(self, P: Array, number: Index, diagonal: Index, blocks: Array, gradient: Array) -> None:
        """Add its Gauss-Newton blocks and its gradient (cameras, 3, 4).

        The 12x12 block of its pair n is blocks[number[n]], that of camera k with itself blocks[diagonal[k]].
        """
        ...


class ReducedSystem:
    """H δ = -g over all cameras' 12 entries (rows of P in turn), landmarks eliminated.

    H is kept as 12x12 blocks of the camera pairs that share landmarks or are coupled by the camera term.
    """

    def __init__(self, tracks: Tracks, camera_term: CameraTerm | None = None):
        t = self.tracks = tracks
        self.camera_term = camera_term
        coupled = NO_PAIRS if camera_term is None else camera_term.pairs
        self.pairs = CameraPairs.covisible(tracks, coupled)
        self._number = self.pairs.number(coupled)
        self._work = row_work(tracks)
        self._layout = t.ptr, t.cam, t.landmark, t.camera_ptr, t.by_camera
        self._Z, self._e = np.empty((t.observations, 3, 3)), np.empty((t.observations, 3))
        self._M, self._u, self._shift = np.empty((t.landmarks, 3, 3)), np.empty((t.landmarks, 3)), np.empty(t.landmarks)
        self._K = np.empty((0, 3, 3))
        self._X = np.empty((0, 4))
        self.blocks = np.empty((len(self.pairs), 12, 12))
        self.gradient = np.empty((t.cameras, 3, 4))
        self.landmark_gain = 0.0
        column = np.arange(12 * t.cameras).reshape(-1, 12)
        self._factorisation = factorisation(self.pairs, column, column.size)

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
        """Blocks and gradient at cameras P and landmarks X."""
        q, t = quadratic, self.tracks
        if weight.size and not self._K.size:
            self._K = np.empty((t.landmarks, 3, 3))
        threads.run(
            kernels.condense, t.ptr, t.ptr, t.cam, q.S, q.anchor, q.g, weight, P, X, homogeneous, landmark_damping,
            self._Z, self._e, self._M, self._u, self._shift, self._K,
        )  # fmt: skip
        threads.run(
            gather, self._work, self._layout, (self.pairs.ptr, self.pairs.column), q.S, weight, X, self._Z, self._e, self._K,
            True, self.blocks, self.gradient,
        )  # fmt: skip
        self._X = X
        # Zero for projected residuals, whose landmarks are at v* already.
        self.landmark_gain = 0.0 if weight.size else 0.5 * float(np.vdot(self._u, self._u))
        if self.camera_term is not None:
            self.camera_term.add(P, self._number, self.pairs.diagonal, self.blocks, self.gradient)

    def diagonal(self) -> Array:
        """Diagonal of H, (cameras, 12)."""
        return np.einsum("nii->ni", self.blocks[self.pairs.diagonal])

    def solve(self, damping: float | Array) -> tuple[Array, float] | None:
        """The step δ of (H + diag(damping)) δ = -g and the decrease that the quadratic predicts for it.

        None where the damped matrix is not positive definite in floating point.
        """
        if not self._factorisation.factorise(self.blocks, damping):
            return None
        g = self.gradient.reshape(-1)
        step = self._factorisation.solve(-g)
        if not np.all(np.isfinite(step)):
            return None
        # -g'δ - 1/2 δ'Hδ with Hδ = -g - damping δ; no second product with H is needed.
        predicted = 0.5 * float(np.sum(damping * step * step) - g @ step) + self.landmark_gain
        return step.reshape(-1, 3, 4), predicted

    def back_substitute(self, step: Array) -> tuple[Array, float]:
        """Homogeneous landmarks after the joint step, on unit spheres, and what their damping adds to the decrease."""
        t = self.tracks
        moved, gain = np.empty_like(self._X), np.empty(t.landmarks)
        threads.run(
            kernels.back_substitute, t.ptr, t.ptr, t.cam, self._Z, self._M, self._u, self._shift, self._X, step, moved, gain
        )
        return moved, float(gain.sum())
