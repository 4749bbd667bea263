"""The paper's figure "Failure and recovery modes on BAL": pairs of runs that differ in one factor, one a row."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from initfree.benchmark.report.figures import FAILED, GOOD
from initfree.benchmark.report.scenes import curve
from initfree.benchmark.report.set_figure import GREY, scatter
from initfree.benchmark.report.sweep import Sweep
from initfree.benchmark.report.tables.bal_pairs import Pair
from initfree.data.tracks import Array

_LANDMARKS = 500
_ROW = 330
"""pixels: the row's title, the titles of its parts, the parts"""
_STAGES = {"ose": "OSE cost / observation", "refinement": "refinement cost / observation"}


@dataclass(frozen=True)
class Picture:
    """Centres and landmarks of the truth, and of the estimate over it."""

    truth: tuple[Array, Array]
    estimate: tuple[Array, Array]


def bal_figure(pairs: list[Pair], sweep: Sweep) -> go.Figure | None:
    """A row a pair whose reconstructions were kept: cost of both stages, the failed reconstruction, the recovered one."""
    read = [(pair, shown) for pair in pairs if len(shown := _read_both(sweep, pair)) == 2]
    pairs = [pair for pair, _ in read]
    if not read:
        return None
    titles = [title for pair in pairs for title in (*_STAGES.values(), *_outcomes(pair))]
    gap = 0.42 / len(pairs) if len(pairs) > 1 else 0.0
    figure = make_subplots(len(pairs), 4, subplot_titles=titles, horizontal_spacing=0.045, vertical_spacing=gap)
    for row, (pair, shown) in enumerate(read, start=1):
        _costs(figure, row, pair, sweep)
        _pictures(figure, row, shown)
        top = next(iter(figure.select_yaxes(row=row, col=1))).domain[1]
        place = {"xref": "paper", "yref": "paper", "x": 0.0, "y": top, "xanchor": "left", "yanchor": "bottom", "yshift": 46}
        figure.add_annotation(text=f"<b>{pair.title}</b>", showarrow=False, **place)
    figure.update_layout(height=_ROW * len(pairs), showlegend=False, margin={"l": 45, "r": 10, "t": 75, "b": 45})
    return figure


def _outcomes(pair: Pair) -> list[str]:
    found: list[str] = []
    for word, colour, row, value in zip(
        ("failed", "recovered"), (FAILED, GOOD), (pair.failed, pair.recovered), pair.values, strict=True
    ):
        scores = f"rot. {row['rotation_auc20']:.0f}, trans. {row['translation_auc20']:.0f}, RMSE {row['landmark_rmse']:.1f}"
        found.append(f'<span style="color:{colour}"><b>{word}</b>: {value}</span><br>{scores}')
    return found


def _costs(figure: go.Figure, row: int, pair: Pair, sweep: Sweep) -> None:
    """Costs over the number of observations, in which runs of different density differ."""
    shown: dict[int, list[float]] = {1: [], 2: []}
    for run, value, colour in zip((pair.failed, pair.recovered), pair.values, (FAILED, GOOD), strict=True):
        history = sweep.history(str(run["job"]))
        for col, stage in enumerate(_STAGES, start=1):
            points = np.array(curve(history.get(stage, []))).reshape(-1, 2)
            costs = [float(f"{cost:.4g}") for cost in points[:, 1] / float(run["observations"])]
            line = {"color": colour, "width": 2}
            hover = f"{value}, iteration %{{x}}: %{{y:.2e}}<extra></extra>"
            trace = go.Scatter(x=points[:, 0].astype(int).tolist(), y=costs, mode="lines", line=line, hovertemplate=hover)
            figure.add_trace(trace, row=row, col=col)
            shown[col] += [cost for cost in costs if cost > 0.0]
    for col, costs in shown.items():
        decades = np.log10(max(costs) / min(costs)) if costs else 1.0
        ticks = "D2" if decades < 1.0 else int(np.ceil(decades / 4.0))
        figure.update_xaxes(title_text="iteration", title_standoff=4, row=row, col=col)
        figure.update_yaxes(type="log", tickformat=".0e", dtick=ticks, row=row, col=col)


def _pictures(figure: go.Figure, row: int, shown: list[Picture]) -> None:
    """Both from the same side; each in a window around its truth, so that wild landmarks do not shrink it."""
    axes = spread_plane(np.concatenate(shown[0].truth))
    for col, picture, colour in zip((3, 4), shown, (FAILED, GOOD), strict=True):
        window = window_around(*(part @ axes.T for part in picture.truth))
        for (centres, xyz), shade, size in ((picture.truth, GREY, 4), (picture.estimate, colour, 5)):
            points = within(xyz @ axes.T, window)
            figure.add_trace(scatter(points, mode="markers", marker={"size": 2.5, "color": shade}), row=row, col=col)
            style = {"size": size, "color": shade, "symbol": "square"}
            cameras = within(centres @ axes.T, window)
            figure.add_trace(scatter(cameras, mode="markers", marker=style), row=row, col=col)
        index = 4 * (row - 1) + col
        (left, low), (right, high) = window.tolist()
        figure.update_xaxes(visible=False, range=[left, right], row=row, col=col)
        figure.update_yaxes(visible=False, range=[low, high], scaleanchor=f"x{index}", row=row, col=col)


def _read_both(sweep: Sweep, pair: Pair) -> list[Picture]:
    """The failed and the recovered reconstruction, as far as they were kept."""
    found = [_read(sweep, str(run["job"]), str(run["upgrade"])) for run in (pair.failed, pair.recovered)]
    return [picture for picture in found if picture is not None]


def _read(sweep: Sweep, job: str, upgrade: str) -> Picture | None:
    path = sweep.reconstruction(job)
    if path is None:
        return None
    with np.load(path, allow_pickle=False) as file:
        step = max(1, -(-len(file["truth_xyz"]) // _LANDMARKS))
        if f"{upgrade}_xyz" not in file.files:
            return None
        truth, estimate = (
            (file[f"{name}_centres"].astype(float), file[f"{name}_xyz"][::step].astype(float)) for name in ("truth", upgrade)
        )
    return Picture(truth, estimate)


def spread_plane(points: Array) -> Array:
    """The two axes, (2, 3), along which points spread most; the farthest tenth does not count."""
    centred = points - np.median(points, axis=0)
    distance = np.linalg.norm(centred, axis=1)
    near = centred[distance <= np.quantile(distance, 0.9)]
    return np.linalg.svd(near - near.mean(axis=0), full_matrices=False)[2][:2]


def window_around(cameras: Array, landmarks: Array) -> Array:
    """Lower and upper corner, (2, 2), around all cameras and the middle nine tenths of the landmarks of a plane."""
    low, high = np.quantile(landmarks, (0.05, 0.95), axis=0)
    low, high = np.minimum(low, cameras.min(axis=0)), np.maximum(high, cameras.max(axis=0))
    margin = 0.1 * (high - low)
    return np.stack([low - margin, high + margin])


def within(points: Array, window: Array) -> Array:
    """Points in the window or near it; the picture's frame, wider than the window where its shape is, cuts the rest."""
    side = window[1] - window[0]
    return points[((points >= window[0] - side) & (points <= window[1] + side)).all(axis=1)]
