"""Reconstructions small enough to live in a page: positions as 16-bit steps in a box around the truth."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from initfree.benchmark.report.names import VIEWED, display
from initfree.benchmark.report.selection import CONDITION
from initfree.benchmark.report.sweep import Sweep
from initfree.data.tracks import Array
from initfree.drawing.packed import Box, encoded, turns

LANDMARKS = 300
BUDGET = 12_000_000
"""characters of encoded reconstructions a page may hold"""
_BOX = 3.0
"""half the box's side over the largest distance of the truth from its centre"""
_CURVE_POINTS = 60
_FIELDS = ("method", "set", "formulation", "init", "loss", "rotations")


@dataclass(frozen=True)
class Scenes:
    """What the page's view reads, and how much of the sweep it holds."""

    data: dict[str, Any]
    shown: int
    available: int


def collect(sweep: Sweep, budget: int = BUDGET) -> Scenes:
    """Encode reconstructions until the budget is spent, spread evenly over sets, formulations and initialisations."""
    jobs = [(job, rows) for job, rows in sweep.rows.groupby("job", sort=True) if sweep.reconstruction(str(job))]
    firsts = pd.DataFrame([rows.iloc[0] for _, rows in jobs], columns=sweep.rows.columns)
    turn = firsts.groupby(["method", "set", "formulation", "init"]).cumcount().to_numpy()
    truths: dict[str, dict[str, Any]] = {}
    shown: list[dict[str, Any]] = []
    spent = 0
    for index in np.argsort(turn, kind="stable"):
        entry, truth_key, truth = _encode(sweep, str(jobs[index][0]), jobs[index][1])
        size = sum(map(_size, entry["upgrades"].values())) + (0 if truth_key in truths else _size(truth))
        if not entry["upgrades"] or spent + size > budget:
            continue
        spent += size
        truths[truth_key] = truth
        shown.append(entry)
    shown.sort(key=lambda e: tuple(str(e[f]) for f in (*_FIELDS, "min_obs")))
    upgrades = [u for u in VIEWED if any(u in e["upgrades"] for e in shown)]
    names = {value: display(value) for entry in shown for value in (entry[field] for field in _FIELDS) if value}
    return Scenes({"truths": truths, "jobs": shown, "upgrades": upgrades, "names": names}, len(shown), len(jobs))


def _encode(sweep: Sweep, job: str, rows: pd.DataFrame) -> tuple[dict[str, Any], str, dict[str, Any]]:
    path = sweep.reconstruction(job)
    assert path is not None
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    step = max(1, -(-len(arrays["truth_xyz"]) // LANDMARKS))
    everything = np.concatenate([arrays["truth_centres"], arrays["truth_xyz"]]).astype(float)
    box = Box.around(everything, _BOX)
    truth = {**box.to_json(), **_model(arrays, "truth", step, box)}
    first = rows.iloc[0]
    history = sweep.history(job)
    entry: dict[str, Any] = {"job": job, **{name: str(first[name]) for name in _FIELDS}}
    entry["min_obs"], entry["seed"] = int(first["min_obs"]), int(first["seed"])
    entry["condition"] = [_number(first[name]) or 0 for name in CONDITION]
    entry["ose_residual"], entry["refine_residual"] = _number(first["ose_residual"]), _number(first["refine_residual"])
    entry["ose"], entry["refinement"] = (curve(history.get(stage, [])) for stage in ("ose", "refinement"))
    entry["upgrades"] = {
        str(row["upgrade"]): {
            "failed": bool(row["failed"]),
            "rotation": _number(row["rotation_auc20"]),
            "translation": _number(row["translation_auc20"]),
            "rmse": _number(row["landmark_rmse"]),
            **_model(arrays, str(row["upgrade"]), step, box),
        }
        for _, row in rows.iterrows()
        if row["upgrade"] in VIEWED and f"{row['upgrade']}_centres" in arrays
    }
    entry["truth"] = key = hashlib.sha256((truth["centres"] + truth["points"]).encode()).hexdigest()[:12]
    return entry, key, truth


def _model(arrays: dict[str, Array], name: str, step: int, box: Box) -> dict[str, Any]:
    """Centres and quaternions of the cameras, and landmarks."""
    centres, R, xyz = (arrays[f"{name}_{part}"].astype(float) for part in ("centres", "R", "xyz"))
    xyz = xyz[::step]
    packed = {"centres": encoded(box.places(centres)), "turns": encoded(turns(R)), "points": encoded(box.places(xyz))}
    return {"landmarks": len(xyz), **packed}


def _size(model: dict[str, Any]) -> int:
    return sum(len(model[part]) for part in ("centres", "turns", "points"))


def curve(history: list[dict[str, float]]) -> list[list[float]]:
    """Pairs of iteration and cost with four digits; long curves thinned, their ends kept."""
    if not history:
        return []
    kept = np.unique(np.linspace(0, len(history) - 1, min(len(history), _CURVE_POINTS)).round().astype(int))
    return [[int(k), float(f"{history[k]['cost']:.4g}")] for k in kept if np.isfinite(history[k]["cost"])]


def _number(value: Any) -> float | None:
    return float(f"{float(value):.5g}") if pd.notna(value) and np.isfinite(float(value)) else None
