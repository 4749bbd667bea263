"""docs/reproduction.md as a short paper: its numbers, from the rows of the sweep `paper`; its words are in a template."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from initfree.benchmark.report.cells import CELLS, PROTOCOL, PUBLIC, Cell, Mean, means, over_seeds, seeds_of, solved
from initfree.benchmark.report.checks import STANDINGS, Check
from initfree.benchmark.report.failure import roc_auc
from initfree.benchmark.report.gap_plot import ring_points
from initfree.benchmark.report.names import FORMULATIONS, PAPER_SETS, PAPER_UPGRADE, VARIANTS, display, in_order
from initfree.benchmark.report.paper import PaperTable, paper_table
from initfree.benchmark.report.selection import failure_rate, paper_grid, whole_methods
from initfree.benchmark.report.tables.densification import densification_pairs
from initfree.benchmark.report.tables.rescue import BROKEN, RESCUED, loss_pairs

_HEAD = {"rotation_auc20": "rotation AUC@20", "translation_auc20": "translation AUC@20", "landmark_rmse": "landmark RMSE"}
_POSE, _STRUCTURE = "tab:summary_formulations_pose_linear1997", "tab:summary_formulations_landmarks_linear1997"
_RANDOM, _CIRCLE = ("normal", "uniform"), ("unit-circle",)
_PROJECTIVE = ("pose", "rose", "expose")
_SPARSE, _DENSE = ("set2", "set4"), ("set1", "set3")
_DEGENERATE = ("set6", "set7", "set8")
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


def page(rows: pd.DataFrame, checks: list[Check], about: dict[str, Any], files: dict[str, Path]) -> str:
    """The text. `about`: version, date, jobs done and asked for; `files`: figures, the appendix and the archive of rows."""
    environment = Environment(
        loader=PackageLoader("initfree.benchmark.report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # its product is Markdown: nothing is escaped
    return environment.get_template("reproduction.md.j2").render(
        about=about, files=files, **_cells(rows), **_cause(rows), **_upgrade(rows), **_rest(rows, checks)
    )


def _cells(rows: pd.DataFrame) -> dict[str, Any]:
    """The four Table 1s, and set by set."""
    grids = {cell: paper_grid(cell.of(rows)) for cell in CELLS}
    common = {cell: _without_loss(grid) for cell, grid in grids.items()}
    return {
        "titles": [cell.title for cell in CELLS],
        "seeds": seeds_of(grids[PROTOCOL]),
        "runs": len(rows.drop_duplicates("job")),
        "tables": [(title, _table1(common, metric)) for metric, title in _HEAD.items()],
        "table1": _table1(common, "rotation_auc20"),
        "sets": _by_set(common),
        "within": _within(grids[PROTOCOL]),
    }


def _without_loss(grid: pd.DataFrame) -> pd.DataFrame:
    """What all four cells have: sets of both generators, no loss."""
    return grid[(grid["loss"] == "none") & (grid["set"] != "set5")]


def _table1(grids: dict[Cell, pd.DataFrame], metric: str) -> list[tuple[str, str, list[str]]]:
    """Formulation, the paper's number, ours of each cell."""
    table = paper_table(_STRUCTURE if metric.startswith("landmark") else _POSE)
    found = [means(grid, "formulation", metric) for grid in grids.values()]
    names = [name for name in FORMULATIONS if name not in VARIANTS]
    return [(display(f), f"{table.value(metric, f):.1f}", [str(one.get(f, "–")) for one in found]) for f in names]


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


def _within(grid: pd.DataFrame) -> list[tuple[str, int, int, list[str]]]:
    """Entries of the paper's averages inside our 95% interval: table, how many, of how many, and those outside."""
    wanted = [
        ("formulation", _POSE, ("rotation_auc20", "translation_auc20")),
        ("formulation", _STRUCTURE, ("landmark_rmse",)),
        ("init", "tab:init_average_linear1997", ("rotation_auc20", "translation_auc20", "landmark_rmse")),
    ]
    found = []
    for by, label, metrics in wanted:
        table: PaperTable = paper_table(label)
        outside, count, inside = [], 0, 0
        for metric in metrics:
            for name, mean in means(grid, by, metric).items():
                theirs = table.value(metric, name)
                count += 1
                inside += mean.covers(theirs)
                if not mean.covers(theirs):
                    outside.append(f"{display(name)} {_HEAD[metric]} {mean} ({theirs:.1f})")
        found.append((table.title, inside, count, outside))
    return found


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
        "dense": {name: str(one) for name, one in _change(dense, "formulation").items()},
        "dense_loss": {name: str(one) for name, one in _change(dense, "loss").items()},
        "dense_seeds": dense["seed"].nunique() if len(dense) else 0,
        "terms": _terms(rows),
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
    return {display(name): over_seeds(part) for name, part in by_seed.groupby(by)}


def _terms(rows: pd.DataFrame) -> dict[str, Share]:
    """All rings together, by solver."""
    points = ring_points(rows)
    keys = dict.fromkeys((p.solver, p.terms) for p in points)
    words = {"exact": "exact steps", "power": "{} terms of the series", "pcg": "{} steps of conjugate gradients"}
    return {
        words[solver].format(terms): Share(
            sum(round(p.share * p.runs / 100.0) for p in points if (p.solver, p.terms) == (solver, terms)),
            sum(p.runs for p in points if (p.solver, p.terms) == (solver, terms)),
        )
        for solver, terms in keys
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
    return {"upgrades": lines, "circle8": _starts_on(rows, "set8"), "seven": _starts_on(rows, "set7")}


def _starts_on(rows: pd.DataFrame, name: str) -> dict[str, Share]:
    """Runs solved of a set after the public upgrade, without RpOSE, by kind of start."""
    grid = paper_grid(PROTOCOL.of(rows))
    part = grid[(grid["set"] == name) & (grid["formulation"] != "rpose")]
    return {"random": _share(part, _RANDOM), "circle": _share(part, _CIRCLE)}


def _rest(rows: pd.DataFrame, checks: list[Check]) -> dict[str, Any]:
    grid = paper_grid(PROTOCOL.of(rows))
    sound = grid[~(grid["nullity"] > 1)]
    auto = whole_methods(PROTOCOL.of(rows))
    auto = auto[auto["method"] == "auto"]
    low = grid[grid["ose_residual"] <= grid.groupby("formulation")["ose_residual"].transform(lambda r: r.quantile(1 / 3))]
    return {
        "roc": {r: (roc_auc(grid, r), roc_auc(sound, r)) for r in ("ose_residual", "refine_residual")},
        "failed": failure_rate(grid),
        "low_ose": 100.0 * float(low["failed"].mean()) if len(low) else float("nan"),
        "limits": _limits(rows),
        "auto": _share(auto),
        "standing": {word: [c for c in checks if c.standing == word] for word in STANDINGS},
        "claims": len(checks),
    }


def _limits(rows: pd.DataFrame) -> dict[str, str]:
    """Percent of stages that end out of steps, by formulation."""
    grid = paper_grid(PROTOCOL.of(rows))
    shares = grid["ose_reason"].eq("limit").groupby(grid["formulation"]).mean()
    return {display(f): f"{100.0 * float(shares[f]):.0f}%" for f in in_order(shares.index)}
