"""Landmarks with a certain depth. A landmark that only cameras at one place see may lie anywhere along its ray.

An observation from the distance ρ with a focal length of f pixels determines a landmark across its ray to ρ/f times the
noise, and not along it. With unit rays d_i, over the observations that agree,

    V = Σ_i (f_i / ρ_i)² (I - d_i d_i'),      variance of its place = noise² trace V^-1

for given cameras. A depth that depends on a single observation has no redundancy (Baarda 1968): if the others see no
parallax, a wrong match anywhere along their ray fits as well as a right one. So the test is repeated without each of the
observations.
"""

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.thresholds import LEAST_NOISE, MAX_DEPTH_DEVIATION
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.stages.euclidean.residuals import residuals

_UPPER = np.triu_indices(3)


def with_depth(problem: Problem, reconstruction: Reconstruction, agreeing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(landmarks,): whether the deviation of the position is below a quarter of the distance to the nearest camera.

    With the observations `agreeing`, and also without any single one of them if there are three or more."""
    tracks, result = problem.tracks, np.zeros(problem.tracks.landmarks, dtype=bool)
    rows = np.flatnonzero(agreeing & np.isfinite(reconstruction.xyz).all(axis=1)[tracks.landmark])
    if not len(rows):
        return result
    landmark, cam = tracks.landmark[rows], tracks.cam[rows]
    begin = np.flatnonzero(np.diff(landmark, prepend=-1))
    seen = np.diff(np.append(begin, len(rows)))
    ray = reconstruction.xyz[landmark] - reconstruction.centres[cam]
    distance = np.maximum(np.linalg.norm(ray, axis=1), 1e-300)
    nearest = np.minimum.reduceat(distance, begin)
    ray /= distance[:, None]
    # In units of the nearest distance: numbers of all scenes have one size.
    pixels = reconstruction.focal[cam] * problem.unit[rows].mean(axis=1)
    weight = (pixels * np.repeat(nearest, seen) / distance) ** 2
    row, column = _UPPER
    information = weight[:, None] * ((row == column) - ray[:, row] * ray[:, column])
    whole = np.add.reduceat(information, begin, axis=0)
    without_one = np.maximum.reduceat(_trace_of_inverse(np.repeat(whole, seen, axis=0) - information), begin)
    variance = np.where(seen >= 3, without_one, _trace_of_inverse(whole))
    noise = max(_noise(problem, reconstruction, rows, len(begin)), LEAST_NOISE)
    result[landmark[begin]] = (seen >= 2) & (noise**2 * variance <= MAX_DEPTH_DEVIATION**2)
    return result


def _noise(problem: Problem, reconstruction: Reconstruction, rows: NDArray[np.int64], landmarks: int) -> float:
    """Pixels: standard deviation of a coordinate of an observation."""
    redundancy = 2 * len(rows) - 3 * landmarks - 6 * problem.tracks.cameras
    return float((residuals(problem, reconstruction).error[rows] ** 2).sum() / max(redundancy, 1)) ** 0.5


def _trace_of_inverse(upper: Array) -> Array:
    """Of symmetric matrices given by (00, 01, 02, 11, 12, 22); infinite where rounding leaves them singular."""
    a, b, c, d, e, f = upper.T
    minors = (d * f - e * e) + (a * f - c * c) + (a * d - b * b)
    determinant = a * (d * f - e * e) - b * (b * f - c * e) + c * (b * e - c * d)
    return np.divide(minors, determinant, out=np.full(len(upper), np.inf), where=determinant > 0.0)
