"""The lessons of the paper's discussion as questions to the rows of a sweep.

Each function answers for one selection of rows (an upgrade, an initialisation in the place of the unit circle), so that the
same question can be asked again with one thing changed: where the answer turns, that thing is why ours differ.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from initfree.benchmark.report.failure import roc_auc
from initfree.benchmark.report.names import display
from initfree.benchmark.report.paper import paper_table
from initfree.benchmark.report.selection import average, failure_rate, paper_grid
from initfree.benchmark.report.tables.densification import densification_pairs
from initfree.benchmark.report.tables.rescue import BROKEN, RESCUED, loss_pairs

SEPARATES = 0.9
"""ROC AUC from which on a residual is said to separate success from failure"""
_TIE = 0.05
"""what the paper's tables round away"""
_HEADLINE = ("rotation_auc20", "translation_auc20", "landmark_rmse")


@dataclass(frozen=True)
class Answer:
    """`holds` is None where the rows cannot tell."""

    holds: bool | None
    figure: str
    values: dict[str, float] = field(default_factory=dict)
    """the numbers of `figure`, by what they are about"""


@dataclass(frozen=True)
class Lesson:
    """`ask(rows, upgrade)`: rows of the whole sweep, and the upgrade after which to judge."""

    name: str
    claim: str
    paper: str
    rule: str
    """when we say that it holds"""
    ask: Callable[[pd.DataFrame, str], Answer]
    where: str = ""
    """place in the paper"""


def unknown(missing: str) -> Answer:
    """Of rows that lack what a question is about."""
    return Answer(None, f"not in this sweep: {missing}")


def rotations_strongest(rows: pd.DataFrame, upgrade: str) -> Answer:
    """pOSE+rot is first in rotation, translation and structure."""
    means = average(paper_grid(rows, upgrade=upgrade), "formulation", _HEADLINE).set_index("formulation")
    if "pose-rot" not in means.index or len(means) < 2:
        return unknown("pOSE+rot beside another formulation")
    ours, others = means.loc["pose-rot"], means.drop(index="pose-rot")
    first = (
        ours["rotation_auc20"] >= others["rotation_auc20"].max() - _TIE,
        ours["translation_auc20"] >= others["translation_auc20"].max() - _TIE,
        ours["landmark_rmse"] <= others["landmark_rmse"].min() + _TIE,
    )
    next_best = str(others["rotation_auc20"].idxmax())
    text = f"rotation AUC@20 {ours['rotation_auc20']:.1f}, next {display(next_best)} {others['rotation_auc20'].max():.1f}"
    values = {display(f): float(v) for f, v in means["rotation_auc20"].items()}
    return Answer(all(first), f"{text}; first in {sum(map(bool, first))} of 3 metrics", values)


def unit_circle_best(rows: pd.DataFrame, upgrade: str) -> Answer:
    """Of normal, uniform and unit circle the last has the best rotation AUC@20, translation AUC@20 and RMSE."""
    means = average(paper_grid(rows, upgrade=upgrade), "init", _HEADLINE).set_index("init")
    if "unit-circle" not in means.index or len(means) < 2:
        return unknown("the unit circle beside another initialisation")
    ours, others = means.loc["unit-circle"], means.drop(index="unit-circle")
    first = (
        ours["rotation_auc20"] > others["rotation_auc20"].max(),
        ours["translation_auc20"] > others["translation_auc20"].max(),
        ours["landmark_rmse"] < others["landmark_rmse"].min(),
    )
    rest = ", ".join(f"{display(k).lower()} {v:.1f}" for k, v in others["rotation_auc20"].items())
    text = f"rotation AUC@20 {ours['rotation_auc20']:.1f}; {rest}; first in {sum(map(bool, first))} of 3 metrics"
    return Answer(all(first), text, {display(k).lower(): float(v) for k, v in means["rotation_auc20"].items()})


def cauchy_rescues(rows: pd.DataFrame, upgrade: str) -> Answer:
    """Some failures are rescued, and the mean is not raised beyond chance (two standard errors)."""
    pairs = loss_pairs(paper_grid(rows, upgrade=upgrade))
    if len(pairs) < 2:
        return unknown("runs with and without Cauchy")
    change = (pairs["rotation_auc20/cauchy"].fillna(0.0) - pairs["rotation_auc20/none"].fillna(0.0)).to_numpy(float)
    mean, error = float(change.mean()), float(change.std(ddof=1) / np.sqrt(len(change)))
    counts = pairs["outcome"].value_counts()
    rescued, broken = int(counts.get(RESCUED, 0)), int(counts.get(BROKEN, 0))
    text = f"{rescued} rescued, {broken} broken of {len(pairs)}; mean change of rotation AUC@20 {mean:+.2f} ± {error:.2f}"
    return Answer(rescued > 0 and mean <= 2.0 * error, text, {"change": mean})


