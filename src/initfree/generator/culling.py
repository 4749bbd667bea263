"""Which candidates can be in an image at all: one pass over contiguous arrays, before any ray is cast."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

CELL = 500
"""Candidates in a cell, about."""


@dataclass(frozen=True)
class Cells:
    """Candidates in cubes of space, each in a sphere: a camera of a large survey looks into those that its cone meets."""

    rows: NDArray[np.int64]
    """Candidates, cell by cell."""
    positions: NDArray[np.float64]
    normals: NDArray[np.float64]
    """Of the candidates, cell by cell: those of a cell lie side by side in memory."""
    ptr: NDArray[np.int64]
    centres: NDArray[np.float64]
    radii: NDArray[np.float64]

    @classmethod
    def of(cls, positions: NDArray[np.float64], normals: NDArray[np.float64]) -> "Cells":
        low = positions.min(axis=0)
        extent = positions.max(axis=0) - low
        # Landmarks lie on surfaces: as many cells as there would be if they filled the two widest directions.
        side = max(float(np.sqrt(np.prod(np.sort(extent)[1:]) * CELL / len(positions))), 1e-9 * float(extent.max()), 1e-300)
        place = ((positions - low) / side).astype(np.int64)
        span = place.max(axis=0) + 1
        key = (place[:, 0] * span[1] + place[:, 1]) * span[2] + place[:, 2]
        rows = np.argsort(key, kind="stable")
        ptr = np.concatenate([np.flatnonzero(np.diff(key[rows], prepend=-1)), [len(rows)]])
        positions, normals = positions[rows], normals[rows]
        centres = np.add.reduceat(positions, ptr[:-1], axis=0) / np.diff(ptr)[:, None]
        away = np.linalg.norm(positions - np.repeat(centres, np.diff(ptr), axis=0), axis=1)
        return cls(rows, positions, normals, ptr, centres, np.maximum.reduceat(away, ptr[:-1]))

    def near_cone(
        self, rotation: NDArray[np.float64], centre: NDArray[np.float64], near: float, far: float, radius: float
    ) -> NDArray[np.int64]:
        """Cells that may have candidates within the depth limits and the cone around the axis."""
        local = (self.centres - centre) @ rotation.T
        depth, sideways = local[:, 2], np.hypot(local[:, 0], local[:, 1])
        half_angle = np.arctan(radius)
        outside = sideways * np.cos(half_angle) - depth * np.sin(half_angle)
        met = (depth + self.radii > near) & (depth - self.radii < far) & (outside <= self.radii * (1.0 + 1e-9))
        return np.flatnonzero(met)


@njit(cache=True, nogil=True)
def in_view(
    cells: NDArray[np.int64],
    ptr: NDArray[np.int64],
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
    """Candidates of these cells, by their place in `positions`, that are within depth limits, inside the cone of `radius`
    around the axis, and turned to the camera.

    `steepest` is the cosine of the largest angle allowed between the ray and the normal.
    """
    most = 0
    for cell in cells:
        most += ptr[cell + 1] - ptr[cell]
    rows = np.empty(most, np.int64)
    count = 0
    for cell in cells:
        for k in range(ptr[cell], ptr[cell + 1]):
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
