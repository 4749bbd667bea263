"""Whole methods against one another, in every condition of the sweep: auto, the oracle, COLMAP, the paper's pipeline."""

import pandas as pd

from initfree.benchmark.report.names import AUCS, METHODS, PAPER_UPGRADE, display, in_order
from initfree.benchmark.report.selection import CONDITION, failure_rate, is_bal
from initfree.benchmark.report.table import Column, Table, columns

_SHOWN = ("rotation_auc5", "rotation_auc20", "translation_auc5", "translation_auc20", "landmark_rmse")


def comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows where whole methods ran, with the paper's pipeline (its linear upgrade, any start but the truth) beside them."""
    rows = rows[~is_bal(rows)].assign(**{c: rows[c].fillna(0.0) for c in CONDITION})
    whole = rows[rows["method"] != "initfree"]
    place = ["set", "seed", "min_obs", *CONDITION]
    paper = rows[(rows["method"] == "initfree") & (rows["upgrade"] == PAPER_UPGRADE) & (rows["init"] != "truth")]
    paper = paper.merge(whole[place].drop_duplicates(), on=place)
    both = pd.concat([paper, whole], ignore_index=True) if len(whole) else whole
    return both.assign(**{a: both[a].fillna(0.0) for a in AUCS})


def methods_table(rows: pd.DataFrame) -> Table:
    """Accuracy, failures, completeness and time by method, for every condition and minimum of observations."""
    chosen = comparable(rows)
    shown = (*_SHOWN, "failure_rate", "cameras_found", "seconds")
    chosen = chosen.assign(
        failure_rate=100.0 * chosen["failed"].astype(float),
        cameras_found=100.0 * chosen["cameras_recovered"].fillna(0.0) / chosen["cameras"],
        seconds=chosen["seconds_total"],
    )
    keys = [*CONDITION, "min_obs", "method"]
    means = chosen.groupby(keys)[list(shown)].mean().assign(runs=chosen.groupby(keys).size()).reset_index()
    rank = {name: k for k, name in enumerate(in_order(means["method"]))}
    means = means.sort_values(keys, key=lambda c: c.map(rank) if c.name == "method" else c)
    means = means.assign(condition=[condition(row) for _, row in means.iterrows()])
    numbers = (
        *columns(*_SHOWN, "failure_rate"),
        Column("cameras_found", "Cameras %", decimals=1),
        Column("seconds", "Seconds", decimals=2),
        Column("runs", "Runs", decimals=0),
    )
    title = "Whole methods on the same tracks"
    note = f"Where other methods ran; “{METHODS['initfree']}” averages its formulations, starts and losses there"
    links = tuple({"method": str(m)} for m in means["method"])
    frame = means.reset_index(drop=True)
    return Table("methods", title, ("condition", "method"), numbers, frame, note, "", links, ranked=0)


def condition(row: pd.Series) -> str:
    """Noise, wrong matches, merged tracks and distortion in words."""
    parts = [f"{row['noise']:g} px" if row["noise"] else "no noise"]
    parts += [f"{row['outliers']:.0%} wrong matches"] if row["outliers"] else []
    parts += [f"{row['merged']:.0%} merged tracks"] if row["merged"] else []
    parts += [f"k1 {row['k1']:g}"] if abs(row["k1"]) > 0.0 else []
    return ", ".join([*parts, f"≥ {row['min_obs']:.0f} obs."])


def set_by_method_table(rows: pd.DataFrame) -> Table:
    """Percent of runs that failed, set by set."""
    chosen = comparable(rows)
    methods = in_order(chosen["method"])
    found = [
        {"set": name, **{m: failure_rate(part[part["method"] == m]) for m in methods}}
        for name, part in chosen.groupby("set")
    ]
    numbers = tuple(Column(m, display(m), better=-1, decimals=1) for m in methods)
    title = "Failed runs by set and method, percent"
    frame = pd.DataFrame(found, columns=["set", *methods])
    table = Table("methods-by-set", title, ("set",), numbers, frame, "All conditions together", ranked=0)
    return table.with_links("set")
