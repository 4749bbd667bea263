"""Which candidates can be in an image at all: one pass over contiguous arrays, before any ray is cast."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def in_view(
    positions: NDArray[np.float64],
    normals: NDArray[np.float64],
    rotation: NDArray[np.float64],
    centre: NDArray[np.float64],
    near: float,
    far: float,
    radius: float,
    steepest: float,
    two_sided: bool,
) -> NDArray[np.int64]:
    """Rows within depth limits, inside the cone of `radius` around the axis, and turned to the camera.

    `steepest` is the cosine of the largest angle allowed between the ray and the normal.
    """
    rows = np.empty(len(positions), np.int64)
    count = 0
    for k in range(len(positions)):
        x = positions[k, 0] - centre[0]
        y = positions[k, 1] - centre[1]
        z = positions[k, 2] - centre[2]
        depth = rotation[2, 0] * x + rotation[2, 1] * y + rotation[2, 2] * z
        if depth <= near or depth >= far:
            continue
        squared = x * x + y * y + z * z
        # |offset|^2 = depth^2 + sideways^2
        if squared - depth * depth > (radius * depth) ** 2:
            continue
        cosine = -(x * normals[k, 0] + y * normals[k, 1] + z * normals[k, 2]) / np.sqrt(squared)
        if two_sided:
            cosine = abs(cosine)
        if cosine > steepest:
            rows[count] = k
            count += 1
    return rows[:count].copy()
