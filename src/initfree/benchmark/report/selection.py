"""Which rows of a sweep a table is about."""

from collections.abc import Iterable

import pandas as pd

from initfree.benchmark.report.names import (
    AUCS,
    PAPER_INITS,
    PAPER_LOSSES,
    PAPER_SETS,
    PAPER_UPGRADE,
    VARIANTS,
    display,
    in_order,
)

CONDITION = ("noise", "outliers", "merged", "k1")
BAL_FAMILIES = "ladybug|trafalgar|dubrovnik|venice|final"
CASE = ("set", "seed", "min_obs", "formulation", "init", "loss", "rotations", *CONDITION)
_CELL = ("set", "min_obs", "formulation", "rotations", "init", "loss", "upgrade", "method", *CONDITION)
"""a cell of a set's table: what differs in it is the seed"""
PAPER_ALPHA, PAPER_BETA = 0.05, 1.0


def prefer(rows: pd.DataFrame, column: str, wanted: Iterable[object]) -> pd.DataFrame:
    """The rows with a wanted value; all of them where none has one."""
    chosen = rows[rows[column].isin(list(wanted))]
    return rows if chosen.empty else chosen


def mildest(rows: pd.DataFrame) -> pd.DataFrame:
    """The condition of the paper's controlled sets, or the nearest to it: least noise, outliers and merged tracks."""
    for column in CONDITION:
        values = rows[column].fillna(0.0).abs()
        if values.nunique() > 1:
            rows = rows[values == values.min()]
    return rows


def is_bal(rows: pd.DataFrame) -> pd.Series:
    """Sets that bear the name of a BAL family and a number of cameras, as ladybug-49."""
    return rows["set"].str.fullmatch(rf"({BAL_FAMILIES})-\d+")


def controlled(rows: pd.DataFrame) -> pd.DataFrame:
    """Every method on the paper's sets (all sets where a sweep has none of them) in the mildest condition."""
    return mildest(prefer(rows[~is_bal(rows)], "set", PAPER_SETS))


def pipeline(
    rows: pd.DataFrame, *, min_obs: int | None = 3, upgrade: str | None = PAPER_UPGRADE, losses: Iterable[str] = PAPER_LOSSES
) -> pd.DataFrame:
    """The paper's pipeline on the controlled sets, any initialisation; pOSE+rot with true rotations, as in its tables.

    Where a sweep has several: exact linear solves, the paper's weights, and rescaled pixels for all but pOSE+rot.
    """
    wanted = (rows["method"] == "initfree") & (rows["init"] != "truth") & rows["loss"].isin(list(losses))
    wanted &= rows["linear_solver"].isin(("", _solver(rows))) & rows["alpha"].fillna(PAPER_ALPHA).eq(PAPER_ALPHA)
    wanted &= rows["beta"].fillna(PAPER_BETA).eq(PAPER_BETA)
    if (rows["intrinsics"] == "pixels").any():
        wanted &= (rows["intrinsics"] == "pixels") | (rows["rotations"] != "")
    if min_obs is not None:
        wanted &= rows["min_obs"] == min_obs
    if upgrade is not None:
        wanted &= rows["upgrade"] == upgrade
    chosen = controlled(rows[wanted])
    rotated = chosen["rotations"] != ""
    # Without rows of true rotations those of estimated ones stand in for them.
    if (chosen["rotations"] == "truth").any():
        chosen = chosen[~rotated | (chosen["rotations"] == "truth")]
    return chosen


def _solver(rows: pd.DataFrame) -> str:
    """The linear solver that tables are about: exact steps, else the only one or the first."""
    return next(iter(in_order(name for name in rows["linear_solver"].unique() if name)), "")


def paper_grid(
    rows: pd.DataFrame, *, min_obs: int | None = 3, upgrade: str | None = PAPER_UPGRADE, losses: Iterable[str] = PAPER_LOSSES
) -> pd.DataFrame:
    """`pipeline` with the initialisations and formulations of the paper only: what its averages are over."""
    grid = prefer(pipeline(rows, min_obs=min_obs, upgrade=upgrade, losses=losses), "init", PAPER_INITS)
    return grid[~grid["formulation"].isin(VARIANTS)]


def whole_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods that are no stage of the paper's pipeline: auto, the oracle, COLMAP's mappers."""
    return controlled(rows[(rows["method"] != "initfree") & (rows["min_obs"] == 3)])


def average(rows: pd.DataFrame, by: str, metrics: Iterable[str], order: bool = True) -> pd.DataFrame:
    """Mean of each metric a group: over seeds, then over the cells of a set's table, then over sets.

    Every set has the same weight, and in it every formulation, start and loss, however many seeds ran. A run that gave no
    reconstruction has AUC 0, landmarks of none are left out.
    """
    metrics = list(metrics)
    scored = rows.assign(**{m: rows[m].fillna(0.0) for m in metrics if m in AUCS})
    for keys in (_CELL, ("set",), ()):
        groups = list(dict.fromkeys([by, *(key for key in keys if key in rows)]))
        scored = scored.groupby(groups, sort=False, dropna=False)[metrics].mean().reset_index()
    means = scored.set_index(by)
    means = means.loc[in_order(means.index)] if order else means
    return means.reset_index()


def failure_rate(rows: pd.DataFrame) -> float:
    """Percent of rows that failed by the paper's definition, weighted as in `average`."""
    if rows.empty:
        return float("nan")
    failed = rows.assign(failed=rows["failed"].astype(float), all="all")
    return 100.0 * float(average(failed, "all", ["failed"])["failed"].iloc[0])


def about(rows: pd.DataFrame) -> str:
    """What an average is over, in words: runs, sets, seeds, and what was left out."""
    if rows.empty:
        return "no runs"
    names = sorted(rows["set"].unique())
    sets = display(names[0]) if len(names) == 1 else "sets " + ", ".join(display(s).removeprefix("Set ") for s in names)
    seeds = rows["seed"].nunique()
    text = f"{count(len(rows), 'run')}; {sets}; {count(seeds, 'seed')}"
    missing = [display(s).removeprefix("Set ") for s in PAPER_SETS if s not in names]
    if rows["set"].isin(PAPER_SETS).any() and missing:
        text += f"; without the paper's sets {', '.join(missing)}" if len(missing) > 1 else f"; without Set {missing[0]}"
    lost = int((rows["error"] != "").sum())
    return text + (f"; {count(lost, 'run')} raised an error, AUC 0" if lost else "")


def count(number: int, what: str) -> str:
    """1 run, 2 runs."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
