"""docs/reproduction.md as a short paper: its numbers, from the rows of the sweep `paper`; its words are in templates."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from initfree.benchmark.report.cells import (
    CELLS,
    PROTOCOL,
    PUBLIC,
    TERMS,
    Cell,
    Mean,
    means,
    over_seeds,
    seeds_of,
    solved,
    with_all_seeds,
)
from initfree.benchmark.report.checks import STANDINGS, Check
from initfree.benchmark.report.failure import roc_auc
from initfree.benchmark.report.gap_plot import series_runs
from initfree.benchmark.report.names import FORMULATIONS, PAPER_SETS, PAPER_UPGRADE, VARIANTS, display
from initfree.benchmark.report.paper import paper_table
from initfree.benchmark.report.selection import average, is_bal, paper_grid, whole_methods
from initfree.benchmark.report.tables.bal import bal_pipeline, frame_free
from initfree.benchmark.report.tables.densification import densification_pairs
from initfree.benchmark.report.tables.rescue import BROKEN, RESCUED, loss_pairs

_HEAD = {"rotation_auc20": "rotation AUC@20", "translation_auc20": "translation AUC@20", "landmark_rmse": "landmark RMSE"}
_POSE, _STRUCTURE = "tab:summary_formulations_pose_linear1997", "tab:summary_formulations_landmarks_linear1997"
_INIT = "tab:init_average_linear1997"
_RANDOM, _CIRCLE = ("normal", "uniform"), ("unit-circle",)
_PROJECTIVE = ("pose", "rose", "expose")
_SPARSE, _DENSE = ("set2", "set4"), ("set1", "set3")
_DEGENERATE = ("set6", "set7", "set8")
_EXACT = 1e-6
"""pixels of the refinement residual"""
_SAID = {
    "set1": "converge reliably",
    "set2": "at most 4, circle 44 to 81",
    "set3": "converge reliably",
    "set4": "circle below 10",
    "set6": "at most 11",
    "set8": "circle 96 to 99",
}
"""rotation AUC@20 of pOSE, rOSE and expOSE in the paper's text"""


@dataclass(frozen=True)
class Share:
    """Runs solved of runs."""

    good: int
    runs: int

    def __str__(self) -> str:
        return f"{self.good} of {self.runs}"

    @property
    def percent(self) -> str:
        return f"{100.0 * self.good / self.runs:.0f}%" if self.runs else "–"


@dataclass(frozen=True)
class Gain:
    """Of a set's runs from some starts: μ, and the shares of runs that twenty terms and exact steps solve."""

    mu: str
    power: Share
    exact: Share


@dataclass(frozen=True)
class Gains:
    """Of a set: from random cameras, from the unit circle, and from random cameras with six observations a landmark."""

    title: str
    density: float
    """observations a landmark"""
    random: Gain
    circle: Gain
    six: Gain


