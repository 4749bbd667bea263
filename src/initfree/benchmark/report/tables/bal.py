"""Failure and recovery on BAL: how many runs recovered, and one row a run with the residuals that tell them apart."""

import pandas as pd

from initfree.benchmark.jobs import TRUTH
from initfree.benchmark.report.names import PAPER_UPGRADE, display, in_order
from initfree.benchmark.report.selection import failure_rate, is_bal
from initfree.benchmark.report.table import Column, Table, columns


def bal_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """After the paper's upgrade, exact linear solves, and whole methods; every run once."""
    chosen = rows[is_bal(rows) & rows["linear_solver"].isin(("", "exact"))]
    return chosen[(chosen["upgrade"] == PAPER_UPGRADE) | (chosen["method"] != "initfree")]


def bal_pipeline(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's pipeline on BAL, any start but the truth."""
    chosen = bal_rows(rows)
    return chosen[(chosen["method"] == "initfree") & (chosen["init"] != TRUTH)]


def frame_free(rows: pd.DataFrame) -> pd.DataFrame:
    """BAL after the linear upgrade that does not depend on the projective frame, in the place of the paper's."""
    others = rows[is_bal(rows) & (rows["upgrade"] != PAPER_UPGRADE)]
    return others.replace({"upgrade": {"linear": PAPER_UPGRADE}})


def bal_summary_table(rows: pd.DataFrame) -> Table:
    """Percent of runs that recovered, by start and loss; the pipeline as a whole and whole methods below the line."""
    stages, whole = bal_pipeline(rows), bal_rows(rows)
    whole = whole[whole["method"] != "initfree"]
    parts = {
        (init, loss): part
        for init in in_order(stages["init"])
        for loss in in_order(stages["loss"])
        if len(part := stages[(stages["init"] == init) & (stages["loss"] == loss)])
    }
    ranked = len(parts)
    links = [{"init": init, "loss": loss, "upgrade": PAPER_UPGRADE} for init, loss in parts]
    if ranked:
        parts["initfree", "all"] = stages
    parts |= {(name, ""): whole[whole["method"] == name] for name in in_order(whole["method"])}
    links += [{"method": method} for method, _ in list(parts)[ranked:]]
    everything = pd.concat([stages, whole])
    densities = sorted(everything["min_obs"].unique())
    sets = sorted(everything["set"].unique())
    groups = {**({"All sets": sets} if len(sets) > 1 else {}), **{name: [name] for name in sets}}
    found = [
        {"init": init, "loss": loss, "runs": len(part)}
        | {f"{group}/{least:g}": _recovered(part, names, least) for group, names in groups.items() for least in densities}
        for (init, loss), part in parts.items()
    ]
    numbers = (
        *(
            Column(f"{group}/{least:g}", f"≥ {least:g} obs.", group, better=1, decimals=0)
            for group in groups
            for least in densities
        ),
        Column("runs", "Runs", decimals=0),
    )
    frame = pd.DataFrame(found, columns=["init", "loss", *(c.key for c in numbers)])
    formulations = ", ".join(display(name) for name in in_order(stages["formulation"]))
    averaged = f", over {formulations}" if formulations else ""
    note = (
        "By the least number of observations a landmark has. Starts and losses: the paper's pipeline after its linear "
        f"upgrade{averaged}"
    )
    title = "Recovered on BAL, percent of runs"
    return Table("bal-summary", title, ("init", "loss"), numbers, frame, note, "", tuple(links), ranked)


def _recovered(rows: pd.DataFrame, sets: list[str], min_obs: float) -> float:
    return 100.0 - failure_rate(rows[rows["set"].isin(sets) & (rows["min_obs"] == min_obs)])


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
    return Table("bal", "Every run on BAL", keys, numbers, frame, note, "", links, ranked=0, folded=True)


def run_name(row: pd.Series) -> str:
    """A run in words: pOSE, unit circle, Cauchy; or the method, which has no such parts."""
    parts = [display(row[key]) for key in ("formulation", "init", "loss") if row[key]]
    return ", ".join(parts) or display(row["method"])
