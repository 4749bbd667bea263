"""One screen on what of the paper holds, what does not and why, and what works instead: the top of docs/reproduction.md."""

import pandas as pd

from initfree.benchmark.attribution import attribution
from initfree.benchmark.report.checks import Check
from initfree.benchmark.report.failure import roc_auc
from initfree.benchmark.report.names import METHODS, display
from initfree.benchmark.report.selection import failure_rate, is_bal, paper_grid, whole_methods
from initfree.benchmark.report.tables.solvers import Descent


def in_short(rows: pd.DataFrame, checks: list[Check], solved: list[Descent]) -> str:
    """How many claims hold, and paragraphs with a word in front of each; what the rows say nothing about is left out."""
    verdicts = [check.verdict for check in checks]
    counted = (
        f"Of {len(checks)} claims of the paper's text {verdicts.count('reproduced')} are reproduced, "
        f"{verdicts.count('not reproduced')} are not{_turned(checks)}, {verdicts.count('cannot be told')} cannot be told "
        "from what was run."
    )
    said = [
        ("How often it fails", _failures(rows)),
        ("Why it fails", _causes(rows)),
        ("The linear solver", _solvers(solved)),
        ("What works instead", _instead(rows)),
    ]
    return "\n\n".join([counted, *(f"**{title}.** {text}." for title, text in said if text)]) + "\n"


def _turned(checks: list[Check]) -> str:
    """How many of those that do not hold do with one thing changed."""
    count = sum(bool(check.turned) for check in checks)
    return f" ({count} of them {'are' if count != 1 else 'is'} with one thing changed)" if count else ""


def _failures(rows: pd.DataFrame) -> str:
    grid = paper_grid(rows)
    if grid.empty:
        return ""
    sound = grid[~(grid["nullity"] > 1)]
    text = f"{failure_rate(grid):.0f}% of {len(grid)} runs of the paper's pipeline with exact steps"
    if 0 < len(sound) < len(grid):
        text += f", {failure_rate(sound):.0f}% on the sets where its linear upgrade is not degenerate"
    residual = roc_auc(sound, "refine_residual")
    if residual == residual:
        text += f"; there the refinement residual tells failures with a ROC area of {residual:.3f}"
    return text


def _causes(rows: pd.DataFrame) -> str:
    """Causes in percent of the failures of runs with the power series that ran with exact steps too."""
    rows = rows[~is_bal(rows)]
    if not (rows["linear_solver"] == "power").any():
        return ""
    found = attribution(rows).set_index("init").loc["all"]
    shares = {name: share for name, share in found.drop(["runs", "failures", "failed %"]).items() if share > 0.0}
    listed = ", ".join(f"{name} {share:.0f}%" for name, share in sorted(shares.items(), key=lambda item: -item[1]))
    return (
        f"{found['failures']:.0f} of {found['runs']:.0f} runs with the paper's power series fail that also ran with exact "
        f"steps: {listed}"
    )


def _solvers(solved: list[Descent]) -> str:
    """Success rates by linear solver on the problems that all ran on."""
    listed = []
    for name in sorted({one.set for one in solved}):
        rate = {
            solver: 100.0 * sum(not one.failed for one in mine) / len(mine)
            for solver in ("exact", "power", "pcg")
            if (mine := [one for one in solved if one.set == name and one.solver == solver])
        }
        if {"exact", "power"} <= set(rate):
            listed.append(f"{display(name)} " + " / ".join(f"{share:.0f}" for share in rate.values()))
    if not listed:
        return ""
    return "Percent reconstructed from random cameras with exact steps / power series / conjugate gradients: " + ", ".join(
        listed
    )


def _instead(rows: pd.DataFrame) -> str:
    auto = whole_methods(rows)
    auto = auto[auto["method"] == "auto"]
    return f"{METHODS['auto']} fails in {failure_rate(auto):.0f}% of {len(auto)} runs on the same sets" if len(auto) else ""
