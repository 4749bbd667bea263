"""Synthetic problems that the tests share: exact geometry, explicit seeds, no files."""

from dataclasses import dataclass, replace

import numpy as np

from initfree.data.tracks import Array, Index, Tracks


@dataclass(frozen=True)
class Scene:
    """Calibrated cameras, landmarks and what the cameras see of them."""

    tracks: Tracks
    m: Array
    """Calibrated observations, (observations, 2)"""
    R: Array
    """World to camera, (cameras, 3, 3)"""
    centres: Array
    """(cameras, 3)"""
    landmarks: Array
    """(landmarks, 3)"""
    focal: float
    """Pixels per calibrated unit"""

    @property
    def P(self) -> Array:
        """The true cameras [R | -R c], (cameras, 3, 4)."""
        return np.concatenate([self.R, -self.R @ self.centres[:, :, None]], axis=2)

    @property
    def X(self) -> Array:
        """The true landmarks, homogeneous, (landmarks, 4)."""
        return np.column_stack([self.landmarks, np.ones(len(self.landmarks))])

    @property
    def camera_ids(self) -> Index:
        """A camera of its own for every image."""
        return np.arange(len(self.R))

    @property
    def unit(self) -> Array:
        """Pixels per calibrated unit along both axes, for every observation, (observations, 2)."""
        return np.full((self.tracks.observations, 2), self.focal)


def ring(
    cameras: int = 20,
    landmarks: int = 300,
    *,
    radius: float = 3.0,
    height: float = 0.7,
    relief: float = 0.4,
    focal: float = 420.0,
    half_image: tuple[float, float] = (320.0, 240.0),
    noise: float = 0.0,
    keep: float = 1.0,
    min_observations: int = 6,
    occlusion: bool = True,
    shuffle: bool = True,
    seed: int = 0,
) -> Scene:
    """Cameras on a circle that look at the middle of a box whose faces carry the landmarks, up to `relief` deep.

    Without relief a camera in front of a face would see a plane alone, which leaves three of its twelve entries open.

    A landmark is seen where it falls into the image and, with `occlusion`, where its face of the box is turned to the
    camera. `keep` is the share of those observations that survives, `noise` their standard deviation in pixels.
    Landmarks with fewer than `min_observations` are dropped. `shuffle` hides the order of the cameras on the ring.
    """
    rng = np.random.default_rng(seed)
    X, normals = _box_surface(landmarks, relief, rng)
    angle = 2.0 * np.pi * np.arange(cameras) / cameras
    if shuffle:
        angle = rng.permutation(angle)
    centres = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.full(cameras, height)])
    R = _looking_at_origin(centres)

    towards = centres[None] - X[:, None]
    y = np.einsum("iab,jib->jia", R, -towards)
    projected = y[..., :2] / y[..., 2:]
    visible = (y[..., 2] > 0.0) & np.all(np.abs(focal * projected) < half_image, axis=2)
    if occlusion:
        visible &= np.einsum("ja,jia->ji", normals, towards) > 0.0
    visible &= rng.random(visible.shape) < keep
    kept = visible.sum(axis=1) >= min_observations
    m = projected[kept][visible[kept]]
    m = m + noise / focal * rng.normal(size=m.shape)
    return Scene(tracks_of(visible[kept]), m, R, centres, X[kept], focal)


def with_a_worse_image(scene: Scene, share: float) -> Scene:
    """The sixth image has a share of its observations off by 2.5 px, in each direction and in the mean."""
    rng = np.random.default_rng(0)
    seen = np.flatnonzero(scene.tracks.cam == 5)
    chosen = rng.permutation(seen)[: int(share * len(seen))]
    m = scene.m.copy()
    m[chosen] += rng.normal(size=(len(chosen), 2)) * 2.5 / scene.focal
    return replace(scene, m=m)


def tracks_of(visible: np.ndarray) -> Tracks:
    """Tracks of a visibility matrix (landmarks, cameras)."""
    landmark, camera = np.nonzero(visible)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(landmark, minlength=len(visible)))])
    return Tracks(camera.astype(np.int64), ptr.astype(np.int64), visible.shape[1])


def random_tracks(rng: np.random.Generator, cameras: int = 5, landmarks: int = 9, shortest: int = 2) -> Tracks:
    """Every landmark in a random set of at least `shortest` cameras: no geometry, for tests of algebra."""
    rank = np.argsort(np.argsort(rng.random((landmarks, cameras)), axis=1), axis=1)
    return tracks_of(rank < rng.integers(shortest, cameras + 1, size=(landmarks, 1)))


def reorder_cameras(tracks: Tracks, order: Index) -> tuple[Tracks, Index]:
    """The same tracks with camera k in place order[k], and the old observation of every new one."""
    landmark, camera = tracks.landmark, order[tracks.cam]
    source = np.lexsort((camera, landmark))
    return Tracks(camera[source], tracks.ptr, tracks.cameras), source


def reorder_landmarks(tracks: Tracks, order: Index) -> tuple[Tracks, Index]:
    """The same tracks with landmark j in place order[j], and the old observation of every new one."""
    landmark = order[tracks.landmark]
    source = np.lexsort((tracks.cam, landmark))
    ptr = np.concatenate([[0], np.cumsum(np.bincount(landmark, minlength=tracks.landmarks))])
    return Tracks(tracks.cam[source], ptr.astype(np.int64), tracks.cameras), source


def _box_surface(count: int, relief: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points on the faces of the box [-1, 1]³, up to `relief` below them, and the outward normals there."""
    axis = rng.integers(0, 3, size=count)
    side = rng.choice([-1.0, 1.0], size=count)
    X = rng.uniform(-1.0, 1.0, size=(count, 3))
    normals = np.zeros((count, 3))
    normals[np.arange(count), axis] = side
    X[np.arange(count), axis] = side * (1.0 - relief * rng.random(count))
    return X, normals


def _looking_at_origin(centres: Array) -> Array:
    """Rotations with rows right, down, forward; the world's z is up."""
    forward = -centres / np.linalg.norm(centres, axis=1, keepdims=True)
    right = np.cross([0.0, 0.0, -1.0], forward)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    return np.stack([right, np.cross(forward, right), forward], axis=1)
