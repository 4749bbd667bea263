"""What the stages do and cost: the metric upgrade, the runtime, the source of the rotations."""

import pandas as pd

from initfree.benchmark.report.names import PAPER_UPGRADE, POSE, UPGRADES, VIEWED
from initfree.benchmark.report.selection import about, average, controlled, paper_grid
from initfree.benchmark.report.table import Table, columns

_SECONDS = {
    "pre_stage_2": "seconds_ose",
    "stage_2": "seconds_refine",
    "upgrade_seconds": "seconds_upgrade",
    "wall_clock": "seconds_total",
}


def upgrade_table(rows: pd.DataFrame) -> Table:
    """Effect of the metric upgrade: the same projective solutions before it and after each variant."""
    metrics = ("rotation_auc20", "translation_auc20", "landmark_rmse")
    grid = paper_grid(rows, upgrade=None)
    # Only jobs that every upgrade was tried on, so that the rows compare like with like.
    tried = grid.groupby("job")["upgrade"].nunique()
    grid = grid[grid["job"].isin(tried[tried == grid["upgrade"].nunique()].index)]
    grid = grid.assign(failure_rate=100.0 * grid["failed"].astype(float))
    frame = average(grid, "upgrade", (*metrics, "failure_rate"), order=False).set_index("upgrade")
    frame = frame.reindex([u for u in UPGRADES if u in frame.index])
    present = len(frame)
    if {"before", PAPER_UPGRADE} <= set(frame.index):
        frame.loc["mean change"] = frame.loc[PAPER_UPGRADE] - frame.loc["before"]
    note = f"{grid['job'].nunique()} projective solutions; every row is about the same ones ({about(grid)}). "
    note += f"Mean change: {PAPER_UPGRADE} against before"
    title = "Effect of the metric upgrade"
    keys = columns(*metrics, "failure_rate")
    links = tuple({"upgrade": str(u)} if u in VIEWED else {} for u in frame.index)
    frame = frame.reset_index()
    return Table("upgrade", title, ("upgrade",), keys, frame, note, "tab:metric_upgrade_effect", links, present)


def runtime_table(rows: pd.DataFrame) -> Table:
    """Median seconds by formulation, one figure a job; pre-stage-2 is everything before the refinement."""
    grid = paper_grid(rows, upgrade=None).drop_duplicates("job")
    timed = grid.assign(**{name: grid[source] for name, source in _SECONDS.items()})
    timed["solver_total"] = timed["pre_stage_2"] + timed["stage_2"]
    shown = ("pre_stage_2", "stage_2", "solver_total", "upgrade_seconds", "wall_clock")
    medians = timed.groupby("formulation")[list(shown)].median()
    order = average(grid, "formulation", ["rotation_auc20"])["formulation"] if len(grid) else []
    frame = medians.reindex(list(order)).rename_axis("formulation").reset_index()
    note = "Medians, seconds, one thread a run; the paper's machine is another, so only the proportions compare"
    label = "tab:appendix_runtime_decomposition"
    title = "Median runtime decomposition (s)"
    return Table("runtime", title, ("formulation",), columns(*shown, decimals=3), frame, note, label)


def rotations_table(rows: pd.DataFrame) -> Table:
    """pOSE+rot with true and with estimated relative rotations."""
    metrics = (*POSE, "landmark_rmse", "wall_clock")
    chosen = controlled(rows)
    chosen = chosen[(chosen["method"] == "initfree") & (chosen["rotations"] != "") & (chosen["upgrade"] == PAPER_UPGRADE)]
    chosen = chosen[(chosen["min_obs"] == 3) & (chosen["init"] != "truth")].assign(wall_clock=chosen["seconds_total"])
    frame = average(chosen, "rotations", metrics)
    title = "pOSE+rot with true and estimated relative rotations"
    label = "tab:appendix_poserot_gt_vs_estimated"
    table = Table("rotations", title, ("rotations",), columns(*metrics), frame, about(chosen), label)
    return table.with_links("rotations", formulation="pose-rot")
