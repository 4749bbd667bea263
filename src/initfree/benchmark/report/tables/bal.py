"""Failure and recovery on BAL: one row a run, with the residuals that tell them apart."""

import pandas as pd

from initfree.benchmark.report.names import PAPER_UPGRADE
from initfree.benchmark.report.selection import is_bal
from initfree.benchmark.report.table import Column, Table, columns


def bal_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """After the paper's upgrade, and whole methods; every run once."""
    chosen = rows[is_bal(rows)]
    return chosen[(chosen["upgrade"] == PAPER_UPGRADE) | (chosen["method"] != "initfree")]


def bal_table(rows: pd.DataFrame) -> Table:
    """The runs on BAL problems, compared with the cameras and landmarks of the file where it has them."""
    chosen = bal_rows(rows).sort_values(["set", "method", "formulation", "init", "loss", "min_obs", "seed"])
    keys = ("set", "method", "formulation", "init", "loss", "min_obs", "outcome")
    frame = chosen.assign(outcome=["failed" if f else "recovered" for f in chosen["failed"]]).reset_index(drop=True)
    numbers = (
        Column("ose_residual", "OSE residual", decimals=5),
        Column("refine_residual", "Refinement residual (px)", decimals=3),
        *columns("rotation_auc20", "translation_auc20", "landmark_rmse"),
    )
    links = tuple({"job": str(job)} for job in frame["job"])
    note = "Outcome by the paper's definition against the reconstruction in the file"
    return Table("bal", "Failure and recovery on BAL", keys, numbers, frame, note, "", links, ranked=0)
