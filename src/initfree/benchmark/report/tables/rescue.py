"""Where the Cauchy loss saves a run that fails without it: found, not picked."""

import pandas as pd

from initfree.benchmark.report.names import PAPER_UPGRADE, in_order
from initfree.benchmark.report.paper import paper_table
from initfree.benchmark.report.selection import CONDITION, pipeline
from initfree.benchmark.report.table import Table, columns

_METRICS = ("rotation_auc20", "translation_auc20", "landmark_rmse")
_CASE = ["set", "seed", "formulation", "init", "rotations", "min_obs", *CONDITION]
RESCUED, BROKEN = "rescued", "broken by Cauchy"


def loss_pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a case that ran with both losses: its metrics as metric/none and metric/cauchy, jobs, and the outcome."""
    wanted = [*_METRICS, "failed", "job"]
    halves = {}
    for loss in ("none", "cauchy"):
        part = rows[rows["loss"] == loss].assign(**{c: rows[c].fillna(0.0) for c in CONDITION})
        halves[loss] = part.set_index(_CASE)[wanted].add_suffix(f"/{loss}")
    pairs = halves["none"].join(halves["cauchy"], how="inner").reset_index()
    names = {(True, False): RESCUED, (False, True): BROKEN, (True, True): "both fail", (False, False): "both succeed"}
    flags = zip(pairs["failed/none"].astype(bool), pairs["failed/cauchy"].astype(bool), strict=True)
    return pairs.assign(outcome=[names[pair] for pair in flags])


def rescue_table(rows: pd.DataFrame, min_obs: int, upgrade: str = PAPER_UPGRADE) -> Table:
    """Every case that fails without Cauchy and succeeds with it; then the paper's cases that we do not see rescued."""
    label = f"tab:robust_rescue_cases_minobs{min_obs}_linear1997"
    pairs = loss_pairs(pipeline(rows, min_obs=min_obs, upgrade=upgrade))
    theirs = {tuple(row[:3]) for row in paper_table(label).rows}
    listed = [case in theirs for case in zip(pairs["set"], pairs["formulation"], pairs["init"], strict=True)]
    chosen = pairs[(pairs["outcome"] == RESCUED) | pd.Series(listed, index=pairs.index, dtype=bool)]
    rank = {name: k for k, name in enumerate([*in_order(chosen["formulation"]), *in_order(chosen["init"])])}
    order = ["outcome", "set", "formulation", "init", "seed"]
    chosen = chosen.sort_values(order, key=lambda c: c.map(rank) if c.name in ("formulation", "init") else c)
    chosen = pd.concat([chosen[chosen["outcome"] == RESCUED], chosen[chosen["outcome"] != RESCUED]], ignore_index=True)
    keys = [f"{metric}/{loss}" for metric in _METRICS for loss in ("none", "cauchy")]
    links = tuple({"job": str(job)} for job in chosen["job/cauchy"])
    counts = pairs["outcome"].value_counts()
    note = (
        f"{counts.get(RESCUED, 0)} of {len(pairs)} cases rescued, {counts.get(BROKEN, 0)} broken (failed with Cauchy only)."
        " Rescued: failed without, not failed with, same set, seed, formulation and initialisation."
        " Cases of the paper are listed whatever became of them here"
    )
    shown = ("set", "seed", "formulation", "init", "outcome")
    title = f"Robust rescue cases, at least {min_obs} observations a landmark"
    frame = chosen[[*shown, *keys]]
    return Table(f"rescue-minobs{min_obs}", title, shown, columns(*keys, decimals=1), frame, note, label, links, ranked=0)
