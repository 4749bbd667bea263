"""Columns of a CSV or Parquet file by name; every complaint names the file, the column and the line."""

import csv
import math
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from initfree.data.files import opened
from initfree.data.tracks import Array, Index
from initfree.errors import InputError, in_words

Names = tuple[str, ...]
"""of a column, the first one first; the others are what other programs call it"""
_BLOCK = 4096
"""rows of a CSV that are read at once"""


def read_columns(path: Path) -> dict[str, list[Any]]:
    """All columns, names in lower case."""
    if path.is_dir():
        raise InputError(f"{path} is a directory; expected a table")
    return _parquet(path) if path.suffix.lower() == ".parquet" else _csv(path)


def _csv(path: Path) -> dict[str, list[Any]]:
    head: list[str] = []
    columns: list[list[str]] = []
    try:
        with TextIOWrapper(opened(path), encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream)
            # Block by block: millions of rows, each a list, would be looked through again and again for garbage.
            while block := list(islice(reader, _BLOCK)):
                rows = [row for row in block if row]
                if rows and not head:
                    head = [name.strip().lower() for name in rows.pop(0)]
                    columns = [[] for _ in head]
                wrong = next((n for n, row in enumerate(rows) if len(row) != len(head)), None)
                if wrong is not None:
                    row = len(columns[0]) + wrong + 2
                    raise InputError(f"{path}: row {row} has {len(rows[wrong])} values; expected {len(head)}, one a column")
                for column, values in zip(columns, zip(*rows, strict=True), strict=False):  # no values without rows
                    column.extend(values)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as CSV: {in_words(error)}") from error
    if not head:
        raise InputError(f"{path} is empty; expected a line of column names and a row for each observation")
    return dict(zip(head, columns, strict=True))


def _parquet(path: Path) -> dict[str, list[Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise InputError(
            f"{path} is a Parquet file, which needs pyarrow (pip install pyarrow); or write it as CSV"
        ) from error
    try:
        table = parquet.read_table(path)
    except (OSError, ArrowException) as error:
        raise InputError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return {name.lower(): table.column(name).to_pylist() for name in table.column_names}


def find(path: Path, columns: dict[str, list[Any]], names: Names) -> list[Any]:
    """The column of one of these names."""
    found = optional(columns, names)
    if found is None:
        whole = "; expected columns separated by commas" if any(";" in name or "\t" in name for name in columns) else ""
        raise InputError(f"{path} has no column {' or '.join(names)}; its columns are {', '.join(columns)}{whole}")
    return found


def optional(columns: dict[str, list[Any]], names: Names) -> list[Any] | None:
    return next((columns[name] for name in names if name in columns), None)


def numbers(path: Path, name: str, values: Sequence[Any]) -> Array:
    """A column as numbers; empty ones are not a number."""
    try:
        return np.array([np.nan if value is None or value == "" else value for value in values], dtype=np.float64)
    except ValueError as error:
        bad = next(n for n, value in enumerate(values) if not _is_number(value))
        raise InputError(f"{path}: {name} is {values[bad]!r} in row {bad + 2}; expected a number") from error


def labels(values: Sequence[Any]) -> tuple[list[str], Index]:
    """Distinct values as text, in the order of numbers where they are numbers, and which of them each row has."""
    text = [str(value).strip() for value in values]

    def place(name: str) -> tuple[bool, float, str]:
        number = _is_number(name)
        return not number, float(name) if name and number else 0.0, name

    found = sorted(set(text), key=place)
    number = {name: k for k, name in enumerate(found)}
    return found, np.array([number[name] for name in text], dtype=np.int64)


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(float(value)) or value is None
    except (TypeError, ValueError):
        return value is None or value == ""


def combined(*columns: Index) -> Index:
    """Numbers from 1 for the distinct combinations of columns, each of which has numbers from 0."""
    key = columns[0]
    for column in columns[1:]:
        # Of distinct numbers: what has a column of them is a column of numbers again, however many columns there are.
        _, key = np.unique(key * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
    _, number = np.unique(key, return_inverse=True)
    return number.reshape(-1).astype(np.int64) + 1


def moments_of(landmark: Index, frame: Sequence[Any] | None, *point: Sequence[Any]) -> dict[int, tuple[str, str]]:
    """By number of `combined`: frame and point as text; a point of several columns is joined with dots."""
    _, first = np.unique(landmark, return_index=True)
    return {
        int(landmark[n]): (
            "" if frame is None else str(frame[n]).strip(),
            ".".join(str(part[n]).strip() for part in point),
        )
        for n in first.tolist()
    }
