"""Why the paper's pipeline fails, as tables: `initfree.benchmark.attribution` finds the causes."""

import pandas as pd

from initfree.benchmark.attribution import CAUSES, LINEAR, SERIES, STARTS, UNKNOWN, attribution
from initfree.benchmark.jobs import TRUTH
from initfree.benchmark.report.names import in_order
from initfree.benchmark.report.selection import is_bal
from initfree.benchmark.report.table import Column, Table

_NOTE = (
    f"Runs that fail after {LINEAR}, each with the first cause that holds. Linear upgrade: another upgrade of the same "
    "projective solution succeeds. Inexact solver: the same run with exact linear steps succeeds. Camera order: the unit "
    "circle succeeds in another order. Surrogate: stage 1 fails even from the true cameras. Local minimum: from the truth "
    "it works, from this start it does not"
)
_BY = {"init": "initialisation", "formulation": "formulation", "set": "set"}


def attribution_tables(rows: pd.DataFrame) -> list[Table]:
    """Causes by initialisation, by formulation and by set, in percent of the failures; all of them in the last row."""
    return [_table(rows[~is_bal(rows)], by) for by in _BY]


def _table(rows: pd.DataFrame, by: str) -> Table:
    wanted = (rows["method"] == "initfree") & rows["init"].isin(STARTS) & (rows["upgrade"] == LINEAR)
    found = attribution(rows, by) if wanted.any() else pd.DataFrame(columns=[by])
    series = bool((rows.loc[wanted, "linear_solver"] == SERIES).any())
    names = [name for name in (*CAUSES, UNKNOWN) if name in found and (series or name != "inexact solver")]
    if len(found) and not (rows["init"] == TRUTH).any():
        found = found.assign(**dict.fromkeys(CAUSES[3:], float("nan")))
    if len(found):
        found = found.set_index(by).loc[[*in_order(v for v in found[by] if v != "all"), "all"]].reset_index()
    numbers = (
        Column("runs", "Runs", decimals=0),
        Column("failures", "Failed", decimals=0),
        Column("failed %", "Failed %", decimals=1),
        *(Column(name, name.capitalize(), decimals=1) for name in names),
    )
    title = f"What the failures are due to, in percent of them, by {_BY[by]}"
    note = _NOTE if by == "init" else "Causes as above"
    if series and by == "init":
        note += ". Runs with the paper's power series that also ran with exact steps"
    if UNKNOWN in names and by == "init":
        note += f". {UNKNOWN.capitalize()}: the run from the truth that would tell the last two apart is missing"
    links = tuple({} if value == "all" else {by: str(value)} for value in found[by])
    return Table(f"attribution-by-{by}", title, (by,), numbers, found, note, "", links, max(len(found) - 1, 0))
