"""Where a reconstruction misses its observations: by camera, by size, and over the image."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from initfree.drawing.palette import coloured
from initfree.euclidean.residuals import INLIER_PIXELS, residuals
from initfree.problem import Problem
from initfree.reconstruction import Reconstruction
from initfree.tracks import Array

COLUMNS = 12
_LEAST = 20
"""observations of a cell that are worth a colour"""
_BINS = 24


@dataclass(frozen=True)
class ResidualFigures:
    """Of the observations that fit, in front of their camera and within 4 px."""

    names: tuple[str, ...]
    median: Array
    """(cameras,) pixels"""
    count: Array
    """(bins,) observations by error"""
    edges: Array
    """(bins + 1,) pixels"""
    cells: list[list[dict[str, Any] | None]]
    """rows and columns of the image plane, all images on top of each other"""
    aspect: float
    """height over width"""
    longest: float
    """pixels: length of the longest arrow"""


def residual_figures(problem: Problem, reconstruction: Reconstruction) -> ResidualFigures:
    """Of the final reconstruction."""
    r, t, o = residuals(problem, reconstruction), problem.tracks, problem.observations
    fits = r.within(INLIER_PIXELS)
    order = np.lexsort((r.error, t.cam))
    order = order[fits[order]]
    cam, error = t.cam[order], r.error[order]
    starts = np.searchsorted(cam, np.arange(t.cameras + 1))
    middle = (starts[:-1] + starts[1:]) // 2
    some = starts[1:] > starts[:-1]
    median = np.full(t.cameras, np.nan)
    median[some] = error[middle[some]]
    place = np.full((t.observations, 2), np.nan)
    aspects = []
    for k, image in enumerate(problem.images):
        seen = t.seen_by(k)
        found = o.images[image]
        camera = o.cameras[found.camera_id]
        size = np.array([max(camera.width, 1), max(camera.height, 1)], dtype=np.float64)
        place[seen] = found.keypoints[problem.keypoint[seen]] / size
        aspects.append(size[1] / size[0])
    aspect = float(np.median(aspects))
    cells, longest = _cells(place[fits], r.vectors[fits], r.error[fits], max(3, round(COLUMNS * aspect)))
    count, edges = np.histogram(r.error[r.depth > 0.0], bins=np.linspace(0.0, INLIER_PIXELS, _BINS + 1))
    return ResidualFigures(problem.names, median, count.astype(np.float64), edges, cells, aspect, longest)


def _cells(place: Array, vector: Array, error: Array, rows: int) -> tuple[list[list[dict[str, Any] | None]], float]:
    column = np.clip((place[:, 0] * COLUMNS).astype(int), 0, COLUMNS - 1)
    row = np.clip((place[:, 1] * rows).astype(int), 0, rows - 1)
    cell = row * COLUMNS + column
    count = np.bincount(cell, minlength=rows * COLUMNS)
    safe = np.maximum(count, 1)
    dx, dy, size = (
        np.bincount(cell, weights=w, minlength=rows * COLUMNS) / safe for w in (vector[:, 0], vector[:, 1], error)
    )
    known = count >= _LEAST
    colours = coloured(np.where(known, size, np.nan), 0.0, float(size[known].max()) if known.any() else 1.0)
    found = [
        None
        if not known[k]
        else {
            "count": int(count[k]),
            "dx": round(float(dx[k]), 4),
            "dy": round(float(dy[k]), 4),
            "size": round(float(size[k]), 4),
            "colour": "#{:02x}{:02x}{:02x}".format(*colours[k]),
        }
        for k in range(rows * COLUMNS)
    ]
    longest = float(np.hypot(dx[known], dy[known]).max()) if known.any() else 1.0
    return [found[k * COLUMNS : (k + 1) * COLUMNS] for k in range(rows)], max(longest, 1e-9)
