"""Why the paper's pipeline fails: which share of its failures which stage is to blame for.

A failure is a run of the paper's pipeline (a random or unit-circle start, the upgrade linear1997) that fails by the paper's
definition. Its cause is the first of these that holds:

linear upgrade   another metric upgrade of the very same projective reconstruction succeeds
camera order     unit circle only: it succeeds in another order of the cameras, that of the trajectory or the spectral one
surrogate        stage 1 fails even when it starts at the true cameras: the optimum near the truth is no reconstruction
local minimum    none of these: from the truth it works, from this start it does not

To succeed, from the second cause on, is to succeed with any upgrade: the upgrade has had its turn.
"""

import pandas as pd

from initfree.benchmark.jobs import ADJUSTED, PIPELINE, TRUTH
from initfree.benchmark.rows import Frame

LINEAR = "linear1997"
CAUSES = ("linear upgrade", "camera order", "surrogate", "local minimum")
UNKNOWN = "not studied"
"""the sweep has no run from the truth to tell surrogate from local minimum"""
STARTS = ("normal", "uniform", "unit-circle", "unit-circle-shuffled")
ORDERS = ("unit-circle", "unit-circle-spectral")
_NUMBERS = ["seed", "min_obs", "noise", "outliers", "merged", "k1", "alpha", "beta"]
_RUN = ["set", *_NUMBERS, "formulation", "rotations", "loss", "intrinsics", "linear_solver"]
"""a run but for its start"""


def causes(rows: Frame) -> Frame:
    """The failed runs of the paper's pipeline, each with its `cause`. Runs that raised are left out: they did not run."""
    rows = rows[(rows["method"] == PIPELINE) & (rows["error"] == "") & (rows["upgrade"] != ADJUSTED)]
    # What is not given is not a number, which is equal to nothing.
    rows = rows.assign(**{name: rows[name].fillna(0.0) for name in _NUMBERS if name in rows})
    rows = rows.reindex(columns=[*rows.columns, *(name for name in _RUN if name not in rows)], fill_value=0.0)
    failures = rows[rows["init"].isin(STARTS) & (rows["upgrade"] == LINEAR) & rows["failed"]]
    # A projective reconstruction is good if any upgrade, read as "before" it included, makes a good one of it.
    good = ~rows.groupby([*_RUN, "init"])["failed"].all()
    lookup = good.to_dict()

    def cause(run: tuple) -> str:
        *condition, init = run
        if lookup[run]:
            return CAUSES[0]
        if init.startswith("unit-circle") and any(lookup.get((*condition, order), False) for order in ORDERS):
            return CAUSES[1]
        from_truth = lookup.get((*condition, TRUTH))
        if from_truth is None:
            return UNKNOWN
        return CAUSES[3] if from_truth else CAUSES[2]

    runs = list(failures[[*_RUN, "init"]].itertuples(index=False, name=None))
    return failures.assign(cause=[cause(run) for run in runs])


def attribution(rows: Frame, by: str = "init") -> Frame:
    """Failures and their causes in percent of them, a line for each value of the column `by` and one for all.

    Columns: `by`, runs, failures, failed % (of the runs), then one column a cause.
    """
    mine = (rows["method"] == PIPELINE) & rows["init"].isin(STARTS) & (rows["upgrade"] == LINEAR) & (rows["error"] == "")
    runs, found = rows[mine], causes(rows)
    names = [*CAUSES, *([UNKNOWN] if (found["cause"] == UNKNOWN).any() else [])]

    def line(label: str, of: Frame, failed: Frame) -> dict[str, object]:
        shares = {name: 100.0 * (failed["cause"] == name).mean() if len(failed) else float("nan") for name in names}
        rate = 100.0 * len(failed) / len(of) if len(of) else float("nan")
        return {by: label, "runs": len(of), "failures": len(failed), "failed %": rate, **shares}

    lines = [line(str(value), part, found[found[by] == value]) for value, part in runs.groupby(by, sort=True)]
    return pd.DataFrame([*lines, line("all", runs, found)])
