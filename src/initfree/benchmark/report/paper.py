"""The paper's own numbers, kept as data: `paper_tables.toml`, one entry a table, by its label."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pandas as pd


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper. `rows` is empty where the paper's source gives a caption but no numbers."""

    label: str
    title: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(list(self.rows), columns=[*self.keys, *self.columns])

    def value(self, column: str, *key: str) -> float:
        """The number in the row of this key; KeyError if there is none."""
        for row in self.rows:
            if row[: len(self.keys)] == key:
                return float(row[len(self.keys) + self.columns.index(column)])
        raise KeyError(f"{self.label} has no row {key}")


@cache
def paper_tables() -> dict[str, PaperTable]:
    """Every table of the paper by its label, in the paper's order."""
    text = files("initfree.benchmark.report").joinpath("paper_tables.toml").read_text(encoding="utf-8")
    tables = [
        PaperTable(t["label"], t["title"], tuple(t["keys"]), tuple(t["columns"]), tuple(tuple(row) for row in t["rows"]))
        for t in tomllib.loads(text)["table"]
    ]
    return {table.label: table for table in tables}


def paper_table(label: str) -> PaperTable:
    return paper_tables()[label]
