"""Do the cameras move, or do they only turn? Asked of the observations, not of the reconstruction.

A reconstruction of cameras that only turn fits its observations and invents a baseline out of their noise. Whether two
images need one is seen without it: by the best rotation from the rays of one to those of the other.
"""

import numpy as np

from initfree.arrays import Array, Tracks
from initfree.metrics import nearest_rotation

NEIGHBOURS = 6
_LEAST_SHARED = 5
_ROUNDS = 6


def turning_residual(tracks: Tracks, rays: Array, pixels: Array) -> float:
    """Pixels by which rotations alone miss: median over cameras of the largest median residual with a neighbour.

    `rays` are calibrated (observations, 3), `pixels` (observations,) per calibrated unit. A neighbour is one of the cameras
    that share most landmarks; the largest residual counts, because a camera needs a baseline to one of them only.
    """
    shared = tracks.covisibility.copy()
    np.fill_diagonal(shared, 0)
    rays = rays / np.linalg.norm(rays, axis=1, keepdims=True)
    of_camera = [np.flatnonzero(tracks.cam == k) for k in range(tracks.cameras)]
    largest = np.zeros(tracks.cameras)
    for k in range(tracks.cameras):
        for l in np.argsort(-shared[k], kind="stable")[:NEIGHBOURS]:
            if shared[k, l] >= _LEAST_SHARED:
                a, b = of_camera[k], of_camera[int(l)]
                _, i, j = np.intersect1d(tracks.landmark[a], tracks.landmark[b], assume_unique=True, return_indices=True)
                a, b = a[i], b[j]
                largest[k] = max(largest[k], float(np.median(pixels[a] * _angles(rays[a], rays[b]))))
    return float(np.median(largest))


def _angles(a: Array, b: Array) -> Array:
    """Angles between a and R b for the R that makes most of them small (Kabsch, reweighted towards the median)."""
    weight = np.ones(len(a))
    angles = weight
    for _ in range(_ROUNDS):
        R = nearest_rotation((a * weight[:, None]).T @ b)
        angles = np.linalg.norm(a - b @ R.T, axis=1)
        weight = 1.0 / np.maximum(angles, 0.1 * float(np.median(angles)) + 1e-12)
    return angles
