"""The reduced system of metric cameras: buffers allocated once, assembled many times."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from initfree.data.tracks import Array, Tracks
from initfree.engine import threads
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.reduction import reduction_of
from initfree.engine.vectors import rows_of, vectors
from initfree.stages.euclidean import assembly, blocks, kernels

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
    """H δ = -g over the free numbers of every camera, landmarks eliminated, in blocks of camera pairs."""

    def __init__(self, tracks: Tracks, width: int) -> None:
        """`width`: free numbers of a camera."""
        self._tracks, self._width = tracks, width
        self.pairs = CameraPairs.covisible(tracks)
        self._reduction = reduction_of(tracks, coupled=True)
        self._sums = np.empty(blocks.row_of_sums(width) * self._reduction.rows)
        n, landmarks = tracks.observations, tracks.landmarks
        self._G, self._Q, self._e = vectors(n, 2 * width), np.empty((n, 2, 3)), np.empty((n, 2))
        self._M, self._u, self._shift = np.empty((landmarks, 3, 3)), np.empty((landmarks, 3)), np.empty(landmarks)
        self.blocks = np.empty((len(self.pairs), width, width))
        """(pairs, width, width)"""
        self.diagonal = np.empty((tracks.cameras, width))
        """diag(J'J), before the landmarks are eliminated, (cameras, width)"""
        self.gradient = np.empty((tracks.cameras, width))
        """(cameras, width)"""

    def _assemble(self, kernel: Callable[..., None], *model: object) -> None:
        """Blocks, diagonal and gradient of the model, whose sums a kernel of `assembly` makes."""
        t, reduction, width, lanes = self._tracks, self._reduction, self._width, blocks.lanes_for(self._width)
        rows, size = blocks.rows_for(width), blocks.row_of_sums(width)
        flat = self._G, self._Q.reshape(-1), self._e.reshape(-1)
        left = rows_of(self._G, 2, width), self._Q, self._e, self._M, self._u, self._shift
        seen = (t.ptr, t.cam), reduction.landmark_ranges, reduction.lists_of_rows, (rows, lanes, width, size)
        threads.run(kernel, reduction.work, *seen, flat, left, self._sums, *model)
        pairs, system = (self.pairs.row, self.pairs.column), (self.blocks, self.diagonal, self.gradient)
        rest = len(rows) * -(-width // len(rows)) * len(lanes)
        written = pairs, reduction.of_pairs, self._sums, rest, len(lanes), size, *system
        threads.run(blocks.write, self.pairs.work(width), *written)

    def back_substitute(self, step: Array, xyz: Array) -> tuple[Array, float]:
        """Landmarks after the joint step (cameras, width), and their share of the decrease that the quadratic predicts."""
        t = self._tracks
        reduction = self._reduction
        moved, gain = np.empty_like(xyz), np.empty(len(reduction.ranges) - 1)
        left = rows_of(self._G, 2, self._width), self._Q, self._M, self._u, self._shift
        threads.run(
            kernels.back_substitute, reduction.range_work, reduction.ranges, t.ptr, t.cam, *left, xyz, step, moved, gain
        )
        return moved, float(gain.sum())


class MetricSystem(CondensedSystem):
    """Of cameras with a focal length, k1 and k2."""

    def __init__(self, tracks: Tracks, slots: tuple[int, ...]) -> None:
        """`slots`: which of a camera's numbers are free (`kernels.PARAMETERS`)."""
        super().__init__(tracks, len(slots))
        self._slots = slots

    def assemble(self, cameras: Cameras, xyz: Array, image: Image, weight: Array, damping: float = 0.0) -> None:
        """With weighted residuals and damped landmarks."""
        self._assemble(assembly.metric, self._slots, cameras, xyz, image, weight, damping)


class LensSystem(CondensedSystem):
    """Of cameras with lenses of any model, whose derivatives are given: a pose's six numbers, then those of its lens."""

    def __init__(self, tracks: Tracks, numbers: int) -> None:
        """`numbers`: most that a lens has."""
        super().__init__(tracks, 6 + numbers)

    def assemble(
        self, R: Array, linear: tuple[Array, Array, Array, Array], weight: Array, damping: float = 0.0,
        still: NDArray[np.bool_] | None = None,
    ) -> None:  # fmt: skip
        """`linear`: x (observations, 3) in the camera's frame, residuals, dr/dx and dr/dθ (observations, 2, numbers).

        Landmarks that are `still` do not move.
        """
        still = np.zeros(self._tracks.landmarks, dtype=bool) if still is None else still
        self._assemble(assembly.lens, R, linear, weight, damping, still)
