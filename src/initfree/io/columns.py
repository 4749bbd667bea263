"""Columns of a CSV or Parquet file by name; every complaint names the file, the column and the line."""

import csv
import math
import re
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from initfree.data.files import opened
from initfree.data.tracks import Array, Index
from initfree.errors import InputError, in_words

Columns = dict[str, Sequence[Any]]
Names = tuple[str, ...]
"""of a column, the first one first; the others are what other programs call it"""
_SEPARATORS = (",", ";", "\t")
_DECIMAL = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_BLOCK = 4096
"""rows of a CSV that are read at once"""
_LEAST_ROWS, _LEAST_ROW = 100_000, 3
"""rows of a Parquet file of any size, and bytes of each further one: two coordinates that differ take as many, packed"""
_LEAST_BYTES, _MOST_RATIO = 32 << 20, 16
"""of a Parquet file of any size, unpacked, and more as a multiple of it"""


def read_columns(path: Path, *used: Names) -> Columns:
    """By name in lower case: the columns that are used, and nothing of the others but their names."""
    names = {name for one in used for name in one}
    return _parquet(path, names) if path.suffix.lower() == ".parquet" else _csv(path, names)


def _csv(path: Path, used: set[str]) -> Columns:
    head: list[str] = []
    columns: list[list[str]] = []
    count = 0
    try:
        with TextIOWrapper(opened(path), encoding="utf-8-sig", newline="") as stream:
            start = stream.readline()
            separator = max(_SEPARATORS, key=start.count)
            reader = csv.reader(chain([start] if start else [], stream), delimiter=separator)
            # Block by block: millions of rows, each a list, would be looked through again and again for garbage.
            while block := list(islice(reader, _BLOCK)):
                rows = [row for row in block if row]
                if rows and not head:
                    head = [name.strip().lower() for name in rows.pop(0)]
                    columns = [[] for _ in head]
                wrong = next((n for n, row in enumerate(rows) if len(row) != len(head)), None)
                if wrong is not None:
                    row = count + wrong + 2
                    raise InputError(f"{path}: row {row} has {len(rows[wrong])} values; expected {len(head)}, one a column")
                for name, column, values in zip(
                    head, columns, zip(*rows, strict=True), strict=False
                ):  # no values without rows
                    if name in used:
                        column.extend(values if separator == "," else map(_with_point, values))
                count += len(rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as CSV: {in_words(error)}") from error
    if not head:
        raise InputError(f"{path} is empty; expected a line of column names and a row for each observation")
    return dict(zip(head, columns, strict=True))


def _with_point(value: str) -> str:
    """A decimal comma, which only tables with other separators have, as a point."""
    return value.replace(",", ".") if _DECIMAL.fullmatch(value.strip()) else value


def _parquet(path: Path, used: set[str]) -> Columns:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise InputError(
            f"{path} is a Parquet file, which needs pyarrow (pip install pyarrow); or write it as CSV"
        ) from error
    try:
        with opened(path) as stream, parquet.ParquetFile(stream) as file:
            size, names = path.stat().st_size, file.schema_arrow.names
            most = _LEAST_ROWS + size // _LEAST_ROW
            if file.metadata.num_rows > most or _unpacked(file.metadata, used) > _LEAST_BYTES + _MOST_RATIO * size:
                raise InputError(
                    f"{path} announces {file.metadata.num_rows:,} rows in {size:,} bytes; expected fewer; write it as CSV"
                )
            table = file.read(columns=[name for name in names if name.lower() in used])
        return {name.lower(): [] for name in names} | {
            name.lower(): _values(path, name, table.column(name)) for name in table.column_names
        }
    except (OSError, ArrowException) as error:
        raise InputError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def _unpacked(about: Any, used: set[str]) -> int:
    """Bytes of the columns that are used, as the file's metadata has them."""
    groups = (about.row_group(k) for k in range(about.num_row_groups))
    columns = (group.column(n) for group in groups for n in range(group.num_columns))
    return sum(one.total_uncompressed_size for one in columns if one.path_in_schema.partition(".")[0].lower() in used)


def _values(path: Path, name: str, column: Any) -> Sequence[Any]:
    """Numbers as an array, texts as a list in which equal ones are one object."""
    from pyarrow import float64, types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_floating(kind) or types.is_decimal(kind):
        return column.cast(float64()).to_numpy()
    if types.is_integer(kind) and not column.null_count:
        return column.to_numpy()
    if not (types.is_integer(kind) or types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind)):
        raise InputError(f"{path}: the column {name} is of type {column.type}; expected numbers or texts")
    packed = column.combine_chunks() if types.is_dictionary(column.type) else column.combine_chunks().dictionary_encode()
    found = [*packed.dictionary.to_pylist(), None]
    return [found[k] for k in packed.indices.fill_null(len(found) - 1).to_pylist()]


def find(path: Path, columns: Columns, names: Names) -> Sequence[Any]:
    """The column of one of these names."""
    found = optional(columns, names)
    if found is None:
        raise InputError(f"{path} has no column {' or '.join(names)}; its columns are {', '.join(columns)}")
    return found


def optional(columns: Columns, names: Names) -> Sequence[Any] | None:
    return next((columns[name] for name in names if name in columns), None)


def numbers(path: Path, name: str, values: Sequence[Any]) -> Array:
    """A column as numbers; empty ones are not a number."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64)
    try:
        return np.array([np.nan if value is None or value == "" else value for value in values], dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        bad = next(n for n, value in enumerate(values) if not _is_number(value))
        raise InputError(f"{path}: {name} is {values[bad]!r} in row {bad + 2}; expected a number") from error


def labels(values: Sequence[Any]) -> tuple[list[str], Index]:
    """Distinct values as text, in the order of numbers where they are numbers, and which of them each row has."""
    values = values.tolist() if isinstance(values, np.ndarray) else values
    # Many rows have few labels: text is made of each once.
    text = {value: str(value).strip() for value in dict.fromkeys(values)}

    def place(name: str) -> tuple[bool, float, str]:
        number = _is_number(name)
        return not number, float(name) if name and number else 0.0, name

    found = sorted(set(text.values()), key=place)
    number = {name: k for k, name in enumerate(found)}
    of_value = {value: number[name] for value, name in text.items()}
    return found, np.fromiter((of_value[value] for value in values), dtype=np.int64, count=len(values))


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(float(value)) or value is None
    except (TypeError, ValueError, OverflowError):
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
