"""What the runs are worth before their outcome is read: how stages ended, and where the upgrade cannot work."""

import pandas as pd

from initfree.benchmark.report.names import PAPER_UPGRADE, display, in_order
from initfree.benchmark.report.selection import about, average, failure_rate, paper_grid, pipeline
from initfree.benchmark.report.table import Column, Table, columns

_REASONS = ("converged", "zero cost", "plateau", "limit")


def stopping_table(rows: pd.DataFrame) -> Table:
    """How stage 1 and the refinement ended, in percent of the runs, and how many of each kind failed."""
    grid = paper_grid(rows, min_obs=None)
    found = []
    for stage, column in (("stage 1", "ose_reason"), ("refinement", "refine_reason")):
        varied = grid[grid[column] != ""]
        for name in in_order(varied["formulation"]):
            part = varied[varied["formulation"] == name]
            shares = {reason: 100.0 * float((part[column] == reason).mean()) for reason in _REASONS}
            open_ = part[part[column].isin(("plateau", "limit"))]
            ended = {"runs": len(part), "failed": failure_rate(open_)}
            found.append({"stage": stage, "formulation": name, **shares, **ended})
    numbers = (
        *(Column(reason, reason.capitalize(), decimals=1) for reason in _REASONS),
        Column("failed", "Failed %, of plateau and limit", decimals=1),
        Column("runs", "Runs", decimals=0),
    )
    frame = pd.DataFrame(found, columns=["stage", "formulation", *(c.key for c in numbers)])
    note = (
        "Percent of runs. Converged: no more gain and a small gradient (no residual is within 1e-4 of the direction of any "
        "parameter); plateau: no more gain, the gradient is not small; limit: out of steps"
    )
    return Table("stopping", "How the stages ended", ("stage", "formulation"), numbers, frame, note, ranked=0)


def nullity_table(rows: pd.DataFrame) -> Table:
    """The null space of the paper's linear upgrade at the true cameras, set by set, and what comes of it."""
    grid = pipeline(rows.assign(set=rows["set"]), min_obs=3, upgrade=None)
    every = rows[(rows["method"] == "initfree") & (rows["min_obs"] == 3) & (rows["init"] != "truth")]
    every = every[every["set"].isin(set(grid["set"])) | every["set"].str.endswith("-jitter")]
    found = []
    for name in sorted(every.loc[every["nullity"].notna(), "set"].unique()):
        part = every[every["set"] == name]
        rates = {u: failure_rate(part[part["upgrade"] == u]) for u in (PAPER_UPGRADE, "selected", "linear", "calibrated")}
        found.append({"set": name, "nullity": float(part["nullity"].median()), **rates})
    numbers = (
        Column("nullity", "Null space", decimals=0),
        *(
            Column(u, display(u), "Failed %", better=-1, decimals=1)
            for u in (PAPER_UPGRADE, "selected", "linear", "calibrated")
        ),
    )
    frame = pd.DataFrame(found, columns=["set", *(c.key for c in numbers)])
    note = (
        "Dimension of the null space of the linear upgrade's equations at the true cameras: 1 where they tell the plane at "
        "infinity and the focal lengths; with 2 rounding decides. Failed runs after each upgrade of the same reconstructions"
    )
    return Table("nullity", "Where the linear upgrade is degenerate", ("set",), numbers, frame, note, ranked=0)


def sound_sets_table(rows: pd.DataFrame) -> Table:
    """Rotation AUC@20 by formulation: all sets, and only those where the upgrade is not degenerate."""
    grid = paper_grid(rows)
    sound = grid[~(grid["nullity"] > 1)]
    if len(sound) in (0, len(grid)):
        return Table("sound-sets", "Without degenerate sets", ("formulation",), (), pd.DataFrame(columns=["formulation"]))
    metrics = ("rotation_auc20", "translation_auc20", "landmark_rmse")
    halves = [
        average(part, "formulation", metrics).set_index("formulation").add_suffix(f"/{which}")
        for which, part in (("all sets", grid), ("not degenerate", sound))
    ]
    keys = [f"{m}/{which}" for m in metrics for which in ("all sets", "not degenerate")]
    frame = pd.concat(halves, axis=1).reindex(columns=keys).rename_axis("formulation").reset_index()
    title = "By formulation, with and without the sets where the linear upgrade is degenerate"
    return Table("sound-sets", title, ("formulation",), columns(*keys), frame, f"Not degenerate: {about(sound)}")
