"""How the images of a model hang together: frames that carry several, places known from elsewhere, what stays where it is.

A rig's frame f has the pose y = R_f X + t_f, and its sensor s sees x = R_s y + t_s (COLMAP's sensor_from_rig). A step turns
and moves the frame, y <- exp([ω]×) y + τ, so that with A = dr/dx the derivatives are those of an image with A R_s at y.

A position known as p with the information Λ adds 1/2 (c - p)'Λ(c - p) for the centre c = R_f'(o - t_f), o = -R_s't_s, with

    dc/dω = R_f'[o]×,   dc/dτ = -R_f'.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from initfree.data.tracks import Array, Index
from initfree.engine.camera_pairs import CameraPairs

Chosen = NDArray[np.bool_]


@dataclass(frozen=True)
class Positions:
    """Centres of some images as GNSS or a survey has them."""

    image: Index
    centre: Array
    """(positions, 3)"""
    information: Array
    """(positions, 3, 3): inverse of the covariance"""


@dataclass(frozen=True)
class Layout:
    """Which frame carries each image, and what does not move."""

    frame: Index
    """(images,)"""
    still: Chosen
    """(frames,) whose pose stays"""
    still_landmarks: Chosen
    """(landmarks,)"""
    sensors: tuple[Array, Array] | None = None
    """R (images, 3, 3) and t (images, 3) from frame to image; None: an image is its frame"""
    positions: Positions | None = field(default=None, repr=False)

    @classmethod
    def of_images(cls, images: int, landmarks: int) -> "Layout":
        """Each image by itself, and everything moves."""
        return cls(np.arange(images), np.zeros(images, dtype=bool), np.zeros(landmarks, dtype=bool))

    def seen(self, y: Array, image: Index) -> Array:
        """x = R_s y + t_s of observations (n, 3) in these images."""
        if self.sensors is None:
            return y
        R, t = self.sensors
        return np.einsum("nij,nj->ni", R[image], y) + t[image]

    def by_frame(self, by_x: Array, image: Index) -> Array:
        """dr/dy = dr/dx R_s, (n, 2, 3)"""
        return by_x if self.sensors is None else by_x @ self.sensors[0][image]

    def poses(self, R: Array, t: Array) -> tuple[Array, Array]:
        """World to image, of frames' poses as each image has them."""
        if self.sensors is None:
            return R, t
        turn, shift = self.sensors
        return np.ascontiguousarray(turn @ R), (turn @ t[:, :, None])[:, :, 0] + shift

    def misplaced(self, R: Array, t: Array) -> Array:
        """c - p of every known position, (positions, 3)"""
        assert self.positions is not None
        k = self.positions.image
        R, t = self.poses(R, t)
        return -np.einsum("nji,nj->ni", R[k], t[k]) - self.positions.centre

    def pulls(self, R: Array, t: Array) -> tuple[Array, Array]:
        """J'Λ(c - p) (positions, 6) and J'ΛJ (positions, 6, 6) of the known positions, over ω and τ."""
        assert self.positions is not None
        k, information = self.positions.image, self.positions.information
        o = np.zeros((len(k), 3)) if self.sensors is None else -np.einsum("nji,nj->ni", *(s[k] for s in self.sensors))
        back = R[k].transpose(0, 2, 1)
        J = np.concatenate([back @ _crossing(o), -back], axis=2)
        weighed = J.transpose(0, 2, 1) @ information
        return (weighed @ self.misplaced(R, t)[:, :, None])[:, :, 0], weighed @ J


def _crossing(v: Array) -> Array:
    """[v]×, (n, 3, 3)"""
    result = np.zeros((len(v), 3, 3))
    result[:, [2, 0, 1], [1, 2, 0]] = v
    result[:, [1, 2, 0], [2, 0, 1]] = -v
    return result


class MergedPairs:
    """Blocks of images that have all their numbers in common, summed into one: an image that sees a landmark twice is two to
    the engine, in which an image and a landmark meet once."""

    def __init__(self, pairs: CameraPairs, column: Index) -> None:
        """`column` (images, slots): rows of each image."""
        self.column, group = np.unique(column, axis=0, return_inverse=True)
        row, other = group.reshape(-1)[pairs.row], group.reshape(-1)[pairs.column]
        ends = np.stack([np.maximum(row, other), np.minimum(row, other)], axis=1)
        self.pairs = CameraPairs.only(len(self.column), np.unique(ends, axis=0))
        self._target = self.pairs.number(ends)
        self._turned = row < other
        self._twice = (row == other) & (pairs.row != pairs.column)
        self._first = np.unique(self._target, return_index=True)[1]
        self._more = np.setdiff1d(np.arange(len(self._target)), self._first)

    def blocks(self, blocks: Array) -> Array:
        """Of the merged pairs, (pairs, slots, slots)."""
        turned = blocks.copy()
        turned[self._turned] = blocks[self._turned].transpose(0, 2, 1)
        turned[self._twice] += blocks[self._twice].transpose(0, 2, 1)
        result = turned[self._first]  # every pair has one, in its order
        np.add.at(result, self._target[self._more], turned[self._more])
        return result
