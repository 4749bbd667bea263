"""Questions to the rows of a sweep that answer the claims of the paper's text (`claims`).

Claims about one set are about the loss "none", because the paper's own tables of rescues show the same cells with Cauchy.
A figure is the mean over seeds of the rotation AUC@20; the paper has one run in its place.
"""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from initfree.benchmark.report.failure import roc_auc
from initfree.benchmark.report.lessons import SEPARATES, Answer, unknown
from initfree.benchmark.report.names import PAPER_INITS, display
from initfree.benchmark.report.selection import average, controlled, failure_rate, is_bal, paper_grid, pipeline
from initfree.benchmark.report.tables.bal import bal_pipeline
from initfree.benchmark.report.tables.densification import densification_pairs
from initfree.benchmark.report.tables.gap import gap_table
from initfree.benchmark.report.tables.rescue import RESCUED, loss_pairs

PURE = ("pose", "rose", "rpose", "expose")
"""formulations that use no relative rotations"""
PROJECTIVE = ("pose", "rose", "expose")
RANDOM = ("normal", "uniform")
SOLVED, FAILED = 90.0, 20.0
_FEWEST = 12
"""runs that a rate or a ROC area is taken of"""
A20 = "rotation_auc20"
Ask = Callable[[pd.DataFrame, str], Answer]


def _cells(rows: pd.DataFrame, upgrade: str, name: str, formulations: Iterable[str], inits: Iterable[str]) -> pd.Series:
    """Mean rotation AUC@20 over seeds, by formulation and start, of one set without a loss."""
    grid = pipeline(rows, upgrade=upgrade)
    grid = grid[(grid["set"] == name) & (grid["loss"] == "none")]
    grid = grid[grid["formulation"].isin(list(formulations)) & grid["init"].isin(list(inits))]
    return grid.assign(**{A20: grid[A20].fillna(0.0)}).groupby(["formulation", "init"])[A20].mean()


def on_set(name: str, formulations: tuple[str, ...], inits: tuple[str, ...], rule: Callable[[pd.Series], bool]) -> Ask:
    """A claim about cells of one set's table."""

    def ask(rows: pd.DataFrame, upgrade: str) -> Answer:
        cells = _cells(rows, upgrade, name, formulations, inits)
        missing = [f for f in formulations if f not in cells.index.get_level_values(0)]
        if missing or cells.empty:
            return unknown(f"{', '.join(display(f) for f in missing) or 'runs'} on {display(name)}")
        values = {_cell(str(f), str(i), len(inits)): float(v) for (f, i), v in zip(cells.index, cells, strict=True)}
        return Answer(bool(rule(cells)), _listed(values), values)

    return ask


def _cell(formulation: str, init: str, inits: int) -> str:
    return display(formulation) if inits == 1 else f"{display(formulation)} {display(init).lower()}"


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in values.items())


def best_unconstrained(rows: pd.DataFrame, upgrade: str) -> Answer:
    """Among formulations without rotations, expOSE has the best rotation and rOSE the best translation."""
    means = average(paper_grid(rows, upgrade=upgrade), "formulation", [A20, "translation_auc20"]).set_index("formulation")
    means = means[means.index.isin(PURE)]
    if len(means) < len(PURE):
        return unknown("all four formulations without rotations")
    values = {f"{display(f)}": float(v) for f, v in means[A20].items()}
    first = means[A20].idxmax(), means["translation_auc20"].idxmax()
    text = f"rotation {_listed(values)}; best translation {display(first[1])} {means['translation_auc20'].max():.1f}"
    return Answer(first == ("expose", "rose"), text, values)


def best_structure(rows: pd.DataFrame, upgrade: str) -> Answer:
    """expOSE and rOSE have the two lowest landmark RMSEs among formulations without rotations."""
    means = average(paper_grid(rows, upgrade=upgrade), "formulation", ["landmark_rmse"]).set_index("formulation")
    values = means.loc[means.index.isin(PURE), "landmark_rmse"]
    if len(values) < len(PURE):
        return unknown("all four formulations without rotations")
    shown = {display(f): float(v) for f, v in values.items()}
    return Answer(set(values.nsmallest(2).index) == {"expose", "rose"}, f"landmark RMSE {_listed(shown)}", shown)


