"""Closed solids with outward faces: what the procedural scenes are put together from."""

import itertools

import numpy as np
from numpy.typing import NDArray

Solid = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Vertices (n, 3) and triangles (m, 3), counter-clockwise seen from outside."""


def box(low: tuple[float, float, float], high: tuple[float, float, float]) -> Solid:
    """An axis-aligned box between two corners."""
    base = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
    return extrude(base, low[2], high[2])


def cylinder(x: float, y: float, low: float, high: float, radius: float, top: float | None = None) -> Solid:
    """An upright column of 24 sides, tapering to radius `top`."""
    angles = np.arange(24) * (2 * np.pi / 24)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return loft(circle * radius + [x, y], low, circle * (radius if top is None else top) + [x, y], high)


def extrude(outline: NDArray[np.float64], low: float, high: float) -> Solid:
    """A convex outline (counter-clockwise from above) stretched between two heights."""
    return loft(outline, low, outline, high)


def loft(bottom: NDArray[np.float64], low: float, top: NDArray[np.float64], high: float) -> Solid:
    """The solid between two convex outlines of as many corners at two heights."""
    n = len(bottom)
    vertices = np.concatenate([np.column_stack([bottom, np.full(n, low)]), np.column_stack([top, np.full(n, high)])])
    here = np.arange(n)
    after = (here + 1) % n
    sides = np.concatenate([np.stack([here, after, after + n], 1), np.stack([here, after + n, here + n], 1)])
    fan = np.arange(1, n - 1)
    floor = np.stack([np.zeros_like(fan), fan + 1, fan], 1)
    ceiling = np.stack([np.zeros_like(fan), fan, fan + 1], 1) + n
    return vertices, np.concatenate([sides, floor, ceiling])


def gable(low: tuple[float, float], high: tuple[float, float], eaves: float, ridge: float, along: str) -> Solid:
    """A triangular prism on the rectangle low-high whose ridge runs along "x" or "y"."""
    (x0, y0), (x1, y1) = low, high
    base = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    if along == "x":
        middle = np.array([[x0, (y0 + y1) / 2], [x1, (y0 + y1) / 2]])
        faces = [[0, 1, 5], [0, 5, 4], [2, 3, 4], [2, 4, 5], [1, 2, 5], [3, 0, 4], [0, 2, 1], [0, 3, 2]]
    else:
        middle = np.array([[(x0 + x1) / 2, y0], [(x0 + x1) / 2, y1]])
        faces = [[1, 2, 5], [1, 5, 4], [3, 0, 4], [3, 4, 5], [0, 1, 4], [2, 3, 5], [0, 2, 1], [0, 3, 2]]
    vertices = np.concatenate([np.column_stack([base, np.full(4, eaves)]), np.column_stack([middle, np.full(2, ridge)])])
    return vertices, np.array(faces)


def wall(
    start: tuple[float, float],
    end: tuple[float, float],
    low: float,
    high: float,
    thickness: float,
    openings: list[tuple[float, float, float, float]],
) -> list[Solid]:
    """An axis-aligned wall from `start` to `end`, its body to the left, with rectangular openings.

    An opening is (from, to) along the wall and (from, to) in height. The wall is cut into columns at the
    openings' sides and each column into the boxes between its openings.
    """
    origin, target = np.array(start), np.array(end)
    length = float(np.linalg.norm(target - origin))
    along = (target - origin) / length
    inward = np.array([-along[1], along[0]]) * thickness
    cuts = sorted({0.0, length, *(side for opening in openings for side in opening[:2])})
    solids = []
    for left, right in itertools.pairwise(cuts):
        holes = sorted((o[2], o[3]) for o in openings if o[0] <= left and right <= o[1])
        edges = [low, *(edge for hole in holes for edge in hole), high]
        a, b = origin + along * left, origin + along * right
        outline = np.array([a, b, b + inward, a + inward])
        for bottom, top in zip(edges[::2], edges[1::2], strict=True):
            if top > bottom:
                solids.append(extrude(outline, bottom, top))
    return solids
