"""A sweep's directory: append-only parts of the table, and the files beside it.

sweep.json                      configuration, versions and times
rows/part-*.parquet             one row a job and upgrade
histories/JOB.json.gz           convergence of the job's stages
reconstructions/JOB.npz         for the first seed: what was reconstructed, over the truth
sets/SET-SEED-MINOBS.npz        the sets
datasets/                       the generator's output, which may be deleted

Every file is written under another name and renamed, so that it is there whole or not at all, whenever the process ends.
Rows are written last: a row says that all else of its job is there.
"""

import json
import os
import uuid
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from initfree.benchmark.rows import SCHEMA, Frame
from initfree.benchmark.worker import Parcel
from initfree.errors import InputError

_HIDDEN = ".writing-"


class Store:
    """Reads and adds to a sweep's directory; never changes what is there."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)

    @classmethod
    def existing(cls, directory: Path | str) -> "Store":
        """The store of a sweep that was started."""
        store = cls(directory)
        if not store._about.is_file():
            raise InputError(f"{directory} holds no sweep (no sweep.json); expected the --output of `initfree bench run`")
        return store

    def create(self) -> None:
        """Make the directory, or say why it cannot be one."""
        try:
            for name in ("rows", "histories", "reconstructions", "sets", "datasets"):
                (self.directory / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to output {self.directory}: {error.strerror or error}") from error
        for left in self.directory.glob(f"*/{_HIDDEN}*"):
            left.unlink(missing_ok=True)

    @property
    def cache(self) -> Path:
        """Where generated datasets are kept."""
        return self.directory / "datasets"

    @property
    def _about(self) -> Path:
        return self.directory / "sweep.json"

    def about(self) -> dict[str, Any]:
        """The content of sweep.json; empty before the first start."""
        if not self._about.is_file():
            return {}
        try:
            return json.loads(self._about.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{self._about} is broken: {error}; expected what `initfree bench run` wrote") from error

    def describe(self, about: dict[str, Any]) -> None:
        self._write(self._about, (json.dumps(about, indent=2) + "\n").encode())

    def rows(self) -> Frame:
        """All rows, in an order that does not depend on when they were written."""
        parts = sorted((self.directory / "rows").glob("part-*.parquet"))
        tables = [_read(part) for part in parts]
        table = (pa.concat_tables(tables) if tables else SCHEMA.empty_table()).to_pandas()
        table["accepted"] = table["accepted"].astype("boolean")
        order = ["set", "min_obs", "noise", "outliers", "merged", "seed", "method", "formulation", "rotations"]
        table = table.drop_duplicates("key").sort_values([*order, "init", "loss", "upgrade", "key"])
        return table.reset_index(drop=True)

    def keys(self) -> set[str]:
        """Keys of the rows that are there."""
        parts = (self.directory / "rows").glob("part-*.parquet")
        return {key for part in parts for key in _read(part, ["key"]).column("key").to_pylist()}

    def add(self, parcel: Parcel) -> None:
        """What a job sent back."""
        if parcel.history is not None:
            self._write(self.directory / "histories" / f"{parcel.job}.json.gz", parcel.history)
        if parcel.reconstruction is not None:
            self._write(self.directory / "reconstructions" / f"{parcel.job}.npz", parcel.reconstruction)
        table = pa.Table.from_pylist(parcel.rows, schema=SCHEMA)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        name = f"part-{next(self._numbers):06d}-{uuid.uuid4().hex[:8]}.parquet"
        self._write(self.directory / "rows" / name, sink.getvalue().to_pybytes())

    def has_set(self, name: str) -> bool:
        return (self.directory / "sets" / name).is_file()

    def add_set(self, name: str, content: bytes) -> None:
        self._write(self.directory / "sets" / name, content)

    @cached_property
    def _numbers(self):
        from itertools import count

        return count(sum(1 for _ in (self.directory / "rows").glob("part-*.parquet")))

    def _write(self, path: Path, content: bytes) -> None:
        staged = path.with_name(f"{_HIDDEN}{uuid.uuid4().hex[:8]}-{path.name}")
        with staged.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        staged.replace(path)


def _read(part: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        return pq.ParquetFile(part).read(columns)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise InputError(f"{part} cannot be read: {' '.join(str(error).split())}; delete it to repeat its jobs") from error
