"""The tables of the paper, and those it has not: every function takes the rows of a sweep and returns a Table."""

import pandas as pd

from initfree.benchmark.report.names import PAPER_LOSSES
from initfree.benchmark.report.table import Table
from initfree.benchmark.report.tables.densification import densification_by_formulation, densification_overall
from initfree.benchmark.report.tables.full import full_tables
from initfree.benchmark.report.tables.methods import methods_table, set_by_method_table
from initfree.benchmark.report.tables.rescue import rescue_table
from initfree.benchmark.report.tables.stages import rotations_table, runtime_table, upgrade_table
from initfree.benchmark.report.tables.summary import (
    initialisation_loss_tables,
    initialisation_table,
    loss_table,
    pose_table,
    structure_table,
)


def summary_tables(rows: pd.DataFrame) -> list[Table]:
    """What the paper's main text tables, after its linear upgrade."""
    return [
        pose_table(rows),
        structure_table(rows),
        initialisation_table(rows),
        *initialisation_loss_tables(rows),
        *([loss_table(rows)] if set(rows["loss"]).difference(("", *PAPER_LOSSES)) else []),
        rescue_table(rows, min_obs=3),
        rescue_table(rows, min_obs=6),
        densification_overall(rows),
        densification_by_formulation(rows),
        upgrade_table(rows),
    ]


def appendix_tables(rows: pd.DataFrame) -> list[Table]:
    """The summary after the selected upgrade, runtime, and where the rotations come from."""
    selected = [f(rows, upgrade="selected") for f in (pose_table, structure_table, initialisation_table, loss_table)]
    return [*selected, runtime_table(rows), rotations_table(rows)]


def method_tables(rows: pd.DataFrame) -> list[Table]:
    return [methods_table(rows), set_by_method_table(rows)]


__all__ = ["appendix_tables", "full_tables", "method_tables", "summary_tables"]
