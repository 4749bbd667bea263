"""Rows and sweep directories made by hand, as `initfree bench run` would leave them."""

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd

from initfree.benchmark.report.sweep import complete

GOOD = {
    "rotation_auc5": 95.0,
    "rotation_auc20": 99.0,
    "translation_auc5": 94.0,
    "translation_auc20": 98.0,
    "landmark_rmse": 0.1,
}
BAD = {"rotation_auc5": 0.0, "rotation_auc20": 2.0, "translation_auc5": 0.0, "translation_auc20": 5.0, "landmark_rmse": 41.0}
_counter = itertools.count()


def row(**values: object) -> dict:
    """A row of the paper's pipeline that succeeded, unless told otherwise; `failed` follows the paper's definition."""
    found: dict = {
        "key": f"key{next(_counter)}", "method": "initfree", "set": "set1", "seed": 0, "min_obs": 3, "noise": 0.0,
        "outliers": 0.0, "merged": 0.0, "formulation": "pose", "init": "normal", "loss": "none", "rotations": "",
        "upgrade": "linear1997", "cameras": 12.0, "landmarks": 100.0, "observations": 500.0, "cameras_recovered": 12.0,
        "rotation_auc10": 97.0, "translation_auc10": 96.0, "landmark_median": 0.05, "landmark_p90": 0.2,
        "scene_scale": 41.0, "ose_residual": 1e-3, "refine_residual": 0.5, "ose_iterations": 20, "refine_iterations": 10,
        "euclidean_cost": 1.0, "accepted": None, "reason": "", "error": "", "seconds_ose": 1.0, "seconds_refine": 2.0,
        "seconds_upgrade": 0.5, "seconds_adjust": 0.0, "seconds_total": 4.0, **GOOD, **values,
    }  # fmt: skip
    names = ("method", "set", "seed", "min_obs", "noise", "outliers", "formulation", "init", "loss", "rotations")
    found.setdefault("job", "job-" + "-".join(str(found[name]) for name in names))
    rotation, translation, rmse = (found[k] for k in ("rotation_auc20", "translation_auc20", "landmark_rmse"))
    found.setdefault("failed", not (rotation >= 20 and translation >= 20 and rmse <= 30))
    return found


def frame(*rows: dict) -> pd.DataFrame:
    return complete(pd.DataFrame(list(rows)))


def made_sweep(directory: Path, sets: tuple[str, ...] = ("set1", "set2"), seed: int = 0) -> Path:
    """A whole sweep directory with a grid of made-up outcomes: rows, histories, reconstructions, sets."""
    rng = np.random.default_rng(seed)
    for name in ("rows", "histories", "reconstructions", "sets"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    rows: list[dict] = []
    formulations = ("pose", "rose", "rpose", "expose", "pose-rot")
    grid = itertools.product(sets, (3, 6), formulations, ("normal", "unit-circle"), ("none", "cauchy"))
    for name, min_obs, formulation, init, loss in grid:
        rotations = "truth" if formulation == "pose-rot" else ""
        values = {
            "set": name,
            "min_obs": min_obs,
            "formulation": formulation,
            "init": init,
            "loss": loss,
            "rotations": rotations,
        }
        failed = rng.random() < 0.5
        residuals = {"ose_residual": 10 ** rng.uniform(-4, -2), "refine_residual": 10 ** (rng.normal(0, 0.3) + 1.5 * failed)}
        for upgrade in ("before", "linear1997", "selected"):
            rows.append(row(**values, upgrade=upgrade, **residuals, **(BAD if failed or upgrade == "before" else GOOD)))
        _files(directory, rows[-1]["job"], rng, failed)
    rows += [
        row(method=m, set=s, formulation="", init="", loss="", upgrade="adjusted") for m in ("auto", "oracle") for s in sets
    ]
    rows.append(
        row(set=sets[0], init="uniform", error="RuntimeError: made up", **dict.fromkeys(BAD, float("nan")), failed=True)
    )
    for init in ("normal", "unit-circle"):
        failed = init == "normal"
        rows.append(row(set="ladybug-49", min_obs=10, init=init, **(BAD if failed else GOOD)))
        _files(directory, rows[-1]["job"], rng, failed)
    pd.DataFrame(rows).to_parquet(directory / "rows" / "part-000000-made.parquet")
    (directory / "sweep.json").write_text(json.dumps({"name": "made", "cores": 2}))
    for name in sets:
        shared = rng.integers(0, 30, (12, 12))
        statistics = np.array(json.dumps({"observations_a_landmark": 5.0}))
        np.savez(
            directory / "sets" / f"{name}-0-3.npz",
            **_scene(rng, "truth", 0.0),
            covisibility=shared + shared.T,
            statistics=statistics,
        )
    return directory


def _scene(rng: np.random.Generator, name: str, spread: float) -> dict[str, np.ndarray]:
    """Twelve cameras on a ring that look inwards at landmarks of a ball; `spread` spoils them."""
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    centres = np.stack([30 * np.cos(angle), 30 * np.sin(angle), np.zeros(12)], axis=1)
    ahead = -centres / 30
    down = np.tile([0.0, 0.0, -1.0], (12, 1))
    R = np.stack([np.cross(down, ahead), down, ahead], axis=1)
    xyz = np.random.default_rng(1).normal(0, 8, (400, 3))
    centres, xyz = (x + rng.normal(0, spread + 1e-9, x.shape) for x in (centres, xyz))
    return {f"{name}_{part}": x.astype(np.float32) for part, x in (("centres", centres), ("R", R), ("xyz", xyz))}


def _files(directory: Path, job: str, rng: np.random.Generator, failed: bool) -> None:
    parts = [_scene(rng, "truth", 0.0), *(_scene(rng, u, 12.0 if failed else 0.1) for u in ("linear1997", "selected"))]
    np.savez_compressed(directory / "reconstructions" / f"{job}.npz", **{k: v for part in parts for k, v in part.items()})
    steps = np.arange(25)
    stages = {"ose": np.exp(-0.3 * steps) + 0.01, "refinement": np.exp(-0.1 * steps) + (0.5 if failed else 1e-4)}
    history = {stage: [{"cost": float(c), "seconds": 0.1} for c in costs] for stage, costs in stages.items()}
    with gzip.open(directory / "histories" / f"{job}.json.gz", "wt") as file:
        json.dump(history, file)
