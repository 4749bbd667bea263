"""The sets of a sweep at a glance: cameras and landmarks from above, and which cameras share landmarks."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy.sparse import csr_array

from initfree.benchmark.report.figures import NEUTRAL
from initfree.data.camera_graph import seriated
from initfree.data.tracks import Array

GREY = "#9aa4b2"
_WIDE = 4
_HEIGHT = 500


@dataclass(frozen=True)
class SetPicture:
    """What is drawn of one set; `directions` are the optical axes."""

    title: str
    centres: Array
    directions: Array
    xyz: Array
    covisibility: np.ndarray


def main_plane(centres: Array, directions: Array) -> Array:
    """The two axes of the plane in which cameras and their viewing directions spread most, (2, 3).

    The directions count as well: cameras on a line have no plane of their own.
    """
    spread = centres - centres.mean(axis=0)
    return np.linalg.svd(np.concatenate([spread, 0.5 * _extent(centres) * directions]), full_matrices=False)[2][:2]


def sets_figure(sets: list[SetPicture]) -> go.Figure | None:
    """Up to four sets side by side, each over its covisibility matrix; more in further bands."""
    if not sets:
        return None
    wide = min(_WIDE, len(sets))
    bands = math.ceil(len(sets) / wide)
    titles: list[str] = []
    for band in range(bands):
        part = sets[band * wide : (band + 1) * wide]
        titles += [one.title for one in part] + [""] * (2 * wide - len(part))
    gap = 0.07 if bands > 1 else 0.04
    figure = make_subplots(2 * bands, wide, subplot_titles=titles, horizontal_spacing=0.03, vertical_spacing=gap)
    for k, one in enumerate(sets):
        row, col = 2 * (k // wide) + 1, k % wide + 1
        for trace in _scene(one):
            figure.add_trace(trace, row=row, col=col)
        figure.add_trace(_matrix(one), row=row + 1, col=col)
        for place in (row, row + 1):
            index = (place - 1) * wide + col
            figure.update_yaxes(scaleanchor="x" if index == 1 else f"x{index}", row=place, col=col)
        figure.update_yaxes(autorange="reversed", row=row + 1, col=col)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.update_layout(height=_HEIGHT * bands, showlegend=False, margin={"l": 10, "r": 10, "t": 40, "b": 10})
    return figure


def _scene(one: SetPicture) -> list[go.Scatter]:
    axes = main_plane(one.centres, one.directions)
    cameras, points = one.centres @ axes.T, one.xyz @ axes.T
    tips = cameras + 0.12 * _extent(one.centres) * one.directions @ axes.T
    # A gap after every pair of points, so that one trace holds all rays.
    rays = np.stack([cameras, tips, np.full_like(tips, np.nan)], axis=1).reshape(-1, 2)
    return [
        scatter(points, mode="markers", marker={"size": 2.5, "color": GREY}),
        scatter(rays, mode="lines", line={"color": NEUTRAL, "width": 1.2}),
        scatter(cameras, mode="markers", marker={"size": 4, "color": NEUTRAL}),
    ]


def scatter(points: Array, **style: Any) -> go.Scatter:
    """Points of a plane; NaN breaks a line."""
    x, y = ([None if np.isnan(v) else round(float(v), 3) for v in column] for column in points.T)
    return go.Scatter(x=x, y=y, hoverinfo="skip", **style)


def _matrix(one: SetPicture) -> go.Heatmap:
    """Landmarks shared by each pair, those next to each other that share most; a camera with itself is left out."""
    order = seriated(csr_array(one.covisibility)).tolist()
    cells = [[None if k == l else int(one.covisibility[k, l]) for l in order] for k in order]
    hover = "%{z} landmarks<extra></extra>"
    return go.Heatmap(z=cells, colorscale="Viridis", showscale=False, hovertemplate=hover)


def _extent(centres: Array) -> float:
    return float(np.linalg.norm(np.ptp(centres, axis=0)))
