"""Residuals by camera, by size, and over the image."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.drawing.palette import coloured
from initfree.stages.euclidean.residuals import INLIER_PIXELS, residuals

COLUMNS = 12
_LEAST = 20
"""observations of a cell that are worth a colour"""
_BINS = 24
_NEARLY_ALL = 0.99


@dataclass(frozen=True)
class ResidualFigures:
    """Of the observations that fit, in front of their camera and within 4 px."""

    names: tuple[str, ...]
    median: Array
    """(cameras,) pixels"""
    count: Array
    """(bins,) observations by error, up to a round number that nearly all are below"""
    edges: Array
    """(bins + 1,) pixels"""
    beyond: int
    """observations whose error is larger"""
    cells: list[list[dict[str, Any] | None]]
    """rows and columns of the image plane, all images on top of each other"""
    aspect: float
    """height over width"""
    longest: float
    """pixels: length of the longest arrow"""
    high: float
    """pixels: mean error of the cell with the last colour of the scale; the first is 0"""


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
    cells, longest, high = _cells(place[fits], r.vectors[fits], r.error[fits], max(3, round(COLUMNS * aspect)))
    front = r.error[r.depth > 0.0]
    count, edges = np.histogram(front, bins=np.linspace(0.0, _round_up(front), _BINS + 1))
    beyond = int((front > edges[-1]).sum())
    return ResidualFigures(problem.names, median, count.astype(np.float64), edges, beyond, cells, aspect, longest, high)


def _round_up(error: Array) -> float:
    """1, 2 or 4 times a power of ten pixels, which nearly all errors are below; at most what is judged to fit."""
    nearly_all = float(np.quantile(error, _NEARLY_ALL)) if len(error) else 0.0
    if not 0.0 < nearly_all < INLIER_PIXELS:
        return INLIER_PIXELS
    unit = 10.0 ** np.floor(np.log10(nearly_all))
    return min(next(unit * k for k in (1, 2, 4, 10) if unit * k >= nearly_all), INLIER_PIXELS)


def _cells(place: Array, vector: Array, error: Array, rows: int) -> tuple[list[list[dict[str, Any] | None]], float, float]:
    column = np.clip((place[:, 0] * COLUMNS).astype(int), 0, COLUMNS - 1)
    row = np.clip((place[:, 1] * rows).astype(int), 0, rows - 1)
    cell = row * COLUMNS + column
    count = np.bincount(cell, minlength=rows * COLUMNS)
    safe = np.maximum(count, 1)
    dx, dy, size = (
        np.bincount(cell, weights=w, minlength=rows * COLUMNS) / safe for w in (vector[:, 0], vector[:, 1], error)
    )
    known = count >= _LEAST
    high = float(size[known].max()) if known.any() else 1.0
    colours = coloured(np.where(known, size, np.nan), 0.0, high)
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
    return [found[k * COLUMNS : (k + 1) * COLUMNS] for k in range(rows)], max(longest, 1e-9), high
