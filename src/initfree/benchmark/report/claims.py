"""What the paper's text says beyond its lessons, sentence by sentence, as questions to the rows of a sweep.

Claims about one set are about the loss "none", because the paper's own tables of rescues show the same cells with Cauchy.
A figure is the mean over seeds of the rotation AUC@20; the paper has one run in its place.
"""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from initfree.benchmark.report.failure import roc_auc
from initfree.benchmark.report.lessons import SEPARATES, Answer, Lesson, unknown
from initfree.benchmark.report.names import PAPER_INITS, display
from initfree.benchmark.report.paper import paper_table
from initfree.benchmark.report.selection import average, controlled, failure_rate, is_bal, paper_grid, pipeline
from initfree.benchmark.report.tables.bal import bal_pipeline
from initfree.benchmark.report.tables.densification import densification_pairs
from initfree.benchmark.report.tables.gap import gap_table
from initfree.benchmark.report.tables.rescue import RESCUED, loss_pairs

PURE = ("pose", "rose", "rpose", "expose")
"""formulations that use no relative rotations"""
_PROJECTIVE = ("pose", "rose", "expose")
_RANDOM = ("normal", "uniform")
_SOLVED, _FAILED = 90.0, 20.0
_FEWEST = 12
"""runs that a rate or a ROC area is taken of"""
_A20 = "rotation_auc20"
Ask = Callable[[pd.DataFrame, str], Answer]


def _cells(rows: pd.DataFrame, upgrade: str, name: str, formulations: Iterable[str], inits: Iterable[str]) -> pd.Series:
    """Mean rotation AUC@20 over seeds, by formulation and start, of one set without a loss."""
    grid = pipeline(rows, upgrade=upgrade)
    grid = grid[(grid["set"] == name) & (grid["loss"] == "none")]
    grid = grid[grid["formulation"].isin(list(formulations)) & grid["init"].isin(list(inits))]
    return grid.assign(**{_A20: grid[_A20].fillna(0.0)}).groupby(["formulation", "init"])[_A20].mean()


def _on_set(name: str, formulations: tuple[str, ...], inits: tuple[str, ...], rule: Callable[[pd.Series], bool]) -> Ask:
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
    means = average(paper_grid(rows, upgrade=upgrade), "formulation", [_A20, "translation_auc20"]).set_index("formulation")
    means = means[means.index.isin(PURE)]
    if len(means) < len(PURE):
        return unknown("all four formulations without rotations")
    values = {f"{display(f)}": float(v) for f, v in means[_A20].items()}
    first = means[_A20].idxmax(), means["translation_auc20"].idxmax()
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
    means = average(paper_grid(rows, upgrade=upgrade), "formulation", [_A20]).set_index("formulation")[_A20]
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
    """A case of the paper's table of rescues: Set 2, failed without Cauchy and not with it."""

    def ask(rows: pd.DataFrame, upgrade: str) -> Answer:
        pairs = loss_pairs(pipeline(rows, upgrade=upgrade))
        pairs = pairs[(pairs["set"] == "set2") & (pairs["formulation"] == formulation) & (pairs["init"] == init)]
        if pairs.empty:
            return unknown("this case with and without Cauchy")
        values = {loss: float(pairs[f"{_A20}/{loss}"].fillna(0.0).mean()) for loss in ("none", "cauchy")}
        rescued = int((pairs["outcome"] == RESCUED).sum())
        text = f"{rescued} of {len(pairs)} seeds rescued; none {values['none']:.1f}, Cauchy {values['cauchy']:.1f}"
        return Answer(rescued > len(pairs) / 2, text, values)

    return ask


def densification_helps(rows: pd.DataFrame, upgrade: str) -> Answer:
    """Six observations a landmark instead of three raise the rotation AUC@20, without and with Cauchy."""
    pairs = densification_pairs(rows, upgrade)
    means = average(pairs, "loss", [_A20]).set_index("loss")[_A20]
    if not {"none", "cauchy"} <= set(means.index):
        return unknown("runs with 3 and with 6 observations a landmark")
    values = {str(loss): float(v) for loss, v in means.items()}
    return Answer(min(values.values()) > 0.0, ", ".join(f"{k} {v:+.1f}" for k, v in values.items()), values)


