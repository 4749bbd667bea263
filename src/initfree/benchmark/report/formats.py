"""A table as text: CSV, LaTeX, Markdown."""

import math
from dataclasses import dataclass

import pandas as pd

from initfree.benchmark.report.names import display
from initfree.benchmark.report.table import Column, Table

_KEYS = {
    "init": "Initialisation",
    "formulation": "Formulation",
    "set": "Set",
    "seed": "Seed",
    "loss": "Loss",
    "upgrade": "Upgrade",
    "rotations": "Rotations",
    "method": "Method",
    "min_obs": "Min. obs.",
    "good": "Good run",
    "bad": "Failed run",
}


@dataclass(frozen=True)
class Cell:
    """A number as shown: ours, the paper's (empty where it has none), and whether ours is the best of its column."""

    ours: str
    paper: str = ""
    best: bool = False


def number(value: float, column: Column) -> str:
    """With the column's decimals; a dash where there is none, powers of ten where a fine column would show only zeros."""
    if math.isnan(value):
        return "–"
    if abs(value) >= 1e5 or (column.decimals >= 3 and 0.0 < abs(value) < 10.0**-column.decimals):
        return f"{value:.1e}"
    return f"{value:{'+' if column.signed else ''}.{column.decimals}f}"


def header(key: str) -> str:
    return _KEYS.get(key, key.capitalize())


def cells(table: Table) -> list[list[Cell]]:
    """The numbers of a table, row by row."""
    paper, best = table.paper(), table.best()
    found: list[list[Cell]] = []
    for k, (_, row) in enumerate(table.frame.iterrows()):
        line: list[Cell] = []
        for c in table.columns:
            theirs = float(paper[c.key].iloc[k]) if paper is not None else math.nan
            shown = "" if math.isnan(theirs) else number(theirs, c)
            line.append(Cell(number(float(row[c.key]), c), shown, bool(best[c.key].iloc[k])))
        found.append(line)
    return found


def labels(table: Table) -> list[list[str]]:
    """The keys of a table as a reader sees them, row by row."""
    return [[display(row[key]) for key in table.keys] for _, row in table.frame.iterrows()]


def to_csv(table: Table) -> str:
    """Full precision, identifiers as in the rows of the sweep; the paper's numbers in columns of their own."""
    numbers = table.frame[[c.key for c in table.columns]].reset_index(drop=True)
    frame = pd.concat([table.frame[list(table.keys)].reset_index(drop=True), numbers], axis=1)
    paper = table.paper()
    if paper is not None:
        known = paper.dropna(axis=1, how="all")
        frame = pd.concat([frame, known.add_suffix(" (paper)")], axis=1)
    return frame.to_csv(index=False)


def to_latex(table: Table) -> str:
    """A booktabs table; the paper's numbers in brackets, the best of a column bold."""
    lines = [
        [_escape(text) for text in names]
        + [(rf"\textbf{{{c.ours}}}" if c.best else c.ours) + (f" ({c.paper})" if c.paper else "") for c in line]
        for names, line in zip(labels(table), cells(table), strict=True)
    ]
    heads = [("", header(key)) for key in table.keys] + [(_escape(c.group), _escape(c.title)) for c in table.columns]
    frame = pd.DataFrame(lines, columns=pd.MultiIndex.from_tuples(heads))
    if not any(c.group for c in table.columns):
        frame.columns = [head[1] for head in heads]
    caption = _escape(
        f"{table.title}. {table.note}." + (" The paper's numbers in brackets." if table.paper() is not None else "")
    )
    layout = "l" * len(table.keys) + "r" * len(table.columns)
    styled = frame.style.hide(axis="index")
    text = styled.to_latex(hrules=True, column_format=layout, multicol_align="c", caption=caption, label=f"tab:{table.name}")
    return text.replace("–", "--").replace("≥", r"$\ge$")


def _escape(text: str) -> str:
    for sign in "&%#_":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("Δ", r"$\Delta$")


def to_markdown(table: Table) -> str:
    """A pipe table; the paper's numbers in brackets, the best of a column bold."""
    heads = [header(key) for key in table.keys]
    heads += [f"{c.group} {c.title}".strip() for c in table.columns]
    rules = ["---"] * len(table.keys) + ["---:"] * len(table.columns)
    lines = [
        names + [(f"**{c.ours}**" if c.best else c.ours) + (f" ({c.paper})" if c.paper else "") for c in line]
        for names, line in zip(labels(table), cells(table), strict=True)
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, rules, *lines]) + "\n"
