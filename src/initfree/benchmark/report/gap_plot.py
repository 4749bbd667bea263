"""The figure of docs/reproduction.md: how the linear solvers fare as the gap of the camera graph closes; and residuals."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binomtest

from initfree.benchmark.report.cells import PUBLIC, TERMS
from initfree.benchmark.report.failure import failure_bins, roc_auc
from initfree.benchmark.report.names import PAPER_INITS

RING = r"ring (\d+) within (\d+)"
"""title of the sets whose gap alone changes: observations a landmark, and the widest change of view of a track"""
_LINES = {
    ("exact", 0): ("exact steps", "#1b7837", "-"),
    ("pcg", 20): ("conjugate gradients, 20 steps", "#2166ac", "-."),
    ("pcg", 10): ("conjugate gradients, 10", "#92c5de", ":"),
    ("power", 20): ("power series, 20 terms", "#b2182b", "-"),
    ("power", 10): ("power series, 10 terms", "#ef8a62", "--"),
}
_EDGES = [0.0, 0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.15, 0.25, 1.0]
"""of the bins of μ"""
_FEWEST = 8
"""runs that a share is taken of"""


@dataclass(frozen=True)
class Point:
    """Runs of one set by one solver: the share of them that were solved, in percent, with its 95% Wilson interval."""

    set: str
    density: int
    solver: str
    terms: int
    gap: float
    runs: int
    share: float
    low: float
    high: float


def ring_points(rows: pd.DataFrame) -> list[Point]:
    """The rings whose gap alone changes, by set and solver, from the smallest gap on."""
    found = rows["set"].str.extract(RING)
    rings = rows.assign(density=found[0])[found[0].notna() & (rows["upgrade"] == PUBLIC)]
    terms = rings["inner_iterations"].where(rings["linear_solver"] != "exact").fillna(0).astype(int)
    points = []
    by = ["set", "density", "linear_solver", "terms"]
    for (name, density, solver, count), part in rings.assign(terms=terms).groupby(by):
        points.append(_point(str(name), int(str(density)), str(solver), int(str(count)), part))
    return sorted(points, key=lambda p: (p.density, p.solver, p.terms, p.gap))


def _point(name: str, density: int, solver: str, terms: int, part: pd.DataFrame, against: str = "walk_gap") -> Point:
    good = int((~part["failed"]).sum())
    interval = binomtest(good, len(part)).proportion_ci(method="wilson")
    low, high = (100.0 * float(x) for x in (interval.low, interval.high))
    gap, share = float(part[against].median()), 100.0 * good / len(part)
    return Point(name, density, solver, terms, gap, len(part), share, low, high)


def series_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs of pOSE, rOSE and expOSE of all sets and rings for which it is known what a term of the series gains.

    Without the sets on which the upgrade is degenerate, where the outcome is not the solver's.
    """
    chosen = rows[rows["formulation"].isin(["pose", "rose", "expose"]) & rows["init"].isin(PAPER_INITS)]
    chosen = chosen[(chosen["upgrade"] == PUBLIC) & (chosen["loss"] == "none") & ~(chosen["nullity"] > 1)]
    return chosen[chosen["series_gap"].notna()]


def series_points(rows: pd.DataFrame) -> list[Point]:
    """These runs by solver and by what a term gains."""
    chosen = series_runs(rows)
    terms = chosen["inner_iterations"].where(chosen["linear_solver"] != "exact").fillna(0).astype(int)
    chosen = chosen.assign(terms=terms, bin=np.digitize(chosen["series_gap"], _EDGES))
    points = []
    for (solver, count, _), part in chosen.groupby(["linear_solver", "terms", "bin"]):
        if len(part) >= _FEWEST:
            points.append(_point("", 0, str(solver), int(str(count)), part, "series_gap"))
    return sorted(points, key=lambda p: (p.solver, p.terms, p.gap))


def gap_plot(rows: pd.DataFrame, file: Path) -> None:
    """Share of runs solved: a panel for each density of the rings, against the gap of their camera graph, and one of all
    runs against the gap of the series."""
    rings, series = ring_points(rows), series_points(rows)
    densities = sorted({p.density for p in rings})
    figure = Figure(figsize=(3.5 * (len(densities) + bool(series)), 3.7))
    panels = figure.subplots(1, len(densities) + bool(series), sharey=True, squeeze=False)[0]
    for axis, density in zip(panels, densities, strict=False):
        _lines(axis, [p for p in rings if p.density == density])
        axis.set_title(f"one ring, {density} observations a landmark", fontsize=10)
        axis.set(xlabel="gap of the camera graph", xlim=(0, 1))
    if series:
        axis = panels[-1]
        _lines(axis, series)
        axis.axvline(1.0 / TERMS, color="#999", linewidth=0.8, linestyle=":")
        axis.set_title("all sets, rings and starts", fontsize=10)
        axis.set(xlabel="what a term of the series gains, μ", xscale="log")
        axis.set_xticks(
            [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5], labels=["0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5"]
        )
        axis.minorticks_off()
    panels[0].set_ylabel("runs solved (%)")
    handles = {label: handle for axis in panels for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=5, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    _save(figure, file)


def _lines(axis: Axes, points: list[Point]) -> None:
    for key, (label, colour, style) in _LINES.items():
        mine = [p for p in points if (p.solver, p.terms) == key]
        if mine:
            gap = [p.gap for p in mine]
            axis.plot(gap, [p.share for p in mine], style, color=colour, marker="o", markersize=4, label=label)
            axis.fill_between(gap, [p.low for p in mine], [p.high for p in mine], color=colour, alpha=0.07, linewidth=0)
    axis.set_ylim(-4, 104)
    axis.set_yticks([0, 25, 50, 75, 100])
    axis.grid(alpha=0.3)


def residual_plot(grid: pd.DataFrame, file: Path) -> None:
    """The paper's figures of failure: rate by OSE residual and by refinement residual, in bins of equally many runs."""
    figure = Figure(figsize=(8.2, 3.2))
    titles = {"ose_residual": "OSE residual (normalised)", "refine_residual": "refinement residual (pixels)"}
    for axis, (residual, title) in zip(figure.subplots(1, 2, sharey=True), titles.items(), strict=True):
        bins = failure_bins(grid, residual)
        middle = [np.sqrt(max(b.low, 1e-7) * max(b.high, 1e-7)) for b in bins]
        error = [[b.rate - b.rate_low for b in bins], [b.rate_high - b.rate for b in bins]]
        style: dict[str, Any] = {"fmt": "o-", "color": "#333", "markersize": 4, "capsize": 2, "linewidth": 1}
        axis.errorbar(middle, [b.rate for b in bins], yerr=error, **style)
        axis.set(xlabel=title, xscale="log", ylim=(-3, 104), title=f"area under the ROC curve {roc_auc(grid, residual):.2f}")
        axis.title.set_fontsize(10)
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("runs that failed (%)")
    figure.tight_layout()
    _save(figure, file)


def _save(figure: Figure, file: Path) -> None:
    # No version in the file: the same runs give the same bytes.
    figure.savefig(file, dpi=110, metadata={"Software": None})
