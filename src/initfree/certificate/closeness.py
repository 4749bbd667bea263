"""Closeness of two reconstructions of the same cameras by the paper's metrics, which are over pairs and thus free of the
gauge."""

import numpy as np

from initfree.data.tracks import Array, Index
from initfree.evaluation import auc, global_rotation, rotation_errors, translation_errors

COMPARED = 40
"""evenly spaced cameras whose pairs are compared"""
_APART = 0.05
"""of the median distance between two cameras: closer ones have no direction that could be compared"""


def compared(cameras: int) -> Index:
    """Indices of the compared cameras."""
    return np.unique(np.linspace(0, cameras - 1, COMPARED).astype(np.int64))


@np.errstate(over="ignore", invalid="ignore")  # a reconstruction that fell apart is close to nothing
def closeness(R: Array, centres: Array, other_R: Array, other_centres: Array, degrees: float) -> tuple[float, float]:
    """AUC, up to so many degrees, of relative rotations and of directions between centres."""
    some = compared(len(R))
    R, centres, other_R, other_centres = (values[some] for values in (R, centres, other_R, other_centres))
    i, j = np.triu_indices(len(some), 1)
    distance = np.linalg.norm(centres[i] - centres[j], axis=1)
    apart = distance > _APART * np.median(distance)
    directions = translation_errors(other_centres, centres, global_rotation(other_R, R))
    if not apart.any():
        return auc(rotation_errors(other_R, R), degrees), 0.0
    return auc(rotation_errors(other_R, R), degrees), auc(directions[apart], degrees)