def rpose_weakest(rows: pd.DataFrame, upgrade: str) -> Answer:
    """RpOSE has the lowest rotation AUC@20."""
    means = average(paper_grid(rows, upgrade=upgrade), "formulation", [A20]).set_index("formulation")[A20]
    if "rpose" not in means.index or len(means) < 3:
        return unknown("RpOSE beside other formulations")
    values = {display(f): float(v) for f, v in means.items()}
    return Answer(bool(means.idxmin() == "rpose"), _listed(values), values)


def none_everywhere(rows: pd.DataFrame, upgrade: str) -> Answer:
    """Every formulation fails somewhere."""
    grid = paper_grid(rows, upgrade=upgrade)
    if grid["formulation"].nunique() < 2:
        return unknown("several formulations")
    rates = {display(f): failure_rate(part) for f, part in grid.groupby("formulation")}
    return Answer(min(rates.values()) > 0.0, "percent failed: " + _listed(rates), rates)


def case_rescued(formulation: str, init: str) -> Ask:
    """A case of the paper's table of rescues: Set 2, failed without Cauchy and not with it, in one seed or more.

    The paper shows one run, and which of the hard ones end well is chance.
    """

    def ask(rows: pd.DataFrame, upgrade: str) -> Answer:
        pairs = loss_pairs(pipeline(rows, upgrade=upgrade))
        pairs = pairs[(pairs["set"] == "set2") & (pairs["formulation"] == formulation) & (pairs["init"] == init)]
        if pairs.empty:
            return unknown("this case with and without Cauchy")
        values = {loss: float(pairs[f"{A20}/{loss}"].fillna(0.0).mean()) for loss in ("none", "cauchy")}
        rescued, failed = int((pairs["outcome"] == RESCUED).sum()), int(pairs["failed/none"].astype(bool).sum())
        if not failed:
            return unknown(f"a run that fails without Cauchy; all {len(pairs)} succeed")
        text = f"{rescued} of {failed} failed seeds rescued; none {values['none']:.1f}, Cauchy {values['cauchy']:.1f}"
        return Answer(rescued > 0, text, values)

    return ask


def densification_helps(rows: pd.DataFrame, upgrade: str) -> Answer:
    """Six observations a landmark instead of three raise the rotation AUC@20, without and with Cauchy."""
    pairs = densification_pairs(rows, upgrade)
    means = average(pairs, "loss", [A20]).set_index("loss")[A20]
    if not {"none", "cauchy"} <= set(means.index):
        return unknown("runs with 3 and with 6 observations a landmark")
    values = {str(loss): float(v) for loss, v in means.items()}
    return Answer(min(values.values()) > 0.0, ", ".join(f"{k} {v:+.1f}" for k, v in values.items()), values)


def upgrade_necessary(rows: pd.DataFrame, upgrade: str) -> Answer:
    """The upgrade raises rotation and translation AUC@20 and lowers the landmark RMSE against none."""
    metrics = [A20, "translation_auc20", "landmark_rmse"]
    means = {}
    for name in ("before", upgrade):
        grid = paper_grid(rows, upgrade=name)
        if grid.empty:
            return unknown("rows before and after the upgrade")
        means[name] = average(grid.assign(all="all"), "all", metrics).iloc[0]
    change = {m: float(means[upgrade][m] - means["before"][m]) for m in metrics}
    values = {"rotation": change[A20], "translation": change["translation_auc20"], "RMSE": change["landmark_rmse"]}
    good = change[A20] > 0.0 and change["translation_auc20"] > 0.0 and change["landmark_rmse"] < 0.0
    before = f"before: {means['before'][A20]:.1f} / {means['before']['translation_auc20']:.1f}"
    return Answer(good, ", ".join(f"{k} {v:+.1f}" for k, v in values.items()) + f" ({before})", values)


def low_ose_is_no_certificate(rows: pd.DataFrame, upgrade: str) -> Answer:
    """Of the third of the runs of each formulation with the lowest OSE residual, one in ten or more fails."""
    grid = paper_grid(rows, min_obs=None, upgrade=upgrade)
    grid = grid[np.isfinite(grid["ose_residual"])]
    if len(grid) < 9:
        return unknown("enough runs with an OSE residual")
    low = grid[grid["ose_residual"] <= grid.groupby("formulation")["ose_residual"].transform(lambda r: r.quantile(1 / 3))]
    share = 100.0 * float(low["failed"].astype(float).mean())
    return Answer(share >= 10.0, f"{share:.1f}% of {len(low)} runs fail", {"failed": share})


