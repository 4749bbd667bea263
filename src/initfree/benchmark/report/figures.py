"""The figures of the report, as Plotly figures without colours of their own: the page gives them its theme."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from initfree.benchmark.report.failure import Bin, failure_bins, roc_auc, roc_curve
from initfree.benchmark.report.names import PAPER_UPGRADE
from initfree.benchmark.report.selection import paper_grid

FAILED, GOOD, NEUTRAL = "#d1495b", "#1a9e8f", "#5b7fb9"
_RESIDUALS = {
    "ose_residual": ("final OSE residual (mean, normalised)", FAILED),
    "refine_residual": ("final refinement residual (mean, px)", GOOD),
}


def failure_figure(rows: pd.DataFrame, upgrade: str = PAPER_UPGRADE) -> go.Figure | None:
    """Failure rate against the OSE residual and against the refinement residual, and the ROC curves of both."""
    grid = paper_grid(rows, min_obs=None, upgrade=upgrade)
    bins = {residual: failure_bins(grid, residual) for residual in _RESIDUALS}
    if not all(bins.values()):
        return None
    areas = {residual: roc_auc(grid, residual) for residual in _RESIDUALS}
    titles = [f"failed, by {text.split(' (')[0]}" for text, _ in _RESIDUALS.values()]
    figure = make_subplots(
        1, 3, subplot_titles=[*titles, "as predictors of failure (ROC)"], column_widths=[0.37, 0.37, 0.26]
    )
    for k, (residual, (text, colour)) in enumerate(_RESIDUALS.items(), start=1):
        figure.add_trace(_bars(bins[residual], colour), row=1, col=k)
        figure.update_xaxes(title_text=text, tickangle=-40, type="category", row=1, col=k)
        figure.update_yaxes(title_text="failed (%)" if k == 1 else "", range=[0, 105], row=1, col=k)
        false, true = roc_curve(grid, residual)
        name = f"{text.split(' (')[0].removeprefix('final ')}: AUC {areas[residual]:.3f}"
        line = {"color": colour, "width": 2.5}
        figure.add_trace(go.Scatter(x=false, y=true, mode="lines", name=name, line=line), row=1, col=3)
    diagonal = {"color": "#999", "width": 1, "dash": "dot"}
    figure.add_trace(
        go.Scatter(x=[0, 1], y=[0, 1], mode="lines", line=diagonal, showlegend=False, hoverinfo="skip"), row=1, col=3
    )
    figure.update_xaxes(title_text="alarms among good runs", range=[0, 1], row=1, col=3)
    figure.update_yaxes(title_text="failures found", range=[0, 1.02], row=1, col=3)
    legend = {"x": 1.0, "y": -0.22, "xanchor": "right", "yanchor": "top", "bgcolor": "rgba(0,0,0,0)"}
    figure.update_layout(height=380, margin={"l": 50, "r": 10, "t": 40, "b": 110}, legend=legend, bargap=0.12)
    return figure


def _bars(bins: list[Bin], colour: str) -> go.Bar:
    return go.Bar(
        x=["< 1e-6" if b.exact else f"{_short(b.low)} – {_short(b.high)}" for b in bins],
        y=[b.rate for b in bins],
        customdata=[b.runs for b in bins],
        hovertemplate="%{x}<br>%{y:.1f}% of %{customdata} runs failed<extra></extra>",
        marker_color=colour,
        showlegend=False,
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [b.rate_high - b.rate for b in bins],
            "arrayminus": [b.rate - b.rate_low for b in bins],
            "color": "#8a94a3",
            "thickness": 1,
            "width": 3,
        },
    )


def _short(value: float) -> str:
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e4 else f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")