def upgrade_necessary(rows: pd.DataFrame, upgrade: str) -> Answer:
    """The upgrade raises rotation and translation AUC@20 and lowers the landmark RMSE against none."""
    metrics = [_A20, "translation_auc20", "landmark_rmse"]
    means = {}
    for name in ("before", upgrade):
        grid = paper_grid(rows, upgrade=name)
        if grid.empty:
            return unknown("rows before and after the upgrade")
        means[name] = average(grid.assign(all="all"), "all", metrics).iloc[0]
    change = {m: float(means[upgrade][m] - means["before"][m]) for m in metrics}
    values = {"rotation": change[_A20], "translation": change["translation_auc20"], "RMSE": change["landmark_rmse"]}
    good = change[_A20] > 0.0 and change["translation_auc20"] > 0.0 and change["landmark_rmse"] < 0.0
    before = f"before: {means['before'][_A20]:.1f} / {means['before']['translation_auc20']:.1f}"
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
    """pOSE+rot with estimated rotations is within two points of rotation AUC@20 of that with true ones, of the same pairs
    where there are such runs."""
    chosen = controlled(rows)
    chosen = chosen[(chosen["formulation"] == "pose-rot") & (chosen["upgrade"] == upgrade) & (chosen["min_obs"] == 3)]
    chosen = chosen[chosen["init"].isin(PAPER_INITS)]
    means = average(chosen, "rotations", [_A20]).set_index("rotations")[_A20]
    true = "truth-as-estimated" if "truth-as-estimated" in means.index else "truth"
    if not {true, "estimated"} <= set(means.index):
        return unknown("true and estimated rotations")
    values = {"true": float(means[true]), "estimated": float(means["estimated"])}
    return Answer(abs(values["true"] - values["estimated"]) <= 2.0, _listed(values), values)


def affine_better(rows: pd.DataFrame, upgrade: str) -> Answer:
    """pOSE+rot with pOSE's affine regulariser has the higher rotation AUC@20 than with its own, same pairs and starts."""
    names = ("pose-rot", "pose-rot-published")
    chosen = rows[rows["formulation"].isin(names) & (rows["upgrade"] == upgrade) & (rows["init"] != "truth")]
    case = ["set", "seed", "init", "loss", "rotations", "alpha", "beta", "min_obs"]
    wide = chosen.assign(**{_A20: chosen[_A20].fillna(0.0)}).pivot_table(_A20, case, "formulation").dropna()
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


