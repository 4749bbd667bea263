"""What changes when landmarks need six observations instead of three."""

import pandas as pd

from initfree.benchmark.report.names import AUCS, PAPER_UPGRADE, POSE
from initfree.benchmark.report.selection import CONDITION, about, average, paper_grid
from initfree.benchmark.report.table import Table, columns

_CASE = ["set", "seed", "formulation", "init", "loss", "rotations", *CONDITION]
_METRICS = (*POSE, "landmark_rmse")


def densification_pairs(rows: pd.DataFrame, upgrade: str = PAPER_UPGRADE) -> pd.DataFrame:
    """Metric at six minus metric at three observations, for every case that ran with both."""
    halves = []
    for min_obs in (3, 6):
        part = paper_grid(rows, min_obs=min_obs, upgrade=upgrade)
        zeros = {c: part[c].fillna(0.0) for c in (*CONDITION, *(m for m in _METRICS if m in AUCS))}
        halves.append(part.assign(**zeros).set_index(_CASE)[list(_METRICS)])
    common = halves[0].index.intersection(halves[1].index)
    return (halves[1].loc[common] - halves[0].loc[common]).reset_index()


def densification_overall(rows: pd.DataFrame) -> Table:
    """Effect of densification by loss."""
    pairs = densification_pairs(rows)
    frame = average(pairs, "loss", _METRICS)
    numbers = columns(*_METRICS, signed=True)
    title = "Effect of densification (from 3 to 6 observations a landmark)"
    return Table(
        "densification", title, ("loss",), numbers, frame, _note(pairs), "tab:summary_densification_delta"
    ).with_links("loss", min_obs="6")


def densification_by_formulation(rows: pd.DataFrame) -> Table:
    """Effect of densification by formulation."""
    pairs = densification_pairs(rows)
    metrics = ("rotation_auc20", "translation_auc20", "landmark_rmse")
    frame = average(pairs, "formulation", metrics)
    numbers = columns(*metrics, signed=True)
    title = "Effect of densification by formulation"
    label = "tab:densification_by_formulation"
    return Table("densification-by-formulation", title, ("formulation",), numbers, frame, _note(pairs), label).with_links(
        "formulation", min_obs="6"
    )


def _note(pairs: pd.DataFrame) -> str:
    words = about(pairs.assign(error="")).replace(" run", " pair of runs" if len(pairs) == 1 else " pairs of run", 1)
    return words + ". Positive is better for AUC, negative for landmarks"