def pages(rows: pd.DataFrame, checks: list[Check], about: dict[str, Any], files: dict[str, Path]) -> tuple[str, str]:
    """The text, and the numbers behind it that stand in the appendix.

    `about`: version, date, jobs done and asked for; `files`: figures, the appendix and the archive of rows.
    """
    environment = Environment(
        loader=PackageLoader("initfree.benchmark.report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # its product is Markdown: nothing is escaped
    found = {"about": about, "files": files}
    found |= _cells(rows) | _cause(rows) | _upgrade(rows) | _rest(rows, checks)
    page, details = (environment.get_template(f"reproduction{part}.md.j2").render(found) for part in ("", "-details"))
    return page, details


def _cells(rows: pd.DataFrame) -> dict[str, Any]:
    """The four Table 1s, and set by set."""
    grids = {cell: paper_grid(cell.of(rows)) for cell in CELLS}
    common = {cell: _without_loss(grid) for cell, grid in grids.items()}
    return {
        "titles": [cell.title for cell in CELLS],
        "seeds": seeds_of(grids[PROTOCOL]),
        "measured": _measured(grids[PROTOCOL]),
        "runs": len(rows[~is_bal(rows)].drop_duplicates("job")),
        "bal_runs": len(rows[is_bal(rows)].drop_duplicates("job")),
        "table1": _table1(grids[PROTOCOL], common),
        "sets": _by_set(common),
        **_within(grids[PROTOCOL], densification_pairs(PROTOCOL.of(rows))),
    }


def _measured(grid: pd.DataFrame) -> str:
    """What is said of Set 5, where it has other seeds than the rest."""
    seeds = grid.loc[grid["set"] == "set5", "seed"].nunique()
    if seeds == seeds_of(grid):
        return ""
    return f"{seeds} of Set 5" if seeds else "none of Set 5"


def _without_loss(grid: pd.DataFrame) -> pd.DataFrame:
    """What all four cells have: sets of both generators, no loss."""
    return grid[(grid["loss"] == "none") & (grid["set"] != "set5")]


def _table1(whole: pd.DataFrame, grids: dict[Cell, pd.DataFrame]) -> list[tuple[str, str, str, list[str]]]:
    """Formulation, the paper's rotation AUC@20, ours of the whole protocol, ours of each cell."""
    table, metric = paper_table(_POSE), "rotation_auc20"
    all_of_it = means(whole, "formulation", metric)
    found = [means(grid, "formulation", metric) for grid in grids.values()]
    lines = []
    for f in (name for name in FORMULATIONS if name not in VARIANTS):
        mean = all_of_it.get(f)
        protocol = "–" if mean is None else f"{mean} [{mean.one_seed}]"
        lines.append((display(f), f"{table.value(metric, f):.1f}", protocol, [str(one.get(f, "–")) for one in found]))
    return lines


def _by_set(grids: dict[Cell, pd.DataFrame]) -> list[tuple[str, str, list[str]]]:
    """Set, the paper's words, and runs solved of pOSE, rOSE and expOSE from random cameras and from the circle."""
    lines = []
    for name in PAPER_SETS:
        parts = [grid[(grid["set"] == name) & grid["formulation"].isin(_PROJECTIVE)] for grid in grids.values()]
        if all(part.empty for part in parts):
            continue
        shares = [f"{_share(part, _RANDOM).percent} / {_share(part, _CIRCLE).percent}" for part in parts]
        lines.append((display(name), _SAID.get(name, "–"), shares))
    return lines


def _share(part: pd.DataFrame, inits: Iterable[str] | None = None) -> Share:
    part = part if inits is None else part[part["init"].isin(list(inits))]
    return Share(int((~part["failed"].astype(bool)).sum()), len(part))


def _within(grid: pd.DataFrame, dense: pd.DataFrame) -> dict[str, Any]:
    """Entries of the paper's averages in our range of one seed: how many, of how many, and those outside."""
    found: list[tuple[str, float, Mean]] = []
    real = grid.assign(landmark_rmse=grid["landmark_rmse"].where(grid["cameras_recovered"].ne(0)))
    without: list[tuple[float, Mean]] = []
    for by, pose, structure in (("formulation", _POSE, _STRUCTURE), ("init", _INIT, _INIT)):
        for metric in _HEAD:
            table = paper_table(structure if metric == "landmark_rmse" else pose)
            for name, mean in means(grid, by, metric).items():
                found.append((f"{display(name)} {_HEAD[metric]}", table.value(metric, name), mean))
        table = paper_table(structure)
        without += [(table.value("landmark_rmse", k), mean) for k, mean in means(real, by, "landmark_rmse").items()]
    pairs = paper_table("tab:init_cauchy_pose_linear1997_pairs")
    for loss in ("none", "cauchy"):
        for name, mean in means(grid[grid["loss"] == loss], "init", "rotation_auc20").items():
            what = f"{display(name)} {display(loss)} {_HEAD['rotation_auc20']}"
            found.append((what, pairs.value(f"rotation_auc20/{loss}", name), mean))
    for by, label in (("loss", "tab:summary_densification_delta"), ("formulation", "tab:densification_by_formulation")):
        for name, mean in _change(dense, by).items():
            found.append((f"six observations, {display(name)}", paper_table(label).value("rotation_auc20", name), mean))
    outside = [(what, theirs, mean) for what, theirs, mean in found if not mean.covers(theirs)]
    return {
        "inside": len(found) - len(outside),
        "entries": len(found),
        "outside": [f"{what} {mean} (the paper {theirs:.1f})" for what, theirs, mean in outside],
        "only_structure": all("RMSE" in what for what, _, _ in outside),
        "without": Share(sum(mean.covers(theirs) for theirs, mean in without), len(without)),
    }


def _cause(rows: pd.DataFrame) -> dict[str, Any]:
    """What the linear solver does to density, starts, the Cauchy loss and densification, in the paper's visibility."""
    power, exact = (paper_grid(Cell(solver).of(rows)) for solver in ("power", "exact"))
    both = {"power": power, "exact": exact}
    pairs = loss_pairs(power)
    outcome = pairs["outcome"].value_counts()
    dense = densification_pairs(PROTOCOL.of(rows))
    return {
        "density": {
            name: {kind: _on(grid, sets, _RANDOM) for kind, sets in (("dense", _DENSE), ("sparse", _SPARSE))}
            for name, grid in both.items()
        },
        "start": {
            name: {kind: _on(grid, ("set2",), inits) for kind, inits in (("random", _RANDOM), ("circle", _CIRCLE))}
            for name, grid in both.items()
        },
        "cauchy": {
            "rescued": int(outcome.get(RESCUED, 0)),
            "broken": int(outcome.get(BROKEN, 0)),
            "pairs": len(pairs),
            "exact": _solved_without(pairs[pairs["outcome"] == RESCUED], exact),
            "mean": _paired(pairs),
        },
        "dense": {display(name): str(one) for name, one in _change(dense, "formulation").items()},
        "gaps": _gaps(rows),
        "worst": _worst(rows),
    }


def _on(grid: pd.DataFrame, sets: Iterable[str], inits: Iterable[str]) -> Share:
    part = grid[grid["set"].isin(list(sets)) & grid["formulation"].isin(_PROJECTIVE) & (grid["loss"] == "none")]
    return _share(part, inits)


def _solved_without(rescued: pd.DataFrame, exact: pd.DataFrame) -> Share:
    """Of cases that Cauchy rescues from the power series, those that exact steps solve without Cauchy."""
    case = ["set", "seed", "formulation", "init"]
    plain = exact[exact["loss"] == "none"][[*case, "failed"]]
    both = rescued[case].merge(plain, on=case)
    return _share(both)


def _paired(pairs: pd.DataFrame) -> Mean:
    """Mean change of the rotation AUC@20 by Cauchy: over the cells of a set, over sets, over seeds."""
    change = pairs["rotation_auc20/cauchy"].fillna(0.0) - pairs["rotation_auc20/none"].fillna(0.0)
    by_seed = pairs.assign(change=change).groupby(["seed", "set"])["change"].mean().groupby("seed").mean()
    return over_seeds(by_seed)


def _change(pairs: pd.DataFrame, by: str) -> dict[str, Mean]:
    """Mean change of the rotation AUC@20 from three to six observations."""
    if pairs.empty:
        return {}
    by_seed = pairs.groupby([by, "seed", "set"])["rotation_auc20"].mean().groupby([by, "seed"]).mean()
    return {str(name): over_seeds(part) for name, part in by_seed.groupby(by)}


def _gaps(rows: pd.DataFrame) -> dict[str, Gains]:
    """Sets 1 to 4 in the paper's visibility: what a term gains, and runs solved, by start and by observations a landmark."""
    grids = {
        (solver, least): paper_grid(Cell(solver).of(rows), min_obs=least)
        for solver in ("power", "exact")
        for least in (3, 6)
    }
    plain = {key: grid[(grid["loss"] == "none") & grid["formulation"].isin(_PROJECTIVE)] for key, grid in grids.items()}
    found = {}
    for name in sorted((*_DENSE, *_SPARSE)):
        here = {key: grid[grid["set"] == name] for key, grid in plain.items()}

        def gain(inits: Iterable[str], least: int, here: dict[tuple[str, int], pd.DataFrame] = here) -> Gain:
            power, exact = (part[part["init"].isin(list(inits))] for part in (here["power", least], here["exact", least]))
            mu = power["series_gap"].median()
            return Gain(f"{mu:.3f}" if np.isfinite(mu) else "–", _share(power), _share(exact))

        runs = here["power", 3]
        if runs["series_gap"].notna().any():
            density = float((runs["observations"] / runs["landmarks"]).mean())
            found[name] = Gains(display(name), density, gain(_RANDOM, 3), gain(_CIRCLE, 3), gain(_RANDOM, 6))
    return found


def _worst(rows: pd.DataFrame) -> dict[str, dict[str, Share]]:
    """Runs solved where a term gains much and where it gains little, by solver."""
    runs = series_runs(rows)
    power = (runs["linear_solver"] == "power") & (runs["inner_iterations"] == TERMS)
    solvers = {"power": runs[power], "exact": runs[runs["linear_solver"] == "exact"]}
    if runs.empty:
        return {}
    return {
        "good": {name: _share(part[part["series_gap"] > 0.15]) for name, part in solvers.items()},
        "bad": {name: _share(part[part["series_gap"] < 0.05]) for name, part in solvers.items()},
    }


def _upgrade(rows: pd.DataFrame) -> dict[str, Any]:
    """The upgrades of the same projective reconstructions, on sets that are degenerate for the linear one and on others."""
    lines = []
    for name in (PUBLIC, PAPER_UPGRADE, "linear2004", "selected"):
        grid = paper_grid(Cell(upgrade=name).of(rows))
        if grid.empty:
            continue
        others = grid[~grid["set"].isin([*_DEGENERATE, "set5"])]
        nowhere = grid["cameras_recovered"].eq(0)
        lines.append(
            (
                name,
                f"{solved(others):.0f}%",
                [f"{solved(grid[grid['set'] == s]):.0f}%" for s in _DEGENERATE],
                int(nowhere.sum()),
                len(grid),
                str(means(grid, "formulation", "rotation_auc20").get("pose-rot", "–")),
            )
        )
    whole = means(paper_grid(PROTOCOL.of(rows)), "formulation", "rotation_auc20").get("pose-rot", over_seeds([]))
    theirs = paper_table(_POSE).value("rotation_auc20", "pose-rot")
    words = "inside" if whole.covers(theirs) else "below" if theirs < whole.value else "above"
    return {"upgrades": lines, "exact8": _exact_on(rows, "set8"), "rotated": {"words": words, "range": whole.one_seed}}


def _exact_on(rows: pd.DataFrame, name: str) -> dict[str, Any]:
    """Of a set, the runs whose projective reconstruction is exact, and those of them that two upgrades make metric."""
    found = {}
    for key, upgrade in (("public", PUBLIC), ("soft", "linear2004")):
        grid = paper_grid(Cell(upgrade=upgrade).of(rows))
        found[key] = _share(grid[(grid["set"] == name) & (grid["refine_residual"] < _EXACT)])
    return {"all": found["public"].runs, "public": found["public"].good, "soft": found["soft"].good}


def _rest(rows: pd.DataFrame, checks: list[Check]) -> dict[str, Any]:
    grid = paper_grid(PROTOCOL.of(rows), min_obs=None)
    sound, steps = grid[~(grid["nullity"] > 1)], _steps(grid[grid["min_obs"] == 3])
    auto = whole_methods(PROTOCOL.of(rows))
    auto = auto[auto["method"] == "auto"]
    low = grid[grid["ose_residual"] <= grid.groupby("formulation")["ose_residual"].transform(lambda r: r.quantile(1 / 3))]
    return {
        "roc": {r: (roc_auc(grid, r), roc_auc(sound, r)) for r in ("ose_residual", "refine_residual")},
        "low_ose": 100.0 * float(low["failed"].mean()) if len(low) else float("nan"),
        "auto": _share(auto),
        "standing": {word: [c for c in checks if c.standing == word] for word in STANDINGS},
        "claims": len(checks),
        "bal": [
            {r: roc_auc(part, r) for r in ("refine_residual", "ose_residual")}
            for part in (bal_pipeline(rows), bal_pipeline(frame_free(rows)))
        ],
        "ranking": _ranking(grid[grid["min_obs"] == 3]),
        "steps": steps,
        "others": _between(ms for name, ms in steps["ms"].items() if name != "rpose"),
        "circle8": _circle8(rows),
    }


def _ranking(grid: pd.DataFrame) -> dict[str, Any]:
    """Seeds in which expOSE has the best rotation, in which rOSE has the best translation, and by how much they differ."""
    pure = with_all_seeds(grid[~grid["rotations"].ne("")])
    best: dict[str, list[str]] = {"rotation_auc20": [], "translation_auc20": []}
    apart = []
    for _, part in pure.groupby("seed"):
        by = average(part, "formulation", list(best)).set_index("formulation")
        for metric, names in best.items():
            names.append(str(by[metric].idxmax()))
        if {"expose", "rose"} <= set(by.index):
            apart.append(float(by["rotation_auc20"]["expose"] - by["rotation_auc20"]["rose"]))
    expose, rose = best["rotation_auc20"].count("expose"), best["translation_auc20"].count("rose")
    return {"expose": expose, "rose": rose, "seeds": len(best["rotation_auc20"]), "apart": over_seeds(apart)}


def _steps(grid: pd.DataFrame) -> dict[str, dict[str, float]]:
    """By formulation: milliseconds before the refinement for each step of stage 1 (median), and such steps (mean)."""
    runs = grid.drop_duplicates("job")
    each = runs.assign(each=1e3 * runs["seconds_ose"] / runs["ose_iterations"]).groupby("formulation")
    found = each["each"].median(), each["ose_iterations"].mean()
    return {name: {str(k): float(v) for k, v in part.items()} for name, part in zip(("ms", "steps"), found, strict=True)}


def _between(values: Iterable[float]) -> str:
    found = list(values)
    return f"{min(found):.1f} to {max(found):.1f}" if found else "–"


def _circle8(rows: pd.DataFrame) -> dict[str, Any]:
    """Set 8 from the unit circle: runs that the upgrade of 2004 makes metric, and RpOSE's that end above a pixel."""
    grid = paper_grid(Cell(upgrade="linear2004").of(rows))
    runs = grid[(grid["set"] == "set8") & grid["init"].isin(_CIRCLE) & (grid["loss"] == "none")]
    rpose = runs[runs["formulation"] == "rpose"]
    return {
        "soft": _share(runs[runs["formulation"].isin(("pose", "rose"))]),
        "rpose": Share(int((rpose["refine_residual"] > 1.0).sum()), len(rpose)),
    }
