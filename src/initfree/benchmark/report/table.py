"""A table of the report: our numbers, the paper's beside them, and what a row links to."""

from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from initfree.benchmark.report.names import display
from initfree.benchmark.report.paper import paper_table

_METRICS = {
    **{f"rotation_auc{t}": (f"Rot. A{t}", 1) for t in (5, 10, 20)},
    **{f"translation_auc{t}": (f"Trans. A{t}", 1) for t in (5, 10, 20)},
    "landmark_median": ("Lmk. Med.", -1),
    "landmark_rmse": ("Lmk. RMSE", -1),
    "landmark_p90": ("Lmk. P90", -1),
    "failure_rate": ("Failed %", -1),
    "pre_stage_2": ("Pre-stage-2", -1),
    "stage_2": ("Stage 2", -1),
    "upgrade_seconds": ("Upgrade", -1),
    "solver_total": ("Solver total", -1),
    "wall_clock": ("Wall-clock", -1),
    "share": ("Share %", 0),
}


@dataclass(frozen=True)
class Column:
    """A column of numbers; `key` is also the paper's column, "metric/variant" where the paper prints pairs."""

    key: str
    title: str
    group: str = ""
    better: int = 0
    """1 if higher is better, -1 if lower is, 0 if neither"""
    decimals: int = 2
    signed: bool = False


def column(key: str, *, signed: bool = False, decimals: int = 2) -> Column:
    """The column of a metric, or of one variant of it."""
    metric, _, variant = key.partition("/")
    title, better = _METRICS.get(metric, (metric.replace("_", " ").capitalize(), 0))
    title = f"Δ {title}" if signed else title
    if variant:
        return Column(key, display(variant).split(",")[0].split(" (")[0], title, better, decimals, signed)
    return Column(key, title, "", better, decimals, signed)


def columns(*keys: str, signed: bool = False, decimals: int = 2) -> tuple[Column, ...]:
    return tuple(column(key, signed=signed, decimals=decimals) for key in keys)


@dataclass(frozen=True)
class Table:
    """`frame` holds the key columns and the numbers; `label` names the paper's table of the same layout."""

    name: str
    """of its files, an anchor of the page"""
    title: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    frame: pd.DataFrame
    note: str = ""
    label: str = ""
    links: tuple[dict[str, Any], ...] = field(default=())
    """for every row, what the view of reconstructions is filtered by; empty where nothing is to be seen"""
    ranked: int | None = None
    """how many rows, from the top, compete for the best number; None: all of them"""
    folded: bool = False
    """opens on demand: it is long"""

    @property
    def empty(self) -> bool:
        return self.frame.empty

    def paper(self) -> pd.DataFrame | None:
        """The paper's numbers, row by row and column by column as ours, NaN where it has none; None if it has no row."""
        source = paper_table(self.label) if self.label else None
        if source is None or not source.rows or self.empty:
            return None
        theirs = source.frame().set_index(list(source.keys))
        keys = [tuple(map(str, row)) for row in self.frame[list(source.keys)].itertuples(index=False)]
        wanted = pd.MultiIndex.from_tuples(keys) if len(source.keys) > 1 else pd.Index([key[0] for key in keys])
        found = theirs.reindex(index=wanted, columns=[c.key for c in self.columns])
        return None if found.isna().all(axis=None) else found.reset_index(drop=True).astype(float)

    def best(self) -> pd.DataFrame:
        """True where a number is the best of its column among the ranked rows (columns with a direction only)."""
        values = self.frame[[c.key for c in self.columns]].reset_index(drop=True)
        marks = pd.DataFrame(False, index=values.index, columns=values.columns)
        for c in self.columns:
            ranked = values[c.key].iloc[: self.ranked]
            if c.better and not c.signed and ranked.nunique() > 1:
                extreme = ranked.max() if c.better > 0 else ranked.min()
                marks.loc[ranked.index, c.key] = ranked == extreme
        return marks

    def with_links(self, *names: str, **fixed: str) -> "Table":
        """Every row filters the reconstructions by these of its keys, and by what is `fixed`."""
        links = tuple({**{n: str(row[n]) for n in names}, **fixed} for _, row in self.frame.iterrows())
        return replace(self, links=links)
