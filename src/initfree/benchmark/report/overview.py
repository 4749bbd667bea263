"""The first thing a reader sees: how much ran, how much failed, what holds."""

from dataclasses import dataclass

import pandas as pd

from initfree.benchmark.report.checks import Check
from initfree.benchmark.report.names import AUCS, METHODS, PAPER_UPGRADE, display
from initfree.benchmark.report.selection import average, count, failure_rate, paper_grid, whole_methods
from initfree.benchmark.report.tables.bal import bal_pipeline, bal_rows


@dataclass(frozen=True)
class Card:
    """A figure of the summary, with what it is about and where it comes from."""

    title: str
    value: str
    detail: str


def cards(rows: pd.DataFrame, checks: list[Check], wanted: int | None = None) -> list[Card]:
    """Only what the rows have: a sweep without `auto` has no card about it. `wanted` is the number of runs of the sweep."""
    found = [_size(rows, wanted), _failures(rows), _best(rows), _upgrades(rows), _auto(rows), *_bal(rows), _lessons(checks)]
    return [card for card in found if card is not None]


def _size(rows: pd.DataFrame, wanted: int | None) -> Card:
    jobs = rows["job"].nunique()
    errors = rows.loc[rows["error"] != "", "job"].nunique()
    # The projective stages are in every row of a job, and ran once; `selected` chooses between two other rows.
    seconds = (rows["seconds_total"] - rows["seconds_upgrade"].where(rows["upgrade"] == "selected").fillna(0.0)).sum()
    shared = rows["seconds_ose"].fillna(0.0) + rows["seconds_refine"].fillna(0.0)
    seconds -= shared[rows.duplicated("job")].sum()
    cpu = f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"
    parts = [count(rows["set"].nunique(), "set"), count(errors, "error"), f"{cpu} of solving"]
    if wanted is not None and jobs < wanted:
        parts = [f"of {wanted:,}: the sweep is not complete", *parts]
    return Card("Runs", f"{jobs:,}", "; ".join(parts))


def _failures(rows: pd.DataFrame) -> Card | None:
    grid = paper_grid(rows)
    if grid.empty:
        return None
    return Card(
        "Failed, the paper's protocol", f"{failure_rate(grid):.0f}%", f"of {len(grid)} runs, {PAPER_UPGRADE} upgrade"
    )


def _best(rows: pd.DataFrame) -> Card | None:
    grid = paper_grid(rows)
    if grid.empty:
        return None
    means = average(grid, "formulation", ["rotation_auc20"]).set_index("formulation")["rotation_auc20"]
    return Card("Best formulation", display(means.idxmax()), f"mean rotation AUC@20 {means.max():.1f}")


def _upgrades(rows: pd.DataFrame) -> Card | None:
    """How much of the paper's failures another upgrade of the same projective solution undoes."""
    rates = {u: failure_rate(paper_grid(rows, upgrade=u)) for u in ("linear", "calibrated", "selected", "adjusted")}
    rates = {u: rate for u, rate in rates.items() if rate == rate}
    if not rates:
        return None
    best = min(rates, key=lambda u: rates[u])
    return Card("Failed, best upgrade", f"{rates[best]:.0f}%", f"same projective solutions, {best} upgrade")


def _auto(rows: pd.DataFrame) -> Card | None:
    auto = whole_methods(rows)
    auto = auto[auto["method"] == "auto"]
    if auto.empty:
        return None
    scores = auto[list(AUCS)].fillna(0.0)["rotation_auc20"].mean()
    return Card(
        f"Failed, {METHODS['auto']}", f"{failure_rate(auto):.0f}%", f"of {len(auto)} runs; rotation AUC@20 {scores:.1f}"
    )


def _bal(rows: pd.DataFrame) -> list[Card]:
    """How often real problems are recovered, by the paper's pipeline and by `auto`."""
    whole = bal_rows(rows)
    auto = whole[whole["method"] == "auto"]
    parts = {"the paper's protocol": (bal_pipeline(rows), f", {PAPER_UPGRADE} upgrade"), METHODS["auto"]: (auto, "")}
    return [
        Card(
            f"Recovered on BAL, {who}",
            f"{100.0 - failure_rate(part):.0f}%",
            f"of {count(len(part), 'run')} on {count(part['set'].nunique(), 'problem')}{more}",
        )
        for who, (part, more) in parts.items()
        if len(part)
    ]


def _lessons(checks: list[Check]) -> Card | None:
    answers = [{"reproduced": True, "not reproduced": False}.get(check.verdict) for check in checks]
    decided = [a for a in answers if a is not None]
    if not decided:
        return None
    return Card(
        "Claims reproduced",
        f"{sum(decided)} of {len(decided)}",
        f"{len(answers) - len(decided)} are undecided in this sweep",
    )
