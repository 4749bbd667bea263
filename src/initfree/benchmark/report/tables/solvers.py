"""Linear solvers beside one another: how long they take to the optimum, and how often they get there."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from initfree.benchmark.jobs import TRUTH
from initfree.benchmark.report.names import PAPER_UPGRADE, in_order
from initfree.benchmark.report.selection import is_bal
from initfree.benchmark.report.sweep import Sweep
from initfree.benchmark.report.table import Column, Table

NEAR = {"1%": 1e-2, "0.01%": 1e-4}
"""how far above the best cost found counts as there"""
_SHIPPED = 50
"""attempted steps after which public code (PoVar) stops"""


@dataclass(frozen=True)
class Descent:
    """Stage 1 of one run: costs over the best that any run of its problem found, and seconds, attempt by attempt."""

    set: str
    seed: int
    solver: str
    excess: np.ndarray
    seconds: np.ndarray
    failed: bool
    reason: str

    def seconds_to(self, share: float) -> float:
        """Until the cost is within `share` of the best; infinite where it never is."""
        there = np.flatnonzero(self.excess <= share)
        return float(self.seconds[there[0]]) if len(there) else float("inf")


def descents(sweep: Sweep) -> list[Descent]:
    """pOSE from random cameras, of problems that were solved with several linear solvers."""
    rows = sweep.rows
    chosen = rows[(rows["method"] == "initfree") & (rows["upgrade"] == PAPER_UPGRADE) & (rows["linear_solver"] != "")]
    chosen = chosen[(chosen["formulation"] == "pose") & chosen["init"].isin(("normal", TRUTH)) & (chosen["loss"] == "none")]
    # A seed makes other data of a set; that of a BAL file stays, and one run from its truth serves all.
    data = chosen["seed"].where(~is_bal(chosen), -1)
    case = [data, *(chosen[name] for name in ("set", "min_obs", "formulation", "loss", "rotations", "intrinsics"))]
    found: list[Descent] = []
    for _, part in chosen.groupby(case):
        if part["linear_solver"].nunique() < 2:
            continue
        found += _of_problem(sweep, part)
    return found


def _of_problem(sweep: Sweep, part: pd.DataFrame) -> Iterator[Descent]:
    curves: list[tuple[Any, list[dict[str, float]]]] = []
    for row in part.itertuples(index=False):
        history = sweep.history(str(row.job)).get("ose", [])
        if history:
            curves.append((row, history))
    if not curves:
        return
    # Exact data may be fitted exactly: then the best is rounding, and nothing is within a share of it.
    best = max(min(step["cost"] for _, history in curves for step in history), 1e-12)
    for row, history in curves:
        if row.init == TRUTH:
            continue
        cost = np.array([step["cost"] for step in history])
        seconds = np.array([step["seconds"] for step in history])
        yield Descent(
            set=str(row.set),
            seed=int(row.seed),
            solver=str(row.linear_solver),
            excess=cost / best - 1.0,
            seconds=seconds,
            failed=bool(row.failed),
            reason=str(row.ose_reason),
        )


def solvers_table(found: list[Descent]) -> Table:
    """By problem and solver: percent of seeds that reach the best cost, median seconds to it, and reconstructions."""
    lines = []
    for name in sorted({one.set for one in found}):
        for solver in in_order(one.solver for one in found if one.set == name):
            mine = [one for one in found if one.set == name and one.solver == solver]
            line: dict[str, Any] = {"set": name, "solver": solver, "runs": len(mine)}
            for label, share in NEAR.items():
                times = np.array([one.seconds_to(share) for one in mine])
                line[f"reached/{label}"] = 100.0 * float(np.isfinite(times).mean())
                # Over all runs, those that never get there included: the median is infinite if most do not.
                line[f"seconds/{label}"] = float(np.median(times)) if np.isfinite(np.median(times)) else float("nan")
            early = [one.excess[: _SHIPPED + 1].min() <= NEAR["1%"] for one in mine]
            line["shipped"] = 100.0 * float(np.mean(early))
            line["open"] = 100.0 * float(np.mean([one.reason in ("plateau", "limit") for one in mine]))
            line["good"] = 100.0 * float(np.mean([not one.failed for one in mine]))
            line["milliseconds"] = 1e3 * float(np.median([one.seconds[-1] / max(len(one.seconds) - 1, 1) for one in mine]))
            lines.append(line)
    numbers = (
        *(Column(f"reached/{label}", f"within {label}", "Reached the best cost, % of seeds", 1, 0) for label in NEAR),
        Column("shipped", f"1% in {_SHIPPED} steps", "Reached the best cost, % of seeds", 1, 0),
        *(Column(f"seconds/{label}", f"to {label}", "Median seconds", -1, 2) for label in NEAR),
        Column("milliseconds", "ms a step", "", -1, 1),
        Column("open", "Plateau or limit %", "", 0, 0),
        Column("good", "Reconstructed %", "", 1, 0),
        Column("runs", "Seeds", "", 0, 0),
    )
    frame = pd.DataFrame(lines, columns=["set", "solver", *(c.key for c in numbers)])
    note = (
        "pOSE from random cameras, the same starts for all. The best cost is the lowest of all runs of a problem, those "
        "from the truth included. Seconds of stage 1, median over all seeds; a dash where most never get there. "
        f"Reconstructed: not failed after refinement with the same solver and {PAPER_UPGRADE}"
    )
    return Table("solvers", "Linear solvers on the same runs", ("set", "solver"), numbers, frame, note, ranked=0)
