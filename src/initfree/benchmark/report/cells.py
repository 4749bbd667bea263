"""The 2 x 2 of the paper's experiment: {power series, exact steps} x {its generator's visibility, occlusion}.

Tables and claims know sets 1 to 8, exact steps and the upgrade linear1997. A cell is the rows of one solver, visibility and
upgrade under these names, so that every table and every claim can be asked of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from initfree.benchmark.report.names import PAPER_SETS, PAPER_UPGRADE
from initfree.benchmark.report.selection import average, paper_grid

PUBLIC = "linear1997-public"
FRUSTUM, SURFACE = "frustum", "surface"
TERMS = 20
"""of the power series in the paper's cell: the README of PoVar; its code has 10 by default"""
_OF_FRUSTUM = {f"paper{name.removeprefix('set')}": name for name in PAPER_SETS}
_MEASURED = "set5"
"""real data: no generator decides who sees what"""


@dataclass(frozen=True)
class Cell:
    """A solver, a visibility, and the upgrade after which runs are judged."""

    solver: str = "power"
    visibility: str = FRUSTUM
    terms: int = TERMS
    upgrade: str = PUBLIC

    @property
    def title(self) -> str:
        solver = "exact" if self.solver == "exact" else f"{self.terms} terms"
        return f"{solver}, {'no occlusion' if self.visibility == FRUSTUM else 'occlusion'}"

    def of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Its rows, under the names that tables and claims know."""
        frustum = rows["set"].isin(list(_OF_FRUSTUM))
        here = frustum if self.visibility == FRUSTUM else rows["set"].isin(PAPER_SETS)
        whole = rows["method"] != "initfree"
        inner = rows["linear_solver"].eq(self.solver)
        if self.solver != "exact":
            inner &= rows["inner_iterations"].eq(self.terms)
        wanted = rows[here & (inner | whole)]
        # Under its name the upgrade takes the place of the one that the tables know.
        replaced = wanted["upgrade"].eq(PAPER_UPGRADE) & (self.upgrade != PAPER_UPGRADE)
        wanted = wanted[~replaced]
        # A run that left nothing is a collapse to one point, whose RMSE is the extent of the scene.
        nowhere = wanted["cameras_recovered"].eq(0)
        wanted = wanted.assign(landmark_rmse=wanted["landmark_rmse"].where(~nowhere, wanted["scene_scale"]))
        renamed = {"upgrade": {self.upgrade: PAPER_UPGRADE}, "linear_solver": {self.solver: "exact"}}
        return wanted.replace({"set": _OF_FRUSTUM, **renamed}).reset_index(drop=True)


PROTOCOL = Cell()
CELLS = (PROTOCOL, Cell("exact"), Cell(visibility=SURFACE), Cell("exact", SURFACE))
"""the paper's first"""


def both_solvers(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's cell and the same with exact steps, each under the name of its solver: what failures are attributed by."""
    power = PROTOCOL.of(rows)
    both = pd.concat([power.assign(linear_solver=PROTOCOL.solver), Cell("exact").of(rows)], ignore_index=True)
    return both[(both["loss"] == "none") & (both["min_obs"] == 3) & (both["method"] == "initfree")]


def has_protocol(rows: pd.DataFrame) -> bool:
    """Whether the sweep is one of the paper's experiment, with its generator, solver and upgrade."""
    return not paper_grid(PROTOCOL.of(rows)).empty


@dataclass(frozen=True)
class Mean:
    """Of whole seeds: their mean, and half of its 95% interval (Student's t); NaN with one seed.

    The paper has one seed: its number is to lie where one more seed of ours would, which is `covers`.
    """

    value: float
    half: float
    seeds: int

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return "–"
        return f"{self.value:.1f}" + (f" ± {self.half:.1f}" if np.isfinite(self.half) else "")

    @property
    def reach(self) -> float:
        """Half of the interval in which one more seed lies with 95% (of predictions, not of the mean)."""
        return self.half * float(np.sqrt(self.seeds + 1))

    @property
    def one_seed(self) -> str:
        """Where one seed lies, between 0 and what is possible."""
        if not np.isfinite(self.half):
            return "–"
        return f"{max(0.0, self.value - self.reach):.0f} to {min(100.0, self.value + self.reach):.0f}"

    def covers(self, value: float) -> bool:
        return bool(np.isfinite(self.half) and abs(value - self.value) <= self.reach)


def over_seeds(values: Iterable[float]) -> Mean:
    found = np.array([value for value in values if np.isfinite(value)])
    n = len(found)
    if n < 2:
        return Mean(float(found[0]) if n else float("nan"), float("nan"), n)
    half = float(student.ppf(0.975, n - 1) * found.std(ddof=1) / np.sqrt(n))
    return Mean(float(found.mean()), half, n)


def means(grid: pd.DataFrame, by: str, metric: str) -> dict[str, Mean]:
    """Mean of a metric by formulation, start ..., over sets, then over seeds; seeds that lack runs are left out."""
    grid = with_all_seeds(grid)
    size = grid.groupby("seed").size()
    whole = size[size == size.max()].index
    found: dict[str, list[float]] = {}
    for _, part in grid[grid["seed"].isin(whole)].groupby("seed"):
        for name, value in average(part, by, [metric]).set_index(by)[metric].items():
            found.setdefault(str(name), []).append(float(value))
    return {name: over_seeds(values) for name, values in found.items()}


def with_all_seeds(grid: pd.DataFrame) -> pd.DataFrame:
    """Set 5, measured and slow, may have fewer seeds than the others: its own in turn take the places of those it lacks."""
    every = sorted(grid["seed"].unique())
    have = sorted(grid.loc[grid["set"] == _MEASURED, "seed"].unique())
    if not have:
        return grid
    part = grid[grid["set"] == _MEASURED]
    lacking = [(have[k % len(have)], seed) for k, seed in enumerate(seed for seed in every if seed not in have)]
    return pd.concat([grid, *(part[part["seed"] == own].assign(seed=seed) for own, seed in lacking)], ignore_index=True)


def seeds_of(grid: pd.DataFrame) -> int:
    """Whole seeds, as in `means`."""
    grid = with_all_seeds(grid)
    size = grid.groupby("seed").size()
    return int((size == size.max()).sum()) if len(size) else 0


def solved(rows: pd.DataFrame) -> float:
    """Percent of runs that did not fail by the paper's definition."""
    return 100.0 * float((~rows["failed"].astype(bool)).mean()) if len(rows) else float("nan")
