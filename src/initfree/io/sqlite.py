"""Tables of an SQLite file of somebody else: read only, as they are at one moment, and no more than the file holds.

Nothing is written beside the file. Where nobody has it open, SQLite reads it as a file that does not change; a journal
beside it (`-wal`, of a program that is still writing, or was killed) is read from a copy of both; a database with the older
kind of journal is locked while it is read, as every reader of it does.

A database is a program too: a column may be computed (`data AS (zeroblob(4e8))`), and a damaged tree of pages may lead
round in a circle. Computed columns are refused, and rows count until they are more than the file can hold.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from initfree.data.files import beginning, regular
from initfree.errors import InputError, in_words

MAGIC = b"SQLite format 3\0"
_HEADER, _READ_VERSION, _WAL = 100, 19, 2
"""bytes of the file's header; the byte that says how it may be read, and its value where there is a write-ahead log"""
_TRIES = 3
_PATIENCE = 1.0
"""seconds to wait for a program that writes"""
_LEAST = 1_000_000
"""bytes of a row that any file may have: SQLite reads its own schema by the same limit"""
_KINDS: dict[type, str] = {int: "a whole number", str: "a text", bytes: "an array"}

Row = dict[str, Any]


class Tables:
    """The tables of an open database."""

    def __init__(self, path: Path, connection: sqlite3.Connection, size: int) -> None:
        self.path = path
        self._connection, self._left = connection, size
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        self._names = {row[0] for row in found}

    def __contains__(self, table: str) -> bool:
        return table in self._names

    def rows(self, table: str, /, optional: dict[str, type] | None = None, **needed: type) -> list[Row]:
        """These columns of all rows; an optional one that is not there is None, and so may every array be."""
        if table not in self:
            raise InputError(f"{self.path} has no table {table!r}; expected a COLMAP database")
        there = self._columns(table)
        lacking = next((name for name in needed if name not in there), None)
        if lacking is not None:
            raise InputError(f"{self.path}: the table {table} has no column {lacking!r}; expected a COLMAP database")
        kinds = needed | {name: kind for name, kind in (optional or {}).items() if name in there}
        missing = dict.fromkeys(set(optional or {}) - set(kinds))
        result = []
        for values in self._connection.execute(f"SELECT {', '.join(kinds)} FROM {table}"):
            self._left -= 1 + sum(len(value) for value in values if isinstance(value, bytes | str))
            if self._left < 0:
                raise InputError(f"{self.path}: the table {table} has more in it than a file of its size can hold")
            row = dict(zip(kinds, values, strict=True))
            self._check(table, row, kinds)
            result.append(row | missing)
        return result

    def _columns(self, table: str) -> set[str]:
        """Names of the columns that are stored."""
        columns = self._connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
        computed = next((name for _, name, *_, hidden in columns if hidden), None)
        if computed is not None:
            raise InputError(f"{self.path}: the column {computed!r} of {table} is computed; expected a COLMAP database")
        return {name for _, name, *_ in columns}

    def _check(self, table: str, row: Row, kinds: dict[str, type]) -> None:
        for name, kind in kinds.items():
            value = row[name]
            if not isinstance(value, kind) and not (value is None and kind is bytes):
                text = f"{value[:40]!r}" if isinstance(value, bytes | str) else repr(value)
                raise InputError(f"{self.path}: {name} in the table {table} is {text}; expected {_KINDS[kind]}")


def is_database(path: Path) -> bool:
    """Whether the file begins as SQLite's do."""
    return beginning(path, len(MAGIC)) == MAGIC


@contextmanager
def tables_of(path: Path) -> Iterator[Tables]:
    """The tables of the database at `path`; InputError where it cannot be read, or another program is writing it."""
    if not is_database(regular(path)):
        raise InputError(f"{path} is no COLMAP database: expected a file that begins with {MAGIC[:-1].decode()!r}")
    before = _state(path)
    size = sum(length for length, _ in before)
    try:
        with _connected(path) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(size, _LEAST), 2**31 - 1))
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN")
            yield Tables(path, connection, size)
    # SQLite's own words about a damaged schema repeat its bytes.
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a COLMAP database: {in_words(error)}") from error
    if _state(path) != before:
        raise InputError(f"{path} was changed while it was read; expected a database that no other program is writing")


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory(prefix="initfree-") as scratch:
        if beginning(path, _HEADER)[_READ_VERSION] != _WAL:
            place, how = path, "?mode=ro"
        elif _state(path)[1][0] == 0:
            place, how = path, "?mode=ro&immutable=1"
        else:
            place, how = _copied(path, Path(scratch)), ""
        # A database that somebody writes to answers once they have done, or not in time.
        uri = place.resolve().as_uri() + how
        with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)) as connection:
            yield connection


def _copied(path: Path, scratch: Path) -> Path:
    """The database and its log, copied while nobody changed them."""
    for _ in range(_TRIES):
        before = _state(path)
        shutil.copyfile(path, scratch / "database.db")
        if _log(path).exists():
            shutil.copyfile(regular(_log(path)), scratch / "database.db-wal")
        if _state(path) == before:
            return scratch / "database.db"
    raise InputError(f"{path} is being written by another program; expected a database at rest")


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _state(path: Path) -> list[tuple[int, int]]:
    """Size and time of the last change of the database and of its log."""
    status = [file.stat() if file.exists() else None for file in (path, _log(path))]
    return [(0, 0) if one is None else (one.st_size, one.st_mtime_ns) for one in status]