def claims() -> list[Lesson]:
    """Every claim of the text that rows can answer, in the order of the paper."""
    pose = paper_table("tab:summary_formulations_pose_linear1997")
    rmse = paper_table("tab:summary_formulations_landmarks_linear1997")
    rescue = paper_table("tab:robust_rescue_cases_minobs3_linear1997")
    dense = paper_table("tab:summary_densification_delta")
    change = paper_table("tab:metric_upgrade_effect")
    rotated = paper_table("tab:appendix_poserot_gt_vs_estimated")
    runtime = paper_table("tab:appendix_runtime_decomposition")
    all_but_rpose = (*_PROJECTIVE, "pose-rot")

    def listed(column: str, names: Iterable[str], table=pose) -> str:
        return ", ".join(f"{display(n)} {table.value(column, n):.1f}" for n in names)

    found = [
        Lesson(
            "classical", "Classical bundle adjustment from random cameras collapses", "a picture of Set 3",
            "at least 90% of runs fail", classical_collapses, "Figure 2a",
        ),
        Lesson(
            "gap", "Similar OSE values lead to different reconstructions", "pictures of Sets 2 and 5",
            "runs of one set and formulation with OSE residuals within 5%, one good and one failed",
            same_ose_opposite_outcome, "Figure 3, abstract",
        ),
        Lesson(
            "low-ose", "A low OSE error does not ensure a valid reconstruction", "a figure without numbers",
            "at least 10% of the third of runs with the lowest OSE residual fail", low_ose_is_no_certificate, "Figure 4",
        ),
        Lesson(
            "unconstrained", "Without rotations, expOSE has the best rotation and rOSE the best translation",
            f"rotation {listed(_A20, PURE)}; translation rOSE {pose.value('translation_auc20', 'rose'):.1f}",
            "first in the mean of the sets", best_unconstrained, "Section V-C2",
        ),
        Lesson(
            "structure", "expOSE and rOSE have the best structure without rotations",
            f"landmark RMSE {listed('landmark_rmse', PURE, rmse)}", "the two lowest landmark RMSEs", best_structure,
            "Section V-C2",
        ),
        Lesson(
            "rpose-weakest", "RpOSE is the weakest formulation", listed(_A20, (*PURE, "pose-rot")),
            "the lowest rotation AUC@20", rpose_weakest, "Section V-C2",
        ),
        Lesson(
            "dense-sets-1", "Set 1 is solved by all but RpOSE from random cameras", "“converge reliably”",
            f"rotation AUC@20 of each at least {_SOLVED:g}",
            _on_set("set1", all_but_rpose, _RANDOM, lambda c: c.min() >= _SOLVED), "Section V-C2",
        ),
        Lesson(
            "dense-sets-3", "Set 3 is solved by all but RpOSE from random cameras", "“converge reliably”",
            f"rotation AUC@20 of each at least {_SOLVED:g}",
            _on_set("set3", all_but_rpose, _RANDOM, lambda c: c.min() >= _SOLVED), "Section V-C2",
        ),
        Lesson(
            "rpose-set-3", "RpOSE remains poor on Set 3", "13 to 50", "rotation AUC@20 at most 60 from every start",
            _on_set("set3", ("rpose",), PAPER_INITS, lambda c: c.max() <= 60.0), "Section V-C2",
        ),
        Lesson(
            "set-8-circle", "On Set 8 the unit circle works although the cameras move along a line", "96 to 99",
            f"rotation AUC@20 of pOSE, rOSE and RpOSE at least {_SOLVED:g}",
            _on_set("set8", ("pose", "rose", "rpose"), ("unit-circle",), lambda c: c.min() >= _SOLVED), "Section V-C3",
        ),
        Lesson(
            "set-2-random", "On Set 2 random starts collapse for pOSE, rOSE and expOSE", "at most 4",
            f"rotation AUC@20 of each below {_FAILED:g}, the paper's limit of failure",
            _on_set("set2", _PROJECTIVE, _RANDOM, lambda c: c.max() < _FAILED), "Section V-C3",
        ),
        Lesson(
            "set-2-circle", "On Set 2 the unit circle substantially rescues them", "44 to 81",
            "rotation AUC@20 of each at least 40",
            _on_set("set2", _PROJECTIVE, ("unit-circle",), lambda c: c.min() >= 40.0), "Section V-C3",
        ),
        Lesson(
            "set-2-rotations", "On Set 2 pOSE+rot remains strong under normal initialisation", "97.4",
            f"rotation AUC@20 at least {_SOLVED:g}",
            _on_set("set2", ("pose-rot",), ("normal",), lambda c: c.min() >= _SOLVED), "Section V-C3",
        ),
        Lesson(
            "set-4-circle", "On Set 4 the unit circle does not rescue pOSE, rOSE and expOSE", "below 10",
            f"rotation AUC@20 of each below {_FAILED:g}",
            _on_set("set4", _PROJECTIVE, ("unit-circle",), lambda c: c.max() < _FAILED), "Section V-C3",
        ),
        Lesson(
            "set-4-rotations", "On Set 4 pOSE+rot is near-perfect under all three starts", "“near-perfect”",
            f"rotation AUC@20 at least {_SOLVED:g}",
            _on_set("set4", ("pose-rot",), PAPER_INITS, lambda c: c.min() >= _SOLVED), "Section V-C3",
        ),
        Lesson(
            "set-6", "Set 6 resists every formulation and start", "at most 11", f"rotation AUC@20 of each below {_FAILED:g}",
            _on_set("set6", (*PURE, "pose-rot"), PAPER_INITS, lambda c: c.max() < _FAILED), "Section V-C3",
        ),
        *(
            Lesson(
                f"rescue-{name}", f"Cauchy rescues {display(name)} on Set 2, {display(init).lower()} start",
                f"none {rescue.value(f'{_A20}/none', 'set2', name, init):.1f}, "
                f"Cauchy {rescue.value(f'{_A20}/cauchy', 'set2', name, init):.1f}",
                "rescued in most seeds", case_rescued(name, init), "Table VI",
            )
            for name, init in (("pose", "normal"), ("rose", "normal"), ("pose-rot", "uniform"))
        ),
        Lesson(
            "denser", "Six observations a landmark instead of three help, with Cauchy more than without",
            f"none {dense.value(_A20, 'none'):+.1f}, Cauchy {dense.value(_A20, 'cauchy'):+.1f}",
            "the rotation AUC@20 rises with both losses", densification_helps, "Table VII",
        ),
        Lesson(
            "upgrade-needed", "The metric upgrade is necessary",
            f"rotation {change.value(_A20, 'mean change'):+.1f}, translation "
            f"{change.value('translation_auc20', 'mean change'):+.1f}, RMSE "
            f"{change.value('landmark_rmse', 'mean change'):+.1f} (before: {change.value(_A20, 'before'):.1f} / "
            f"{change.value('translation_auc20', 'before'):.1f})",
            "rotation and translation rise and the RMSE falls against the projective reconstruction read as metric",
            upgrade_necessary, "Table X",
        ),
        Lesson(
            "none-everywhere", "No method consistently succeeds", "in words", "every formulation fails somewhere",
            none_everywhere, "Conclusion",
        ),
        Lesson(
            "bal", "On BAL the refinement residual separates success from failure, the OSE residual does not",
            "a figure without numbers", f"ROC AUC of the refinement residual at least {SEPARATES:g}, of the OSE below",
            bal_separates, "Figure 11",
        ),
        Lesson(
            "estimated", "Estimated rotations are about as good as true ones",
            f"true {rotated.value(_A20, 'truth'):.1f}, estimated {rotated.value(_A20, 'estimated'):.1f}",
            "rotation AUC@20 within two points", estimated_as_good, "Appendix A, Table XII",
        ),
        Lesson(
            "affine", "pOSE+rot is significantly better with the affine regulariser than with its own", "in words",
            "the higher rotation AUC@20 on the same runs", affine_better, "Appendix A",
        ),
        Lesson(
            "rpose-slowest", "RpOSE takes longest before the refinement",
            ", ".join(f"{display(n)} {runtime.value('pre_stage_2', n):.1f} s" for n in (*PURE, "pose-rot")),
            "the longest median time", rpose_slowest, "Table XI",
        ),
    ]  # fmt: skip
    return found
