"""Why the paper's pipeline fails: which share of its failures which stage is to blame for.

A failure is a run of the paper's pipeline (a random or unit-circle start, the upgrade linear1997) that fails by the paper's
definition. Its cause is the first of these that holds:

linear upgrade   another metric upgrade of the very same projective reconstruction succeeds
inexact solver   with exact linear steps in place of the power series (or conjugate gradients) the same run succeeds
camera order     unit circle only: it succeeds in another order of the cameras, that of the trajectory or the spectral one
surrogate        stage 1 fails even when it starts at the true cameras: the optimum near the truth is no reconstruction
local minimum    none of these: from the truth it works, from this start it does not

To succeed, from the second cause on, is to succeed with any upgrade: the upgrade has had its turn. The paper solves its
linear systems by a power series: where a sweep has runs of both kinds, the failures are those of the runs with the series
whose exact counterpart is there too; else those of the runs with exact steps.
"""

import pandas as pd

from initfree.benchmark.jobs import ADJUSTED, PIPELINE, TRUTH
from initfree.benchmark.rows import Frame

LINEAR = "linear1997"
CAUSES = ("linear upgrade", "inexact solver", "camera order", "surrogate", "local minimum")
EXACT, SERIES = "exact", "power"
UNKNOWN = "not studied"
"""the sweep has no run from the truth, which separates surrogate and local minimum"""
STARTS = ("normal", "uniform", "unit-circle", "unit-circle-shuffled")
ORDERS = ("unit-circle", "unit-circle-spectral")
_NUMBERS = ["seed", "min_obs", "noise", "outliers", "merged", "k1", "alpha", "beta"]
_RUN = ["set", *_NUMBERS, "formulation", "rotations", "loss", "intrinsics", "linear_solver"]
"""a run but for its start; its linear solver last"""


def causes(rows: Frame) -> Frame:
    """The failed runs of the paper's pipeline, each with its `cause`. Runs that raised are left out: they did not run."""
    rows = _comparable(rows)
    failures = _studied(rows)
    failures = failures[failures["failed"]]
    # A projective reconstruction is good if any upgrade, read as "before" it included, makes a good one of it.
    good = ~rows.groupby([*_RUN, "init"])["failed"].all()
    lookup = good.to_dict()

    def cause(run: tuple) -> str:
        *condition, solver, init = run
        if lookup[run]:
            return CAUSES[0]
        if solver != EXACT and lookup.get((*condition, EXACT, init), False):
            return CAUSES[1]
        if init.startswith("unit-circle") and any(lookup.get((*condition, solver, order), False) for order in ORDERS):
            return CAUSES[2]
        from_truth = lookup.get((*condition, solver, TRUTH))
        if from_truth is None:
            return UNKNOWN
        return CAUSES[4] if from_truth else CAUSES[3]

    runs = list(failures[[*_RUN, "init"]].itertuples(index=False, name=None))
    return failures.assign(cause=[cause(run) for run in runs])


def _comparable(rows: Frame) -> Frame:
    """Rows of the pipeline that ran, with every column by which runs differ."""
    rows = rows[(rows["method"] == PIPELINE) & (rows["error"] == "") & (rows["upgrade"] != ADJUSTED)]
    # What is not given is not a number, which is equal to nothing.
    rows = rows.assign(**{name: rows[name].fillna(0.0) for name in _NUMBERS if name in rows})
    solver = rows["linear_solver"].replace("", EXACT) if "linear_solver" in rows else EXACT
    rows = rows.assign(linear_solver=solver)
    return rows.reindex(columns=[*rows.columns, *(name for name in _RUN if name not in rows)], fill_value=0.0)


def _studied(rows: Frame) -> Frame:
    """The runs of the paper's pipeline among comparable rows, after its upgrade: see the top of this file."""
    runs = rows[rows["init"].isin(STARTS) & (rows["upgrade"] == LINEAR)]
    exact, series = (runs[runs["linear_solver"] == name] for name in (EXACT, SERIES))
    same = [*(name for name in _RUN if name != "linear_solver"), "init"]
    both = series.merge(exact[same].drop_duplicates(), on=same)
    return both if len(both) else exact


def attribution(rows: Frame, by: str = "init") -> Frame:
    """Failures and their causes in percent of them, a line for each value of the column `by` and one for all.

    Columns: `by`, runs, failures, failed % (of the runs), then one column a cause.
    """
    runs, found = _studied(_comparable(rows)), causes(rows)
    names = [*CAUSES, *([UNKNOWN] if (found["cause"] == UNKNOWN).any() else [])]

    def line(label: str, of: Frame, failed: Frame) -> dict[str, object]:
        shares = {name: 100.0 * (failed["cause"] == name).mean() if len(failed) else float("nan") for name in names}
        rate = 100.0 * len(failed) / len(of) if len(of) else float("nan")
        return {by: label, "runs": len(of), "failures": len(failed), "failed %": rate, **shares}

    lines = [line(str(value), part, found[found[by] == value]) for value, part in runs.groupby(by, sort=True)]
    return pd.DataFrame([*lines, line("all", runs, found)])
