"""A procedural stone pattern: brightness as a function of position alone, so every view agrees on it."""

import numpy as np
from numpy.typing import NDArray


def stone(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Brightness around 1: courses of blocks with a tone each, and grain at three scales."""
    x, y, z = positions.T
    course = np.floor(z / 0.8)
    block = np.floor((x + y) / 1.6 + 0.5 * (course % 2))
    tone = _hash(block, course, np.zeros_like(block)) - 0.5
    grain = sum(
        amplitude * (_value_noise(positions / size) - 0.5) for amplitude, size in ((0.2, 2.5), (0.2, 0.7), (0.15, 0.2))
    )
    return np.clip(1.0 + 0.25 * tone + grain, 0.3, 1.4)


def _value_noise(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Trilinear interpolation of a random value on every integer lattice point, in [0, 1]."""
    cell = np.floor(points)
    fraction = points - cell
    fraction = fraction * fraction * (3 - 2 * fraction)
    total = np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        offset = np.array(corner)
        weight = np.prod(np.where(offset == 1, fraction, 1 - fraction), axis=1)
        total += weight * _hash(*(cell + offset).T)
    return total


def _hash(x: NDArray[np.float64], y: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """A repeatable value in [0, 1) for every integer triple."""
    with np.errstate(over="ignore"):
        key = (
            x.astype(np.int64) * np.int64(73856093)
            ^ y.astype(np.int64) * np.int64(19349663)
            ^ z.astype(np.int64) * np.int64(83492791)
        ).astype(np.uint64)
        key = (key ^ (key >> np.uint64(15))) * np.uint64(0x2C1B3C6D297A2D39)
        key ^= key >> np.uint64(32)
    return (key & np.uint64(0xFFFFFF)).astype(float) / float(0x1000000)
