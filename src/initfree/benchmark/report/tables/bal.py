"""Failure and recovery on BAL: one row a run, with the residuals that tell them apart."""

import pandas as pd

from initfree.benchmark.report.names import PAPER_UPGRADE, display
from initfree.benchmark.report.selection import is_bal
from initfree.benchmark.report.table import Column, Table, columns


def bal_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """After the paper's upgrade, and whole methods; every run once."""
    chosen = rows[is_bal(rows)]
    return chosen[(chosen["upgrade"] == PAPER_UPGRADE) | (chosen["method"] != "initfree")]


def bal_table(rows: pd.DataFrame) -> Table:
    """The runs on BAL problems, problem by problem."""
    chosen = bal_rows(rows).sort_values(["set", "formulation", "init", "loss", "method", "min_obs", "seed"])
    frame = chosen.assign(
        run=[run_name(row) for _, row in chosen.iterrows()],
        outcome=["failed" if failed else "recovered" for failed in chosen["failed"]],
    ).reset_index(drop=True)
    numbers = (
        Column("ose_residual", "OSE residual", decimals=5),
        Column("refine_residual", "Refinement residual (px)", decimals=3),
        *columns("rotation_auc20", "translation_auc20", "landmark_rmse"),
    )
    links = tuple({"job": str(job)} for job in frame["job"])
    note = "Outcome by the paper's definition, against a bundle adjustment that starts from the estimates in the file"
    keys = ("set", "run", "min_obs", "outcome")
    return Table("bal", "Failure and recovery on BAL", keys, numbers, frame, note, "", links, ranked=0)


def run_name(row: pd.Series) -> str:
    """A run in words: pOSE, unit circle, Cauchy; or the method, which has no such parts."""
    parts = [display(row[key]) for key in ("formulation", "init", "loss") if row[key]]
    return ", ".join(parts) or display(row["method"])