def densification_helps_rpose(rows: pd.DataFrame, upgrade: str) -> Answer:
    """RpOSE gains the most rotation AUC@20 from six observations instead of three."""
    pairs = densification_pairs(rows, upgrade)
    means = average(pairs, "formulation", ["rotation_auc20"]).set_index("formulation")["rotation_auc20"]
    if "rpose" not in means.index or len(means) < 2:
        return unknown("RpOSE beside another formulation at 3 and 6 observations")
    means = means.round(2) + 0.0  # no -0.0
    rest = ", ".join(f"{display(k)} {v:+.1f}" for k, v in means.drop(index="rpose").items())
    return Answer(
        bool(means.idxmax() == "rpose" and means["rpose"] > 0.0),
        f"RpOSE {means['rpose']:+.1f}; {rest}",
        {display(k): float(v) for k, v in means.items()},
    )


def residual_separates(rows: pd.DataFrame, upgrade: str) -> Answer:
    """The refinement residual separates success from failure, the OSE residual does not."""
    grid = paper_grid(rows, min_obs=None, upgrade=upgrade)
    ose, refinement = roc_auc(grid, "ose_residual"), roc_auc(grid, "refine_residual")
    if np.isnan(ose) or np.isnan(refinement):
        return unknown("runs that failed beside runs that did not, with both residuals")
    text = f"ROC AUC {refinement:.3f} of the refinement residual, {ose:.3f} of the OSE residual"
    return Answer(refinement >= SEPARATES > ose, text, {"refinement": refinement, "OSE": ose})


def upgrade_variant_is_secondary(rows: pd.DataFrame, upgrade: str) -> Answer:
    """The selected upgrade fails about as often as the linear one (within two points)."""
    linear, selected = (failure_rate(paper_grid(rows, upgrade=u)) for u in (upgrade, "selected"))
    if np.isnan(linear) or np.isnan(selected):
        return unknown("both upgrades")
    text = f"{linear:.1f}% fail after {upgrade}, {selected:.1f}% after selected"
    return Answer(abs(linear - selected) <= 2.0, text, {upgrade: linear, "selected": selected})


def lessons() -> list[Lesson]:
    """The paper's claims, its figures read from its tables."""
    return [*_of_averages(), *_of_failures()]


def _of_averages() -> list[Lesson]:
    """Lessons 1 to 4: formulation, initialisation, loss, density."""
    pose = paper_table("tab:summary_formulations_pose_linear1997")
    second = sorted(pose.rows, key=lambda row: -float(row[2]))[1]
    init = paper_table("tab:init_average_linear1997")
    pairs = paper_table("tab:init_cauchy_pose_linear1997_pairs").frame()
    dense = paper_table("tab:densification_by_formulation")
    change = float((pairs["rotation_auc20/cauchy"] - pairs["rotation_auc20/none"]).mean())
    rescues = sum(len(paper_table(f"tab:robust_rescue_cases_minobs{n}_linear1997").rows) for n in (3, 6))
    return [
        Lesson(
            "rotations",
            "pOSE+rot is the strongest formulation",
            f"rotation AUC@20 {pose.value('rotation_auc20', 'pose-rot'):.1f}, next {display(second[0])} {second[2]:.1f}; "
            "first in 3 of 3 metrics",
            f"first in rotation AUC@20, translation AUC@20 and landmark RMSE, ties within {_TIE:g} included",
            rotations_strongest,
            "Section V-C2, lesson 1",
        ),
        Lesson(
            "unit-circle",
            "The unit circle is the best initialisation on average",
            f"rotation AUC@20 {init.value('rotation_auc20', 'unit-circle'):.1f}; normal "
            f"{init.value('rotation_auc20', 'normal'):.1f}, uniform {init.value('rotation_auc20', 'uniform'):.1f}",
            "ahead of normal and uniform in rotation AUC@20, translation AUC@20 and landmark RMSE",
            unit_circle_best,
            "Table III, lesson 2",
        ),
        Lesson(
            "cauchy",
            "Cauchy rescues some runs but does not improve the mean",
            f"{rescues} cases shown; mean change of rotation AUC@20 {change:+.2f}",
            "at least one failure rescued, and a mean change of rotation AUC@20 that is not above two standard errors",
            cauchy_rescues,
            "Tables IV to VI, lesson 3",
        ),
        Lesson(
            "densification",
            "Densification helps RpOSE most",
            "; ".join(f"{display(r[0])} {float(r[1]):+.1f}" for r in sorted(dense.rows, key=lambda r: -float(r[1]))),
            "RpOSE gains the most rotation AUC@20 from 3 to 6 observations a landmark",
            densification_helps_rpose,
            "Table VIII, lesson 4",
        ),
    ]


def _of_failures() -> list[Lesson]:
    """Lesson 5 and the appendix on failures."""
    return [
        Lesson(
            "residual",
            "The refinement residual separates success from failure, the OSE residual does not",
            "figures without numbers: failures at every OSE residual, few at small refinement residuals",
            f"ROC AUC of the refinement residual at least {SEPARATES:g}, of the OSE residual below",
            residual_separates,
            "Figures 4 and 10, lesson 5",
        ),
        Lesson(
            "upgrade",
            "Failures come from the optimisation, not from the variant of the upgrade",
            "failure rates “very close” after the linear and the selected upgrade",
            "failure rates after the linear and the selected upgrade within two points",
            upgrade_variant_is_secondary,
            "Appendix C",
        ),
    ]
