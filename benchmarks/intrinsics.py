"""Intrinsics that are wrong, guessed or unknown: what the last stage of a solve makes of them.

Every problem is solved from nothing with the intrinsics as given, by `auto`, which ends with `recalibrate`. AUC@5 of
rotations and translations in percent; error is the mean over observations that fit, in pixels.

INITFREE_DATA=... OPENBLAS_NUM_THREADS=1 python benchmarks/intrinsics.py
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pycolmap
import tyro
from data import data_directory
from rich.console import Console
from rich.table import Table

import initfree
from initfree.data.problem import Problem
from initfree.data.recalibration import found_camera
from initfree.generator import generate
from initfree.result import Result

Part = Literal["studio", "long"]
FACTORS = (1.0, 1.03, 1.06, 1.1)


def with_long_focals(model: pycolmap.Reconstruction, factor: float) -> pycolmap.Reconstruction:
    """The model with all focal lengths times `factor`."""
    result = pycolmap.Reconstruction(model)
    for camera in result.cameras.values():
        params = np.array(camera.params)
        params[camera.focal_length_idxs()] *= factor
        camera.params = params
    return result


def studio(guess: bool) -> tuple[pycolmap.Reconstruction, Path]:
    """The ring of 16 cameras, with its calibration or with the guess that its own software began from."""
    home = data_directory() / "arrays" / "studio16"
    model = pycolmap.Reconstruction(home / "input" / "sparse" / "0")
    if guess:
        initial = json.loads((home / "cam_params_initial.json").read_text())
        for camera_id, camera in model.cameras.items():
            given = initial[str(camera_id - 1)]
            names = ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3")
            camera.params = [*(given[name] for name in names), 0.0, 0.0, 0.0]
    return model, home / "gt" / "sparse" / "0"


@dataclass(frozen=True)
class Row:
    """A problem, and what became of it."""

    name: str
    given: str
    result: Result
    seconds: float
    truth: pycolmap.Reconstruction | Path | None

    def cells(self) -> list[str]:
        result = self.result
        auc = "-"
        if self.truth is not None:
            metrics = initfree.evaluate(result, self.truth)
            auc = f"{metrics.rotation_auc5:.1f} / {metrics.translation_auc5:.1f}"
            if self.given.startswith("unknown"):
                auc += f" (@20 {metrics.rotation_auc20:.1f} / {metrics.translation_auc20:.1f})"
        focal = focal_lengths(result.problem, result)
        spread = f"{focal.min():.1f}" if np.ptp(focal) < 0.5 else f"{focal.min():.1f}-{focal.max():.1f}"
        return [
            self.name, self.given, auc, f"{result.certificate.evidence.mean_pixels:.4f}", spread,
            "yes" if result.accepted else f"no: {result.certificate.reason}", f"{self.seconds:.1f}",
            "; ".join(result.notes) or "as given",
        ]  # fmt: skip


def focal_lengths(problem: Problem, result: Result) -> np.ndarray:
    """Of every camera, in pixels."""
    cameras, r = problem.observations.cameras, result.reconstruction
    ids = np.unique(problem.camera_ids)
    found = [cameras[k] if problem.calibrated else found_camera(problem, r.focal, r.radial, k) for k in ids.tolist()]
    return np.array([camera.mean_focal_length() for camera in found])


def solved(name: str, given: str, problem: Problem, truth: pycolmap.Reconstruction | Path | None) -> Row:
    began = time.perf_counter()
    result = initfree.solve(problem)
    return Row(name, given, result, time.perf_counter() - began, truth)


def rows(parts: tuple[Part, ...], sets: tuple[str, ...], seed: int) -> Iterator[Row]:
    if "studio" in parts:
        for intrinsics in ("known", "refine", "unknown"):
            model, truth = studio(guess=intrinsics == "refine")
            yield solved("studio16", intrinsics, initfree.load(model, intrinsics=intrinsics), truth)
    if "long" in parts:
        for name in sets:
            if name == "south_building":
                truth = given = pycolmap.Reconstruction(data_directory() / "south_building" / "sparse")
            else:
                dataset = generate(name, seed=seed, noise=0.5)
                truth, given = dataset.to_colmap(), dataset.to_colmap(noisy=True)
            for factor in FACTORS:
                yield solved(name, f"f {factor - 1.0:+.0%}", initfree.load(with_long_focals(given, factor)), truth)


def main(
    parts: tuple[Part, ...] = ("studio", "long"),
    sets: tuple[str, ...] = ("set1", "set3", "south_building"),
    seed: int = 0,
) -> None:
    """Print one table.

    Args:
        parts: Which problems: the array `studio`, or focal lengths too `long`.
        sets: Problems of `long`.
        seed: Of the generated problems.
    """
    table = Table("problem", "intrinsics", "AUC@5", "error", "focal", "accepted", "s", "what was done")
    console = Console(width=200)
    for row in rows(parts, sets, seed):
        cells = row.cells()
        console.log(" | ".join(cells))
        table.add_row(*cells)
    console.print(table)


if __name__ == "__main__":
    tyro.cli(main)
