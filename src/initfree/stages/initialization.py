"""Where the cameras start, with nothing known: random, on a circle, or from the covisibility graph."""

from collections.abc import Callable

import numpy as np

from initfree.data.camera_graph import smoothest, without_diagonal
from initfree.data.tracks import Array, Tracks
from initfree.errors import InputError


def normal(tracks: Tracks, rng: np.random.Generator) -> Array:
    """All 12 entries of every camera from N(0, 1)."""
    return rng.normal(size=(tracks.cameras, 3, 4))


def uniform(tracks: Tracks, rng: np.random.Generator) -> Array:
    """All 12 entries of every camera from U(-1, 1)."""
    return rng.uniform(-1.0, 1.0, size=(tracks.cameras, 3, 4))


def normal_affine(tracks: Tracks, rng: np.random.Generator) -> Array:
    """Rows 1 and 2 from N(0, 1), row 3 = (0, 0, 0, 1): random affine cameras, as public code starts."""
    P = normal(tracks, rng)
    P[:, 2] = (0.0, 0.0, 0.0, 1.0)
    return P


def unit_circle(tracks: Tracks, rng: np.random.Generator) -> Array:
    """Camera k at angle 2πk/n on the unit circle, looking at its centre; reads the order of the cameras."""
    angle = 2.0 * np.pi * np.arange(tracks.cameras) / tracks.cameras
    return facing(np.column_stack([np.cos(angle), np.sin(angle)]))


def unit_circle_shuffled(tracks: Tracks, rng: np.random.Generator) -> Array:
    """The unit circle with cameras in random order, so that the file's order has no influence."""
    return unit_circle(tracks, rng)[rng.permutation(tracks.cameras)]


def unit_circle_spectral(tracks: Tracks, rng: np.random.Generator) -> Array:
    """The unit circle with cameras in the order of their angle in the covisibility graph, whatever the file's order."""
    x, y = spectral_positions(tracks).T
    rank = np.argsort(np.argsort(np.arctan2(y, x), kind="stable"))
    return unit_circle(tracks, rng)[rank]


def spectral(tracks: Tracks, rng: np.random.Generator) -> Array:
    """Cameras placed by the covisibility graph, looking at the middle."""
    return facing(spectral_positions(tracks))


def spectral_outward(tracks: Tracks, rng: np.random.Generator) -> Array:
    """Cameras placed by the covisibility graph, looking away from the middle."""
    return facing(spectral_positions(tracks), outward=True)


INITIALIZATIONS: dict[str, Callable[[Tracks, np.random.Generator], Array]] = {
    "normal": normal,
    "normal-affine": normal_affine,
    "uniform": uniform,
    "unit-circle": unit_circle,
    "unit-circle-shuffled": unit_circle_shuffled,
    "unit-circle-spectral": unit_circle_spectral,
    "spectral": spectral,
    "spectral-outward": spectral_outward,
}

SEEDLESS = ("unit-circle", "unit-circle-spectral", "spectral", "spectral-outward")
"""those without random numbers"""


def initialize(name: str, tracks: Tracks, seed: int) -> Array:
    """Cameras (n, 3, 4) of the initialisation `name`."""
    if name not in INITIALIZATIONS:
        raise InputError(f"unknown initialisation {name!r}; expected one of {', '.join(INITIALIZATIONS)}")
    return INITIALIZATIONS[name](tracks, np.random.default_rng(seed))


def spectral_positions(tracks: Tracks) -> Array:
    """Eigenvectors 2 and 3 of the normalised Laplacian I - D^-1/2 C D^-1/2, divided by sqrt(D), at unit rms radius.

    C_kl counts the landmarks that cameras k and l share, D its row sums. Cameras that see the same come close together,
    which on any closed trajectory gives its cyclic order, whatever the order in the file.
    """
    position = np.zeros((tracks.cameras, 2))
    found = smoothest(without_diagonal(tracks.covisible), 2)
    position[:, : found.shape[1]] = found
    # An eigenvector's sign is arbitrary; the largest entry made positive fixes it for every order of the cameras.
    largest = np.argmax(np.abs(position), axis=0)
    position *= np.where(position[largest, [0, 1]] < 0.0, -1.0, 1.0)
    return position / np.sqrt(np.mean(np.sum(position**2, axis=1)))


def facing(position: Array, outward: bool = False) -> Array:
    """Calibrated cameras [R | -R c] at points c of the horizontal plane that look at the origin, or away from it."""
    c = np.zeros((len(position), 3))
    c[:, :2] = position
    distance = np.linalg.norm(c, axis=1, keepdims=True)
    forward = np.where(distance > 1e-9, -c / np.maximum(distance, 1e-9), [1.0, 0.0, 0.0])
    if outward:
        forward = -forward
    down = np.broadcast_to([0.0, 0.0, -1.0], forward.shape)
    right = np.cross(down, forward)
    R = np.stack([right, down, forward], axis=1)
    return np.concatenate([R, -np.einsum("nij,nj->ni", R, c)[:, :, None]], axis=2)
