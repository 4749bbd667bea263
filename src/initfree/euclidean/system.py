"""The reduced system of metric cameras: buffers allocated once, assembled many times."""

import numpy as np

from initfree.engine import threads
from initfree.engine.camera_pairs import CameraPairs, row_work
from initfree.euclidean import kernels, lens_kernels
from initfree.tracks import Array, Index, Tracks

Cameras = tuple[Array, Array, Array, Array]
"""R (cameras, 3, 3), t (cameras, 3), focal (cameras,), radial (cameras, 2)"""
Image = tuple[Array, Array, bool]
"""m and pixels per normalised unit (observations, 2), and whether a point behind a camera has the worst error"""


def squared_residuals(tracks: Tracks, cameras: Cameras, xyz: Array, image: Image) -> Array:
    """|r|² of every observation, in pixels², (observations,)"""
    squared = np.empty(tracks.observations)
    threads.run(kernels.squared_residuals, tracks.ptr, tracks.ptr, tracks.cam, cameras, xyz, image, squared)
    return squared


class CondensedSystem:
    """H δ = -g over the moving numbers of every camera, landmarks eliminated, in blocks of camera pairs; from what a kernel
    has left of each observation and landmark (`kernels.condense`)."""

    def __init__(self, tracks: Tracks, width: int) -> None:
        """`width`: numbers of a camera that move."""
        self._tracks = tracks
        self.pairs = CameraPairs.covisible(tracks)
        self._work = row_work(tracks)
        n, landmarks = tracks.observations, tracks.landmarks
        self._G, self._Q, self._e = np.empty((n, 2, width)), np.empty((n, 2, 3)), np.empty((n, 2))
        self._M, self._u, self._shift = np.empty((landmarks, 3, 3)), np.empty((landmarks, 3)), np.empty(landmarks)
        self.blocks = np.empty((len(self.pairs), width, width))
        """(pairs, slots, slots)"""
        self.diagonal = np.empty((tracks.cameras, width))
        """diag(J'J), before the landmarks are eliminated, (cameras, slots)"""
        self.gradient = np.empty((tracks.cameras, width))
        """(cameras, slots)"""

    @property
    def _condensed(self) -> tuple[Array, ...]:
        return self._G, self._Q, self._e, self._M, self._u, self._shift

    def _gather(self, slots: tuple[int, ...] | Index) -> None:
        """Blocks, diagonal and gradient. A tuple's length is known to the compiler, that of an array is not."""
        t = self._tracks
        layout, pairs = (t.ptr, t.cam, t.landmark, t.camera_ptr, t.by_camera), (self.pairs.ptr, self.pairs.column)
        system = self.blocks, self.diagonal, self.gradient
        threads.run(kernels.gather, self._work, layout, pairs, slots, self._G, self._Q, self._e, *system)

    def back_substitute(self, step: Array, xyz: Array) -> tuple[Array, float]:
        """Landmarks after the joint step (cameras, slots), and their share of the decrease that the quadratic predicts."""
        t = self._tracks
        moved, damped = np.empty_like(xyz), np.empty(t.landmarks)
        landmark = self._M, self._u, self._shift
        threads.run(kernels.back_substitute, t.ptr, t.ptr, t.cam, self._G, self._Q, *landmark, xyz, step, moved, damped)
        return moved, 0.5 * float(np.vdot(self._u, self._u)) + float(damped.sum())


class MetricSystem(CondensedSystem):
    """Of cameras with a focal length and two radial coefficients."""

    def __init__(self, tracks: Tracks, slots: tuple[int, ...]) -> None:
        """`slots`: which of a camera's numbers move (`kernels.PARAMETERS`)."""
        super().__init__(tracks, len(slots))
        self._slots = slots

    def assemble(self, cameras: Cameras, xyz: Array, image: Image, weight: Array, damping: float = 0.0) -> None:
        """Blocks, diagonal and gradient with weighted residuals and damped landmarks."""
        t, model = self._tracks, (self._slots, cameras, xyz, image, weight, damping)
        threads.run(kernels.condense, t.ptr, t.ptr, t.cam, *model, *self._condensed)
        self._gather(self._slots)


class LensSystem(CondensedSystem):
    """Of cameras with lenses of any model, whose derivatives are given: a pose's six numbers, then those of its lens."""

    def __init__(self, tracks: Tracks, numbers: int) -> None:
        """`numbers`: most that a lens has."""
        super().__init__(tracks, 6 + numbers)
        self._slots = np.arange(6 + numbers)

    def assemble(self, R: Array, linear: tuple[Array, Array, Array, Array], weight: Array, damping: float = 0.0) -> None:
        """`linear`: x (observations, 3) in the camera's frame, residuals, dr/dx and dr/dθ (observations, 2, numbers)."""
        t = self._tracks
        threads.run(lens_kernels.condense, t.ptr, t.ptr, t.cam, R, *linear, weight, damping, *self._condensed)
        self._gather(self._slots)
