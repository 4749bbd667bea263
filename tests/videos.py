"""A video of a corridor: tracks that end after a few frames, and a place that is not known again."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import initfree
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index

SIZE = (1600, 1200)
_HALF = 1.2
"""metres from the middle of the corridor to its walls"""


@dataclass(frozen=True)
class Video:
    """Tracks of a walk, and its truth."""

    image: Index
    landmark: Index
    xy: Array
    focal: float
    truth: Reconstruction

    def problem(self) -> initfree.Problem:
        """With the focal length known, and no distortion."""
        K = np.array([[self.focal, 0.0, SIZE[0] / 2.0], [0.0, self.focal, SIZE[1] / 2.0], [0.0, 0.0, 1.0]])
        names = list(self.truth.names)
        return initfree.Problem.from_tracks(self.image, self.landmark, self.xy, cameras=K, sizes=SIZE, names=names)


def corridor(
    corners: list[tuple[float, float]], frames: int, *, window: int = 6, k1: float = 0.0, noise: float = 0.3, seed: int = 0
) -> Video:
    """Cameras that walk along the corners and look two metres ahead; a track ends after about `window` frames, and what is
    seen again is another landmark. `k1` is the radial distortion of the lens."""
    rng = np.random.default_rng(seed)
    path = np.array(corners, dtype=np.float64)
    X = np.concatenate([_walls(a, b, rng) for a, b in pairwise(path)])
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])

    def at(s: Array) -> Array:
        return np.column_stack([np.interp(s, way, path[:, 0]), np.interp(s, way, path[:, 1])])

    s = np.linspace(0.0, way[-1] - 2.5, frames)
    centres = np.column_stack([at(s), np.full(frames, 1.5)]) + rng.normal(0.0, (0.1, 0.1, 0.05), (frames, 3))
    ahead = np.column_stack([at(s + 2.0) - at(s), np.zeros(frames)]) + rng.normal(0.0, 0.06, (frames, 3))
    R = _looking_along(ahead)
    focal = 850.0
    x = np.einsum("nij,nmj->nmi", R, X[None] - centres[:, None])
    depth = np.where(x[..., 2] > 0.4, x[..., 2], np.inf)
    m = x[..., :2] / depth[..., None]
    xy = focal * m * (1.0 + k1 * np.sum(m**2, axis=2, keepdims=True)) + np.array(SIZE) / 2.0
    visible = (depth < 7.0) & ((xy > 0.0) & (xy < SIZE)).all(axis=2) & (rng.random(depth.shape) < 0.7)
    point, image = np.nonzero(visible.T)
    ends = (np.diff(point) > 0) | (np.diff(image) > 1) | (rng.random(len(image) - 1) < 1.0 / window)
    begins = np.concatenate([[True], ends])
    landmark = np.cumsum(begins) - 1
    found = xy[image, point] + rng.normal(0.0, noise, (len(image), 2))
    t = -np.einsum("nij,nj->ni", R, centres)
    names = tuple(f"{k:03d}.jpg" for k in range(frames))
    truth = Reconstruction.of_poses(names, R, t, np.arange(landmark[-1] + 1), X[point[begins]])
    return Video(image, landmark, found, focal, truth)


def _walls(a: Array, b: Array, rng: np.random.Generator) -> Array:
    """Points of the two walls, the floor and the ceiling of a corridor from a to b."""
    length = float(np.linalg.norm(b - a))
    along, n = (b - a) / length, int(40 * length)
    across = np.where(rng.random(n) < 0.25, rng.uniform(-_HALF, _HALF, n), rng.choice([-_HALF, _HALF], n))
    z = np.where(np.abs(across) < _HALF, rng.choice([0.0, 2.5], n), rng.uniform(0.0, 2.5, n))
    place = a + rng.uniform(-_HALF, length + _HALF, n)[:, None] * along + across[:, None] * [-along[1], along[0]]
    return np.column_stack([place, z])


def _looking_along(directions: Array) -> Array:
    """Rotations of cameras that look along directions, upright."""
    z = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=1)