def same_ose_opposite_outcome(rows: pd.DataFrame, upgrade: str) -> Answer:
    """Two runs of one set and formulation have OSE residuals within 5% of one another, one good and one failed."""
    found = gap_table(rows, upgrade).frame
    if found.empty:
        return unknown("good and failed runs of one set and formulation")
    ratio = np.abs(np.log(found["ose/good"].to_numpy(float) / found["ose/bad"].to_numpy(float)))
    pairs = int(np.count_nonzero(ratio <= np.log(1.05)))
    return Answer(pairs > 0, f"{pairs} of {len(found)} sets and formulations with both outcomes", {"pairs": float(pairs)})


def estimated_as_good(rows: pd.DataFrame, upgrade: str) -> Answer:
    """pOSE+rot with estimated rotations loses at most two points of rotation AUC@20 against true ones, of the same pairs
    where there are such runs."""
    chosen = controlled(rows)
    chosen = chosen[(chosen["formulation"] == "pose-rot") & (chosen["upgrade"] == upgrade) & (chosen["min_obs"] == 3)]
    chosen = chosen[chosen["init"].isin(PAPER_INITS)]
    means = average(chosen, "rotations", [A20]).set_index("rotations")[A20]
    true = "truth-as-estimated" if "truth-as-estimated" in means.index else "truth"
    if not {true, "estimated"} <= set(means.index):
        return unknown("true and estimated rotations")
    values = {"true": float(means[true]), "estimated": float(means["estimated"])}
    return Answer(values["true"] - values["estimated"] <= 2.0, _listed(values), values)


def affine_better(rows: pd.DataFrame, upgrade: str) -> Answer:
    """pOSE+rot with pOSE's affine regulariser has the higher rotation AUC@20 than with its own, same pairs and starts."""
    names = ("pose-rot", "pose-rot-published")
    chosen = rows[rows["formulation"].isin(names) & (rows["upgrade"] == upgrade) & (rows["init"] != "truth")]
    case = ["set", "seed", "init", "loss", "rotations", "alpha", "beta", "min_obs"]
    wide = chosen.assign(**{A20: chosen[A20].fillna(0.0)}).pivot_table(A20, case, "formulation").dropna()
    if wide.empty or len(wide.columns) < 2:
        return unknown("both regularisers on the same runs")
    by_set = wide.groupby("set")[list(names)].mean().mean()
    values = {"affine": float(by_set[names[0]]), "published": float(by_set[names[1]])}
    return Answer(values["affine"] > values["published"], _listed(values), values)


def rpose_slowest(rows: pd.DataFrame, upgrade: str) -> Answer:
    """RpOSE has the longest median time before the refinement."""
    grid = paper_grid(rows, upgrade=upgrade)
    medians = grid.groupby("formulation")["seconds_ose"].median().dropna()
    if "rpose" not in medians.index or len(medians) < 3:
        return unknown("RpOSE beside other formulations")
    values = {display(f): float(v) for f, v in medians.items()}
    text = ", ".join(f"{name} {value:.2f} s" for name, value in values.items())
    return Answer(bool(medians.idxmax() == "rpose"), text, values)


def classical_collapses(rows: pd.DataFrame, upgrade: str) -> Answer:
    """Bundle adjustment of the reprojection error from random cameras fails."""
    chosen = rows[(rows["method"] == "classical") & ~is_bal(rows)]
    if chosen.empty:
        return unknown("classical bundle adjustment")
    share = failure_rate(chosen)
    third = chosen[chosen["set"] == "set3"]
    text = f"{share:.0f}% of {len(chosen)} runs fail" + (f", {failure_rate(third):.0f}% on Set 3" if len(third) else "")
    return Answer(share >= 90.0, text, {"failed": share})


def bal_separates(rows: pd.DataFrame, upgrade: str) -> Answer:
    """On BAL the refinement residual separates success from failure and the OSE residual does not."""
    stages = bal_pipeline(rows)
    ose, refinement = roc_auc(stages, "ose_residual"), roc_auc(stages, "refine_residual")
    if len(stages) < _FEWEST or np.isnan(ose) or np.isnan(refinement):
        return unknown(f"at least {_FEWEST} runs on BAL, failed and recovered ones")
    values = {"refinement": refinement, "OSE": ose}
    return Answer(refinement >= SEPARATES > ose, f"ROC AUC {refinement:.3f} refinement, {ose:.3f} OSE", values)
