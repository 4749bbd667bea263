"""A picture of a model: its cameras as pyramids with their names, and its points."""

from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from initfree.io.camera_files import placed

_MOST_POINTS = 3000
"""drawn; of more, evenly spaced ones"""
_SIZE = 0.12
"""length of a pyramid against the extent of the cameras"""
_NAMED = 40
"""cameras up to which each has its name beside it"""


def write_picture(model: pycolmap.Reconstruction, path: Path) -> None:
    """Seen from above at an angle; vertical is the axis of the world, y or z, that most cameras hold upright."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cameras = placed(model)
    ids = sorted(model.points3D)
    xyz = np.array([model.points3D[k].xyz for k in ids[:: -(-len(ids) // _MOST_POINTS) or 1]]).reshape(-1, 3)
    R, t = np.array([one.R for one in cameras]), np.array([one.t for one in cameras])
    centres = -np.einsum("nji,nj->ni", R, t)
    # The images' own downward axes show which axis of the world is vertical.
    down = R[:, 1].sum(axis=0)
    turn = np.eye(3) if abs(down[2]) > abs(down[1]) else np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
    extent = max(float(np.linalg.norm(np.ptp(centres, axis=0))), 1e-9)
    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot(projection="3d")  # the stubs of matplotlib know flat axes only
    drawn = xyz @ turn.T
    axes.scatter(drawn[:, 0], drawn[:, 1], drawn[:, 2], s=2.0, c="#4477aa", alpha=0.4, linewidths=0.0)
    for one, centre in zip(cameras, centres, strict=True):
        half = np.array([one.width / one.K[0, 0], one.height / one.K[1, 1]]) / 2.0
        corners = np.array([[x * half[0], y * half[1], 1.0] for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        corners = (_SIZE * extent * corners @ one.R + centre) @ turn.T
        tip = turn @ centre
        lines = [corners[[0, 1, 2, 3, 0]], *(np.stack([tip, corner]) for corner in corners)]
        for line in lines:
            axes.plot(*line.T, color="#cc3311", linewidth=1.0)
        if len(cameras) <= _NAMED:
            axes.text(*tip, one.name, fontsize=8, parse_math=False)
    # What is far out (a point on a distant wall) must not make the array small.
    inside = np.vstack([centres @ turn.T, *([np.quantile(drawn, [0.02, 0.98], axis=0)] if len(drawn) else [])])
    low, high = inside.min(axis=0), inside.max(axis=0)
    middle, reach = (low + high) / 2.0, max(float((high - low).max()) / 2.0, 1e-9) * 1.1
    axes.set(
        xlim=(middle[0] - reach, middle[0] + reach),
        ylim=(middle[1] - reach, middle[1] + reach),
        zlim=(middle[2] - reach, middle[2] + reach),
        box_aspect=(1.0, 1.0, 1.0),
    )
    axes.view_init(elev=30.0, azim=-60.0)
    figure.savefig(path, dpi=120, format="png")
