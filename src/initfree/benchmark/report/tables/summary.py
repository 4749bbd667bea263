"""Averages by formulation, by initialisation, and by loss."""

import pandas as pd

from initfree.benchmark.report.names import PAPER_INITS, PAPER_UPGRADE, POSE, STRUCTURE
from initfree.benchmark.report.selection import CONDITION, about, average, paper_grid, pipeline, whole_methods
from initfree.benchmark.report.table import Table, columns

_SUFFIX = {PAPER_UPGRADE: "linear1997", "selected": "selected1997"}
_AFTER = {PAPER_UPGRADE: "after the paper's linear upgrade", "selected": "after the selected upgrade"}


def pose_table(rows: pd.DataFrame, upgrade: str = PAPER_UPGRADE) -> Table:
    """Average pose accuracy by formulation."""
    return _by_formulation(rows, upgrade, "pose", (*POSE, "failure_rate"))


def structure_table(rows: pd.DataFrame, upgrade: str = PAPER_UPGRADE) -> Table:
    """Average structure accuracy by formulation."""
    return _by_formulation(rows, upgrade, "landmarks", STRUCTURE)


def _by_formulation(rows: pd.DataFrame, upgrade: str, kind: str, metrics: tuple[str, ...]) -> Table:
    grid = paper_grid(rows, upgrade=upgrade)
    frame = average(_rated(grid), "formulation", metrics)
    label = f"tab:summary_formulations_{kind}_{_SUFFIX[upgrade]}"
    subject = "pose" if kind == "pose" else "structure"
    title = f"Average {subject} accuracy by formulation, {_AFTER[upgrade]}"
    return _with_methods(label, title, "formulation", metrics, frame, grid, rows)


def initialisation_table(rows: pd.DataFrame, upgrade: str = PAPER_UPGRADE) -> Table:
    """Average effect of initialisation; initialisations the paper has not stand below its three."""
    metrics = (*POSE, "landmark_rmse", "failure_rate")
    grid = pipeline(rows, upgrade=upgrade)
    frame = average(_rated(grid), "init", metrics)
    theirs = frame["init"].isin(PAPER_INITS)
    frame = pd.concat([frame[theirs], frame[~theirs]], ignore_index=True)
    title = f"Average effect of initialisation, {_AFTER[upgrade]}"
    return _with_methods(f"tab:init_average_{_SUFFIX[upgrade]}", title, "init", metrics, frame, grid, rows)


def loss_table(rows: pd.DataFrame, upgrade: str = PAPER_UPGRADE) -> Table:
    """Average effect of the Cauchy loss; losses the paper has not stand below it."""
    metrics = (*POSE, *STRUCTURE, "failure_rate")
    grid = paper_grid(rows, upgrade=upgrade, losses=rows["loss"].unique())
    label = "tab:robust_average_selected1997_compact" if upgrade == "selected" else ""
    title = f"Average effect of robustification, {_AFTER[upgrade]}"
    frame = average(_rated(grid), "loss", metrics)
    table = Table(f"robust-average-{upgrade}", title, ("loss",), columns(*metrics), frame, about(grid), label)
    return table.with_links("loss")


def initialisation_loss_tables(rows: pd.DataFrame, upgrade: str = PAPER_UPGRADE) -> tuple[Table, Table]:
    """Initialisation x Cauchy: pose and structure, without and with the loss side by side."""
    grid = pipeline(rows, upgrade=upgrade)
    found: list[Table] = []
    for kind, subject, metrics in (("pose", "pose recovery", POSE), ("landmarks", "structure accuracy", STRUCTURE)):
        halves = [
            average(grid[grid["loss"] == loss], "init", metrics).set_index("init").add_suffix(f"/{loss}")
            for loss in ("none", "cauchy")
        ]
        keys = [f"{metric}/{loss}" for metric in metrics for loss in ("none", "cauchy")]
        # Initialisations that ran with one loss only are no comparison.
        frame = pd.concat(halves, axis=1, join="inner").reindex(columns=keys)
        frame = frame.rename_axis("init").reset_index()
        title = f"Effect of initialisation and Cauchy on {subject}"
        label = f"tab:init_cauchy_{kind}_linear1997_pairs"
        name = f"init-cauchy-{kind}"
        found.append(Table(name, title, ("init",), columns(*keys), frame, about(grid), label).with_links("init"))
    return found[0], found[1]


def _rated(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(failure_rate=100.0 * rows["failed"].astype(float))


def _with_methods(
    label: str, title: str, key: str, metrics: tuple[str, ...], frame: pd.DataFrame, grid: pd.DataFrame, rows: pd.DataFrame
) -> Table:
    """The table with a row for each whole method (auto, COLMAP, ...) below those of the paper's pipeline."""
    place = ["set", *CONDITION]
    others = whole_methods(rows).merge(grid[place].drop_duplicates(), on=place)
    below = average(_rated(others), "method", metrics).rename(columns={"method": key})
    both = pd.concat([frame, below], ignore_index=True) if len(below) else frame
    links = (*({key: str(k)} for k in frame[key]), *({"method": str(k)} for k in below[key]))
    note = about(grid)
    if len(below):
        note += ". Methods below the line choose their own way to the end (Euclidean adjustment included)"
    name = label.removeprefix("tab:").replace("_", "-")
    return Table(name, title, (key,), columns(*metrics), both, note, label, links, len(frame))
