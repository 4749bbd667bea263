"""A sweep's directory: append-only parts of the table, and the files beside it.

sweep.json                      configuration, versions and times
plan.parquet                    keys of the configuration's jobs and rows
rows/part-*.parquet             one row a job and upgrade
histories/JOB.json.gz           convergence of the job's stages
reconstructions/JOB.npz         for the first seed: what was reconstructed, over the truth
sets/SET-SEED-MINOBS.npz        the sets
datasets/                       the generator's output, which may be deleted

Every file is written under another name and renamed, so that it is there whole or not at all, whenever the process ends.
Rows are written last: a row says that all else of its job is there. Rows of an earlier configuration stay, for the case that
it is requested again, but count no more: the plan says which do.
"""

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from initfree.benchmark.jobs import Job
from initfree.benchmark.rows import SCHEMA, Frame
from initfree.benchmark.worker import Parcel
from initfree.errors import InputError

_HIDDEN = ".writing-"
ARCHIVE = b"initfree.sweep"
"""metadata of an archive of rows: its sweep.json"""
_SETTINGS = 100
"""more distinct numbers than this are measurements"""
_PLAN = pa.schema([("job", pa.string()), ("key", pa.string())])


class Store:
    """Reads and adds to a sweep's directory; never changes a row that is there."""

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
        """Make the directory, or say why it cannot be one; files of the same names that no sweep wrote stay."""
        about = self.about()
        if (self._plan.exists() and not about) or (about and not {"name", "config", "starts"} <= about.keys()):
            named = self._about if about else self._plan
            raise InputError(f"{named} would be replaced, but no sweep wrote it; expected another output")
        try:
            for name in ("rows", "histories", "reconstructions", "sets", "datasets"):
                (self.directory / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to output {self.directory}: {error.strerror or error}") from error

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Held by the one driver of the directory, until it ends in whatever way."""
        lock = FileLock(self.directory / ".lock")
        try:
            held = lock.acquire(blocking=False)
        except Timeout as error:
            raise InputError(f"{self.directory} belongs to a sweep that is running; wait for it or stop it") from error
        except (OSError, NotImplementedError) as error:
            # The latter from file systems that cannot lock.
            why = getattr(error, "strerror", None) or error
            raise InputError(f"cannot write to output {self.directory}: {why}") from error
        with held:
            for pattern in (f"{_HIDDEN}*", f"*/{_HIDDEN}*"):
                for left in self.directory.glob(pattern):
                    left.unlink(missing_ok=True)
            yield

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

    @property
    def _plan(self) -> Path:
        return self.directory / "plan.parquet"

    @property
    def planned(self) -> bool:
        """Whether the rows that the configuration has are known."""
        return self._plan.is_file()

    def plan(self, jobs: Iterable[Job]) -> None:
        """Keep which rows the configuration has: to know it later needs neither its data nor its code."""
        rows = [{"job": job.key, "key": key} for job in jobs for key in job.row_keys]
        self._write_table(self._plan, pa.Table.from_pylist(rows, schema=_PLAN))

    def progress(self) -> tuple[int, int, int]:
        """Jobs of the plan, how many of them lack rows, and how many rows are of other configurations."""
        have = self.keys()
        plan = _read(self._plan, advice="start the sweep again to make it anew")
        jobs, keys = plan.column("job").to_pylist(), plan.column("key").to_pylist()
        lacking = {job for job, key in zip(jobs, keys, strict=True) if key not in have}
        return len(set(jobs)), len(lacking), len(have.difference(keys))

    def rows(self) -> Frame:
        """All rows of the plan, in an order that does not depend on when they were written."""
        parts = sorted((self.directory / "rows").glob("part-*.parquet"))
        tables = [_read(part) for part in parts]
        table = (pa.concat_tables(tables) if tables else SCHEMA.empty_table()).to_pandas()
        if self.planned:
            plan = _read(self._plan, ["key"], "start the sweep again to make it anew")
            table = table[table["key"].isin(plan.column("key").to_pylist())].copy()
        table["accepted"] = table["accepted"].astype("boolean")
        order = ["set", "min_obs", "noise", "outliers", "merged", "k1", "seed", "method", "formulation", "rotations"]
        order += ["intrinsics", "alpha", "beta", "linear_solver", "inner_iterations"]
        order += ["init", "loss", "upgrade", "key"]
        # Sweeps of earlier versions lack columns.
        table = table.drop_duplicates("key").sort_values([name for name in order if name in table])
        return table.reset_index(drop=True)

    def keys(self) -> set[str]:
        """Keys of the rows that are there, of the plan or not."""
        parts = (self.directory / "rows").glob("part-*.parquet")
        return {key for part in parts for key in _read(part, ["key"]).column("key").to_pylist()}

    def add(self, parcel: Parcel) -> None:
        """What a job sent back."""
        if parcel.history is not None:
            self._write(self.directory / "histories" / f"{parcel.job}.json.gz", parcel.history)
        if parcel.reconstruction is not None:
            self._write(self.directory / "reconstructions" / f"{parcel.job}.npz", parcel.reconstruction)
        name = f"part-{next(self._numbers):06d}-{uuid.uuid4().hex[:8]}.parquet"
        self._write_table(self.directory / "rows" / name, pa.Table.from_pylist(parcel.rows, schema=SCHEMA))

    def has_set(self, name: str) -> bool:
        return (self.directory / "sets" / name).is_file()

    def add_set(self, name: str, content: bytes) -> None:
        self._write(self.directory / "sets" / name, content)

    @cached_property
    def _numbers(self):
        from itertools import count

        return count(sum(1 for _ in (self.directory / "rows").glob("part-*.parquet")))

    def _write_table(self, path: Path, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        self._write(path, sink.getvalue().to_pybytes())

    def _write(self, path: Path, content: bytes) -> None:
        staged = path.with_name(f"{_HIDDEN}{uuid.uuid4().hex[:8]}-{path.name}")
        with staged.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        staged.replace(path)


def gathered(sources: Sequence[Path]) -> tuple[dict[str, Any], Frame]:
    """Of several sweeps or archives the description of the first, with the jobs of all, and the rows; a row that two of them
    have counts once."""
    import pandas as pd

    found = [described(source) for source in sources]
    about, rows = found[0]
    if len(found) > 1:
        rows = pd.concat([rows for _, rows in found if len(rows)], ignore_index=True).drop_duplicates(
            "key", ignore_index=True
        )
        missing = sum(int(one["missing"]) for one, _ in found)
        about = {**about, "jobs": int(rows["job"].nunique()) + missing, "missing": missing}
    return about, rows


def archive(about: dict[str, Any], rows: Frame, file: Path) -> None:
    """All rows, in single precision, and what sweep.json says: one small file that reports are made of."""
    kept = rows.dropna(axis=1, how="all")
    # Settings, of which there are few values, stay as they are: rows are chosen by them.
    measured = [name for name in kept.select_dtypes("float64") if kept[name].nunique() > _SETTINGS]
    table = pa.Table.from_pandas(kept.astype(dict.fromkeys(measured, "float32")), preserve_index=False)
    numbers = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    small: Any = {"compression": "zstd", "compression_level": 19, "use_byte_stream_split": numbers}
    small["use_dictionary"] = [name for name in table.column_names if name not in numbers]
    pq.write_table(table.replace_schema_metadata({ARCHIVE: json.dumps(about)}), file, **small)


def described(source: Path) -> tuple[dict[str, Any], Frame]:
    """What `sweep.json` of a sweep, or an archive of its rows, says, with the jobs and those missing; and the rows."""
    if source.is_file():
        return archived(source)
    store = Store.existing(source)
    rows = store.rows()
    # The rows of a sweep without a plan are there all the same.
    jobs, missing, _ = store.progress() if store.planned else (rows["job"].nunique(), 0, 0)
    return {**store.about(), "jobs": jobs, "missing": missing}, rows


def archived(file: Path) -> tuple[dict[str, Any], Frame]:
    """What `initfree bench export --format parquet` wrote: the sweep's description, and its rows."""
    try:
        table = pq.ParquetFile(file).read()
        return json.loads((table.schema.metadata or {})[ARCHIVE]), table.to_pandas()
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        expected = "expected what `initfree bench export --format parquet` wrote"
        raise InputError(f"{file} is no archive of rows; {expected}") from error


def _read(part: Path, columns: list[str] | None = None, advice: str = "delete it to repeat its jobs") -> pa.Table:
    try:
        return pq.ParquetFile(part).read(columns)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise InputError(f"{part} cannot be read: {' '.join(str(error).split())}; {advice}") from error
