"""Runs that differ in one factor and end in opposite outcomes, on BAL and on the paper's sets: found, not picked."""

from collections.abc import Set
from dataclasses import dataclass

import pandas as pd

from initfree.benchmark.report.names import display
from initfree.benchmark.report.selection import CASE, CONDITION, pipeline
from initfree.benchmark.report.table import Column, Table, columns
from initfree.benchmark.report.tables.bal import bal_pipeline, bal_rows

FACTORS = {"min_obs": "density", "init": "start", "loss": "loss", "method": "method"}
_PROBLEM = ("set", "seed", "min_obs", *CONDITION)
_RUN = ("formulation", "rotations", "init", "loss")


@dataclass(frozen=True)
class Pair:
    """A failed and a recovered run that differ in `factor` only, the clearest of `opposite` among `compared` pairs."""

    factor: str
    failed: pd.Series
    recovered: pd.Series
    compared: int
    opposite: int

    @property
    def fixed(self) -> str:
        """What both runs share, but for the set: pOSE, normal, no loss."""
        names = ("seed", "min_obs") if self.factor == "method" else ("seed", *_RUN, "min_obs")
        return _words(self.failed, [name for name in names if name != self.factor])

    @property
    def values(self) -> tuple[str, str]:
        """What the failed run has in the place of the factor, and the recovered run."""
        if self.factor == "method":
            return _words(self.failed, list(_RUN)), display(self.recovered["method"])
        return _words(self.failed, [self.factor]), _words(self.recovered, [self.factor])

    @property
    def title(self) -> str:
        """trafalgar-21, pOSE, no loss, min. obs. 3: unit circle fails, normal recovers."""
        failed, recovered = self.values
        return f"{display(self.failed['set'])}, {self.fixed}: {failed} fails, {recovered} recovers"


def controlled_pairs(rows: pd.DataFrame, kept: Set[str] = frozenset()) -> list[Pair]:
    """The same on the paper's sets: its figures of what initialisation, loss and density do."""
    stages = pipeline(rows, min_obs=None)
    names = [name for name in FACTORS if name != "method"]
    found = [_clearest(name, stages, stages, [c for c in CASE if c != name], kept) for name in names]
    return [pair for pair in found if pair is not None]


def find_pairs(rows: pd.DataFrame, kept: Set[str] = frozenset()) -> list[Pair]:
    """The clearest pair of every factor that has one; last the pipeline against `auto` on the same problem.

    Clearest is the largest difference of the lower of rotation AUC@20 and translation AUC@20.

    Args:
        rows: Of the whole sweep.
        kept: Jobs whose reconstruction can be shown: pairs of these come first.
    """
    stages, whole = bal_pipeline(rows), bal_rows(rows)
    found = [_clearest(name, stages, stages, [c for c in CASE if c != name], kept) for name in FACTORS if name != "method"]
    found.append(_clearest("method", stages, whole[whole["method"] == "auto"], list(_PROBLEM), kept))
    return [pair for pair in found if pair is not None]


def _clearest(factor: str, first: pd.DataFrame, second: pd.DataFrame, same: list[str], kept: Set[str]) -> Pair | None:
    a, b = (_keyed(rows, factor, same) for rows in (first, second))
    both = a.merge(b, on=same, suffixes=("/a", "/b"))
    both = both[both["factor/a"] != both["factor/b"]]
    opposite = both[both["failed/a"] & ~both["failed/b"]]
    if opposite.empty:
        return None
    shown = opposite["job/a"].isin(kept) & opposite["job/b"].isin(kept)
    candidates = opposite[shown] if shown.any() else opposite
    clearness = (candidates["score/b"] - candidates["score/a"]).to_numpy(float)
    chosen = candidates.iloc[int(clearness.argmax())]
    # Within one table every pair is met from both sides.
    compared = len(both) // 2 if first is second else len(both)
    return Pair(factor, first.loc[chosen["row/a"]], second.loc[chosen["row/b"]], compared, len(opposite))


def _keyed(rows: pd.DataFrame, factor: str, same: list[str]) -> pd.DataFrame:
    score = rows[["rotation_auc20", "translation_auc20"]].fillna(0.0).min(axis=1)
    filled = rows.assign(**{c: rows[c].fillna(0.0) for c in CONDITION})
    return filled[same].assign(factor=rows[factor], failed=rows["failed"], score=score, job=rows["job"], row=rows.index)


def _words(row: pd.Series, names: list[str]) -> str:
    return ", ".join(word for name in names if (word := _word(name, row[name])))


def _word(name: str, value: object) -> str:
    if name == "min_obs":
        return f"min. obs. {value:g}"
    if name == "seed":
        return f"seed {value:g}" if value else ""
    if name == "loss":
        return "no loss" if value == "none" else display(value)
    if name == "rotations":
        return f"{display(value).lower()} rotations" if value else ""
    return display(value).lower() if name == "init" else display(value)


def bal_pairs_table(pairs: list[Pair]) -> Table:
    """The runs of the figure in numbers, two rows a pair, and how many pairs there are of each kind."""
    keys = ("varies", "fixed", "run")
    numbers = (
        Column("ose_residual", "OSE residual", decimals=5),
        Column("refine_residual", "Refinement residual (px)", decimals=3),
        Column("lower_auc20", "Lower A20", decimals=1),
        *columns("landmark_rmse", decimals=1),
    )
    found = [
        {
            "varies": f"{FACTORS[pair.factor]} ({pair.opposite} of {pair.compared})",
            "fixed": f"{display(run['set'])}, {pair.fixed}",
            "run": f"{value} {'fails' if run['failed'] else 'recovers'}",
            "lower_auc20": min(run["rotation_auc20"], run["translation_auc20"]),
            **{name: run[name] for name in ("ose_residual", "refine_residual", "landmark_rmse")},
        }
        for pair in pairs
        for run, value in zip((pair.failed, pair.recovered), pair.values, strict=True)
    ]
    frame = pd.DataFrame(found, columns=[*keys, *(c.key for c in numbers)])
    note = (
        "Pairs of runs that differ in one factor only; in brackets those with opposite outcomes, of all. Shown is the pair "
        "of opposite outcomes (of those whose reconstructions were kept) with the largest difference in A20, the lower of "
        "rotation and translation AUC@20"
    )
    links = tuple({"job": str(run["job"])} for pair in pairs for run in (pair.failed, pair.recovered))
    return Table("bal-pairs", "One factor decides", keys, numbers, frame, note, "", links, ranked=0)
