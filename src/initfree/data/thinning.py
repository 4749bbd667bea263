"""Enough landmarks to place the cameras: a start needs no more, and its last adjustment sees all of them.

A landmark is kept by chance, the more likely the fewer others hold its cameras and join them: what a camera shares with
others, and whatever joins two parts of a scene, stays.
"""

import numpy as np
from numpy.typing import NDArray

from initfree.data.problem import Problem, restricted
from initfree.data.tracks import Array, Tracks

OF_CAMERA, OF_PAIR = 150.0, 20.0
"""observations of a camera and matches of two cameras that are kept, in the mean, where there are more"""
LEAST = 6000.0
"""observations kept of a whole problem, where a caller does not need more"""
WORTHWHILE = 0.4
"""share of the observations up to which the rest is left out"""


def thinned(problem: Problem, seed: int, least: float = LEAST, worthwhile: float = WORTHWHILE) -> NDArray[np.bool_] | None:
    """Observations (observations,) of enough landmarks; None where nearly all are needed, or too few would be left."""
    chance = _chances(problem.tracks, least)
    kept = np.random.default_rng(seed).random(problem.tracks.landmarks) < chance
    keep = kept[problem.tracks.landmark]
    if keep.mean() > worthwhile or restricted(problem, keep) is None:
        return None
    return keep


def _chances(tracks: Tracks, least: float) -> Array:
    """(landmarks,): how likely each is kept."""
    seen = np.bincount(tracks.cam, minlength=tracks.cameras)
    enough = max(OF_CAMERA, least / tracks.cameras)
    by_camera = np.minimum.reduceat(seen[tracks.cam], tracks.ptr[:-1])
    # Of neighbours in a track: one that joins two parts has such a pair across.
    first = np.flatnonzero(np.diff(tracks.landmark) == 0)
    shared = np.asarray(tracks.covisible[tracks.cam[first], tracks.cam[first + 1]]).reshape(-1)
    by_pair = np.full(tracks.landmarks, np.inf)
    np.minimum.at(by_pair, tracks.landmark[first], shared)
    return np.maximum(enough / by_camera, OF_PAIR / by_pair)
