"""Convergence of linear solvers: share of runs that reached the optimum, against time."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from initfree.benchmark.report.figures import FAILED, GOOD, NEUTRAL
from initfree.benchmark.report.names import display, in_order
from initfree.benchmark.report.tables.solvers import NEAR, Descent

COLOURS = {"exact": GOOD, "power": FAILED, "pcg": NEUTRAL}
_DASHES = {"1%": "solid", "0.01%": "dot"}


def solver_figure(found: list[Descent]) -> go.Figure | None:
    """For every problem, the percent of seeds within 1% (solid) and 0.01% (dotted) of the best cost by the second."""
    if not found:
        return None
    names = sorted({one.set for one in found})
    titles = [display(name) for name in names]
    figure = make_subplots(1, len(names), subplot_titles=titles, shared_yaxes=True, horizontal_spacing=0.03)
    for k, name in enumerate(names, start=1):
        mine = [one for one in found if one.set == name]
        end = max(float(one.seconds[-1]) for one in mine)
        for solver in in_order(one.solver for one in mine):
            for label, share in NEAR.items():
                times = np.sort([one.seconds_to(share) for one in mine if one.solver == solver])
                count = len(times)
                times = times[np.isfinite(times)]
                steps = 100.0 * np.arange(1, len(times) + 1) / count
                x = [1e-3, *np.repeat(times, 2), end]
                below = np.concatenate([[0.0], steps])
                y = [0.0, *np.ravel(np.column_stack([below[:-1], steps])), float(below[-1])]
                trace = go.Scatter(
                    x=x, y=y, mode="lines", name=f"{display(solver)}, within {label}", legendgroup=f"{solver}{label}",
                    showlegend=k == 1, line={"color": COLOURS.get(solver, "#888"), "dash": _DASHES[label], "width": 2.2},
                )  # fmt: skip
                figure.add_trace(trace, row=1, col=k)
        figure.update_xaxes(type="log", title_text="seconds of stage 1", row=1, col=k)
    figure.update_yaxes(title_text="runs there (%)", range=[-2, 104], row=1, col=1)
    legend = {"orientation": "h", "x": 0.0, "y": -0.25, "bgcolor": "rgba(0,0,0,0)"}
    figure.update_layout(height=380, margin={"l": 50, "r": 10, "t": 40, "b": 90}, legend=legend)
    return figure
