"""What a finished or running sweep left on disk, read whole."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from initfree.benchmark.pictures import picture_name
from initfree.benchmark.report.names import AUCS
from initfree.benchmark.store import Store, archived
from initfree.errors import InputError

_TEXT = (
    *("key", "job", "method", "set", "formulation", "init", "loss", "rotations", "upgrade", "intrinsics"),
    *("linear_solver", "visibility", "ose_reason", "refine_reason", "reason", "error"),
)
_NUMBERS = (
    *("seed", "min_obs", "noise", "outliers", "merged", "k1", "alpha", "beta", "cameras", "landmarks", "observations"),
    *(f"{kind}_auc{t}" for kind in ("rotation", "translation") for t in (5, 10, 20)),
    *("landmark_median", "landmark_rmse", "landmark_p90", "cameras_recovered", "scene_scale", "nullity"),
    *("ose_residual", "ose_cost", "ose_iterations", "ose_pixels", "ose_gradient", "euclidean_cost"),
    *("refine_residual", "refine_iterations", "refine_gradient"),
    *("spectral_gap", "walk_gap", "series_gap", "inner_iterations"),
    *("seconds_ose", "seconds_refine", "seconds_upgrade", "seconds_adjust", "seconds_total"),
)
_NEEDED = ("key", "job", "method", "set", "upgrade", "rotation_auc20", "translation_auc20", "landmark_rmse", "failed")


@dataclass(frozen=True)
class Sweep:
    """Rows (one a job and upgrade) and where histories, reconstructions and sets lie."""

    directory: Path
    rows: pd.DataFrame
    info: dict[str, Any]
    more: tuple[Path, ...] = ()
    """directories of further sweeps, whose rows are here too"""

    def history(self, job: str) -> dict[str, list[dict[str, float]]]:
        """Cost and seconds of every iteration by stage; empty where none was kept."""
        path = self._file("histories", f"{job}.json.gz")
        if path is None:
            return {}
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return json.load(file)

    def _file(self, *parts: str) -> Path | None:
        places = (place.joinpath(*parts) for place in (self.directory, *self.more))
        return next((path for path in places if path.exists()), None)

    def reconstruction(self, job: str) -> Path | None:
        return self._file("reconstructions", f"{job}.npz")

    def sets(self) -> list[Path]:
        """Pictures of the sets that rows are about."""
        used = (self.rows[column].tolist() for column in ("set", "seed", "min_obs"))
        named = {picture_name(name, int(seed), int(min_obs)) for name, seed, min_obs in zip(*used, strict=True)}
        return sorted(path for path in (self.directory / "sets").glob("*.npz") if path.name in named)


def load_sweep(directory: Path) -> Sweep:
    """Read the output of `initfree bench run`, or an archive of its rows; rows that arrive meanwhile are not waited for."""
    if directory.is_file():
        info, rows = archived(directory)
        return Sweep(directory.parent, complete(rows, directory), info)
    store = Store(directory)
    rows = store.rows()
    if rows.empty:
        raise InputError(f"{directory} holds no rows/part-*.parquet with rows; expected the output of `initfree bench run`")
    return Sweep(directory, complete(rows, directory), store.about())


def complete(rows: pd.DataFrame, source: object = "rows") -> pd.DataFrame:
    """Every column the report reads, with empty strings and NaN where a row has no such thing; one row a key."""
    missing = [name for name in _NEEDED if name not in rows]
    if missing:
        raise InputError(f"{source}: columns {', '.join(missing)} are missing; expected the rows of a sweep")
    rows = rows.drop_duplicates("key", keep="last").reset_index(drop=True)
    text = {name: rows[name].fillna("").astype(str).astype(object) if name in rows else "" for name in _TEXT}
    numbers = {name: pd.to_numeric(rows[name]).astype(float) if name in rows else float("nan") for name in _NUMBERS}
    # As far as an archive's single precision goes: what 99.9999999 and 100 differ by is rounding, and decides nothing.
    numbers |= {name: pd.to_numeric(rows[name]).astype(float).round(4) for name in AUCS if name in rows}
    return rows.assign(**text, **numbers, failed=rows["failed"].fillna(True).astype(bool))
