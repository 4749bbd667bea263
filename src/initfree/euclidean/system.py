"""The reduced system of metric cameras: buffers allocated once, assembled many times."""

import numpy as np

from initfree.engine import threads
from initfree.engine.camera_pairs import CameraPairs, row_work
from initfree.euclidean import kernels
from initfree.tracks import Array, Tracks

Cameras = tuple[Array, Array, Array, Array]
"""R (cameras, 3, 3), t (cameras, 3), focal (cameras,), radial (cameras, 2)"""
Image = tuple[Array, Array, bool]
"""m and pixels per normalised unit (observations, 2), and whether a point behind a camera has the worst error"""


def squared_residuals(tracks: Tracks, cameras: Cameras, xyz: Array, image: Image) -> Array:
    """|r|² of every observation, in pixels², (observations,)"""
    squared = np.empty(tracks.observations)
    threads.run(kernels.squared_residuals, tracks.ptr, tracks.ptr, tracks.cam, cameras, xyz, image, squared)
    return squared


class MetricSystem:
    """H δ = -g over the moving numbers of every camera, landmarks eliminated, in blocks of camera pairs."""

    def __init__(self, tracks: Tracks, slots: tuple[int, ...]) -> None:
        """`slots`: which of a camera's numbers move (`kernels.PARAMETERS`)."""
        self._tracks, self._slots = tracks, slots
        self.pairs = CameraPairs.covisible(tracks)
        self._work = row_work(tracks)
        n, landmarks, width = tracks.observations, tracks.landmarks, len(slots)
        self._G, self._Q, self._e = np.empty((n, 2, width)), np.empty((n, 2, 3)), np.empty((n, 2))
        self._M, self._u, self._shift = np.empty((landmarks, 3, 3)), np.empty((landmarks, 3)), np.empty(landmarks)
        self.blocks = np.empty((len(self.pairs), width, width))
        """(pairs, slots, slots)"""
        self.diagonal = np.empty((tracks.cameras, width))
        """diag(J'J), before the landmarks are eliminated, (cameras, slots)"""
        self.gradient = np.empty((tracks.cameras, width))
        """(cameras, slots)"""

    def assemble(self, cameras: Cameras, xyz: Array, image: Image, weight: Array, damping: float = 0.0) -> None:
        """Blocks, diagonal and gradient with weighted residuals and damped landmarks."""
        t = self._tracks
        observed, landmark = (self._G, self._Q, self._e), (self._M, self._u, self._shift)
        model = self._slots, cameras, xyz, image, weight, damping
        threads.run(kernels.condense, t.ptr, t.ptr, t.cam, *model, *observed, *landmark)
        layout, pairs = (t.ptr, t.cam, t.landmark, t.camera_ptr, t.by_camera), (self.pairs.ptr, self.pairs.column)
        system = self.blocks, self.diagonal, self.gradient
        threads.run(kernels.gather, self._work, layout, pairs, self._slots, *observed, *system)

    def back_substitute(self, step: Array, xyz: Array) -> tuple[Array, float]:
        """Landmarks after the joint step (cameras, slots), and their share of the decrease that the quadratic predicts."""
        t = self._tracks
        moved, damped = np.empty_like(xyz), np.empty(t.landmarks)
        landmark = self._M, self._u, self._shift
        threads.run(kernels.back_substitute, t.ptr, t.ptr, t.cam, self._G, self._Q, *landmark, xyz, step, moved, damped)
        return moved, 0.5 * float(np.vdot(self._u, self._u)) + float(damped.sum())
