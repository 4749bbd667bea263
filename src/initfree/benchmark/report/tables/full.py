"""The appendix's tables of every set, formulation and initialisation: before / linear / selected upgrade."""

import pandas as pd

from initfree.benchmark.report.names import AUCS, in_order
from initfree.benchmark.report.selection import controlled, pipeline
from initfree.benchmark.report.table import Table, columns

_GROUPS = {
    "rot": ("Rotation AUC", ("rotation_auc5", "rotation_auc10", "rotation_auc20")),
    "trans": ("Translation-direction AUC", ("translation_auc5", "translation_auc10", "translation_auc20")),
    "landmark": ("Landmark accuracy", ("landmark_median", "landmark_rmse", "landmark_p90")),
}
_LOSSES = {"none": "without robust loss", "cauchy": "with Cauchy"}


def full_tables(rows: pd.DataFrame) -> list[Table]:
    """Ten tables as in the paper: three groups of metrics x two losses, and poses again for six observations."""
    usual = [_full(rows, group, loss, 3) for group in _GROUPS for loss in _LOSSES]
    return usual + [_full(rows, group, loss, 6) for group in ("rot", "trans") for loss in ("cauchy", "none")]


def _full(rows: pd.DataFrame, group: str, loss: str, min_obs: int) -> Table:
    title, metrics = _GROUPS[group]
    upgrades = ("before", "linear1997", "selected") if min_obs == 3 else ("before", "linear1997")
    chosen = pipeline(rows, min_obs=min_obs, upgrade=None)
    chosen = chosen[chosen["loss"] == loss]
    jobs = chosen.sort_values("seed").groupby(["set", "formulation", "init"])["job"].first()
    scored = chosen.assign(**{m: chosen[m].fillna(0.0) for m in metrics if m in AUCS})
    means = scored.groupby(["set", "formulation", "init", "upgrade"])[list(metrics)].mean()
    parts = [
        means.xs(u, level="upgrade").add_suffix(f"/{u}")
        for u in upgrades
        if len(means) and u in means.index.unique("upgrade")
    ]
    keys = [f"{metric}/{upgrade}" for metric in metrics for upgrade in upgrades]
    frame = pd.concat(parts, axis=1) if parts else pd.DataFrame(index=jobs.index)
    frame = _sorted(frame.reindex(columns=keys).rename_axis(["set", "formulation", "init"]).reset_index())
    links = [{"job": str(jobs[key])} for key in zip(frame["set"], frame["formulation"], frame["init"], strict=True)]
    frame, below = _with_methods(frame, rows, loss, min_obs, metrics)
    label = {
        3: f"tab:{'' if group == 'landmark' else 'ose_'}{group}_{loss}_current",
        6: f"tab:minobs6_{group}_{loss}_linear1997",
    }
    least = f", at least {min_obs} observations a landmark" if min_obs != 3 else ""
    note = "Mean over seeds; before / linear (1997) / selected upgrade" + (
        "; methods without a choice of upgrade stand in the last column of a group" if below else ""
    )
    name = f"full-{group}-{loss}-{min_obs}"
    numbers = columns(*keys, decimals=2 if group == "landmark" else 1)
    return Table(
        name,
        f"{title} {_LOSSES[loss]}{least}",
        ("set", "formulation", "init"),
        numbers,
        frame,
        note,
        label[min_obs],
        (*links, *below),
        ranked=0,
        folded=True,
    )


def _with_methods(
    frame: pd.DataFrame, rows: pd.DataFrame, loss: str, min_obs: int, metrics: tuple[str, ...]
) -> tuple[pd.DataFrame, list[dict[str, str]]]:
    """Rows of auto, COLMAP and the oracle, set by set, with the runs without robust loss: they have no stage-1 loss."""
    others = controlled(rows)
    others = others[(others["method"] != "initfree") & (others["min_obs"] == min_obs)]
    if others.empty or loss != "none" or frame.empty:
        return frame, []
    last = frame.columns[-1].partition("/")[2]
    means = others.groupby(["set", "method"])[list(metrics)].mean().add_suffix(f"/{last}").reset_index()
    means = means.rename(columns={"method": "formulation"}).assign(init="")
    links = [{"set": str(r["set"]), "method": str(r["formulation"])} for _, r in means.iterrows()]
    return pd.concat([frame, means], ignore_index=True), links


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    order = {name: {value: k for k, value in enumerate(in_order(frame[name]))} for name in ("set", "formulation", "init")}
    return frame.sort_values(["set", "formulation", "init"], key=lambda c: c.map(order[str(c.name)]), ignore_index=True)
