"""The optimisation-reconstruction gap: runs with the same OSE residual and opposite outcomes."""

from typing import Any

import numpy as np
import pandas as pd

from initfree.benchmark.report.names import PAPER_UPGRADE, display
from initfree.benchmark.report.selection import pipeline
from initfree.benchmark.report.table import Column, Table

_PAIRS = 12


def gap_table(rows: pd.DataFrame, upgrade: str = PAPER_UPGRADE) -> Table:
    """For each set and formulation the failed and the good run whose OSE residuals are closest, as in the paper's teaser."""
    grid = pipeline(rows, min_obs=None, upgrade=upgrade)
    grid = grid[np.isfinite(grid["ose_residual"]) & (grid["ose_residual"] > 0.0)]
    found = [pair for _, part in grid.groupby(["set", "min_obs", "formulation"]) if (pair := _closest(part)) is not None]
    found = sorted(found, key=lambda pair: pair["ratio"])[:_PAIRS]
    keys = ("set", "min_obs", "formulation", "good", "bad")
    numbers = (
        Column("ose/good", "Good run", "OSE residual", decimals=5),
        Column("ose/bad", "Failed run", "OSE residual", decimals=5),
        Column("refine/good", "Good run", "Refinement (px)", decimals=3),
        Column("refine/bad", "Failed run", "Refinement (px)", decimals=3),
        Column("rotation/good", "Good run", "Rot. A20", decimals=1),
        Column("rotation/bad", "Failed run", "Rot. A20", decimals=1),
    )
    frame = pd.DataFrame(found, columns=[*keys, *(c.key for c in numbers), "job"])
    note = (
        "Runs of one set and formulation that stage 1 cannot tell apart: closest OSE residuals, one reconstruction good and "
        "one failed. The closest pairs first; 3D shows the failed run"
    )
    links = tuple({"job": str(job)} for job in frame["job"])
    title = "Same OSE residual, opposite outcome"
    return Table("gap", title, keys, numbers, frame, note, "", links, ranked=0)


def _closest(part: pd.DataFrame) -> dict[str, Any] | None:
    good, bad = part[~part["failed"]], part[part["failed"]]
    if good.empty or bad.empty:
        return None
    ratio = np.abs(np.log(good["ose_residual"].to_numpy(float)[:, None] / bad["ose_residual"].to_numpy(float)[None]))
    k, l = np.unravel_index(int(np.argmin(ratio)), ratio.shape)
    pair = {"good": good.iloc[int(k)], "bad": bad.iloc[int(l)]}
    values: dict[str, Any] = {name: pair["bad"][name] for name in ("set", "min_obs", "formulation", "job")}
    values["ratio"] = float(ratio[k, l])
    for which, row in pair.items():
        values[which] = f"{display(row['init'])}, {display(row['loss']).lower()}"
        values |= {f"ose/{which}": row["ose_residual"], f"refine/{which}": row["refine_residual"]}
        values[f"rotation/{which}"] = row["rotation_auc20"]
    return values
