"""What else the outcome depends on: noise, wrong matches and lenses, and the weights and coordinates of the protocol."""

import pandas as pd

from initfree.benchmark.report.names import PAPER_UPGRADE, display, in_order
from initfree.benchmark.report.selection import CONDITION, PAPER_ALPHA, PAPER_BETA, about, average, is_bal
from initfree.benchmark.report.table import Column, Table
from initfree.benchmark.report.tables.methods import condition

METRIC = "rotation_auc20"
_CELL = ("set", "seed", "min_obs", "formulation", "init")
_COORDINATES = {"pixels": "rescaled pixels", "rays": "calibrated rays"}


def conditions_table(rows: pd.DataFrame) -> Table:
    """By what spoils the observations, and by loss: rotation AUC@20 of every formulation, on the same sets and starts."""
    runs = _runs(rows)
    runs = runs[(runs["alpha"] == PAPER_ALPHA) & (runs["beta"] == PAPER_BETA)]
    runs = runs[(runs["intrinsics"] != "rays") | (runs["rotations"] != "")]
    spoilt = (runs[list(CONDITION)].fillna(0.0) != 0.0).any(axis=1)
    runs = _in_cells_of(runs, runs[spoilt])
    frame = runs.assign(condition=[condition(row) for _, row in runs.iterrows()])
    note = (
        "Mean rotation AUC@20 after the paper's linear upgrade, on the same sets, seeds and starts. k1 is the radial "
        "distortion of a lens whose images stay as they are: RpOSE is made for it"
    )
    return _by_formulation("conditions", "With noise, wrong matches and distortion", ("condition", "loss"), frame, note)


def weights_table(rows: pd.DataFrame) -> Table:
    """By coordinates and weights: rotation AUC@20 of every formulation, on the same sets and starts, no robust loss."""
    runs = _runs(rows)
    runs = runs[(runs[list(CONDITION)].fillna(0.0) == 0.0).all(axis=1) & (runs["loss"] == "none")]
    runs = _in_cells_of(runs, runs[(runs["alpha"] != PAPER_ALPHA) | (runs["beta"] != PAPER_BETA)])
    frame = runs.assign(
        coordinates=runs["intrinsics"].map(_COORDINATES),
        beta=runs["beta"].where(runs["rotations"] != "").map(lambda b: "" if pd.isna(b) else f"{b:g}"),
        alpha=runs["alpha"].map("{:g}".format),
    )
    note = (
        "Mean rotation AUC@20 after the paper's linear upgrade, on the same sets, seeds and starts, no robust loss. The "
        "paper has alpha 0.05 and beta 1, rescaled pixels for all but pOSE+rot. Beta weighs rotations: only pOSE+rot has it"
    )
    keys = ("coordinates", "alpha", "beta")
    return _by_formulation("weights", "With other coordinates and weights", keys, frame, note)


def _runs(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's pipeline after its upgrade, with exact steps."""
    wanted = (rows["method"] == "initfree") & (rows["init"] != "truth") & (rows["upgrade"] == PAPER_UPGRADE)
    found = rows[wanted & rows["linear_solver"].isin(("", "exact")) & ~is_bal(rows)]
    return found.assign(alpha=found["alpha"].fillna(PAPER_ALPHA), beta=found["beta"].fillna(PAPER_BETA))


def _in_cells_of(rows: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """The rows whose set, seed, density, formulation and start `chosen` has too."""
    cells = pd.MultiIndex.from_frame(chosen[list(_CELL)])
    return rows[pd.MultiIndex.from_frame(rows[list(_CELL)]).isin(cells)]


def _by_formulation(name: str, title: str, keys: tuple[str, ...], rows: pd.DataFrame, note: str) -> Table:
    """One line for every value of the keys, one column a formulation."""
    names = in_order(rows["formulation"])
    lines = []
    for values, part in rows.groupby(list(keys), sort=False):
        means = average(part, "formulation", [METRIC]).set_index("formulation")[METRIC]
        lines.append({**dict(zip(keys, values, strict=True)), **means.to_dict()})
    numbers = tuple(Column(one, display(one), "Rot. A20", 1, 1) for one in names)
    frame = pd.DataFrame(lines, columns=[*keys, *names])
    return Table(name, title, keys, numbers, frame, f"{note}. {about(rows)}" if lines else note, ranked=0)
