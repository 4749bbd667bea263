"""From a COLMAP database to a model: initfree and COLMAP's two mappers on the same database, one after the other.

AUC@5 against the reference model of the photographs, over the images that the database has. Intrinsics: COLMAP's guess as it
stands in the database (refined), the reference's camera (known), and that with a focal length too long (given as known).

INITFREE_DATA=... python benchmarks/databases.py --databases south-30 --mappers
"""

import shutil
import sqlite3
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap
import tyro
from data import data_directory
from rich.console import Console

import initfree
from initfree.api import as_model
from initfree.evaluation import evaluate_models
from initfree.reconstruction import Reconstruction


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    method: str
    intrinsics: str
    cameras: int
    rotation: float
    translation: float
    verdict: str
    seconds: float
    cpu: float

    def cells(self) -> str:
        return (
            f"| {self.method} | {self.intrinsics} | {self.cameras} | {self.rotation:.2f} / {self.translation:.2f} "
            f"| {self.verdict} | {self.seconds:.1f} | {self.cpu:.1f} |"
        )


def with_camera(database: Path, folder: Path, camera: pycolmap.Camera | None, factor: float = 1.0) -> Path:
    """A copy of the database, with another camera where one is given; its prior is then said to be known."""
    copy = folder / f"{database.stem}.db"
    shutil.copy(database, copy)
    if camera is not None:
        params = np.array(camera.params)
        params[camera.focal_length_idxs()] *= factor
        with sqlite3.connect(copy) as connection:
            connection.execute(
                "UPDATE cameras SET model = ?, params = ?, prior_focal_length = 1",
                (int(camera.model.value), params.astype(np.float64).tobytes()),
            )
    return copy


def score(model: Reconstruction, reference: Reconstruction, names: set[str]) -> tuple[int, float, float]:
    """Cameras recovered and AUC@5 over the images of the database."""
    chosen = np.array([k for k, name in enumerate(reference.names) if name in names])
    truth = reference.subset(chosen, slice(None))
    metrics = evaluate_models(model, truth)
    return metrics.cameras_recovered, metrics.rotation_auc5, metrics.translation_auc5


def solved(path: Path, intrinsics: str, reference: Reconstruction) -> Row:
    """Reading, solving and the verdict."""
    began, cpu = time.perf_counter(), time.process_time()
    problem = initfree.load(path)
    result = initfree.solve(problem)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    names = {image.name for image in problem.observations.images}
    verdict = "accepted" if result.accepted else f"not accepted: {result.certificate.reason[:60]}"
    return Row("initfree", intrinsics, *score(result.reconstruction, reference, names), verdict, seconds, cpu)


def mapped(path: Path, intrinsics: str, kind: str, reference: Reconstruction, names: set[str]) -> Row:
    """COLMAP's mapper as it comes, colours aside."""
    began, cpu = time.perf_counter(), time.process_time()
    level, pycolmap.logging.minloglevel = pycolmap.logging.minloglevel, 3
    with tempfile.TemporaryDirectory(prefix="initfree-") as output:
        if kind == "incremental":
            options = pycolmap.IncrementalPipelineOptions()
            options.extract_colors = False
            models = pycolmap.incremental_mapping(path, output, output, options)
        else:
            models = pycolmap.global_mapping(path, output, output, pycolmap.GlobalPipelineOptions())
    pycolmap.logging.minloglevel = level
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    best = max(models.values(), key=lambda model: model.num_reg_images())
    return Row(f"COLMAP {kind}", intrinsics, *score(as_model(best), reference, names), "", seconds, cpu)


def main(
    databases: tuple[str, ...] = ("south-30", "south-128"), off: tuple[float, ...] = (1.03, 1.06, 1.1), mappers: bool = False
) -> None:
    """Print a table for each database.

    Args:
        databases: Names in south_building/databases.
        off: Factors of the right focal length, given as known.
        mappers: Run COLMAP's mappers on the same databases too.
    """
    progress = Console(stderr=True)
    place = data_directory() / "south_building"
    model = pycolmap.Reconstruction(str(place / "sparse"))
    (camera,) = model.cameras.values()
    reference = as_model(model)
    for name in databases:
        database = place / "databases" / f"{name}.db"
        cases = [("guess", None, 1.0), ("right", camera, 1.0), *((f"{f - 1.0:+.0%} long", camera, f) for f in off)]
        rows = []
        with tempfile.TemporaryDirectory(prefix="initfree-") as scratch:
            for intrinsics, given, factor in cases:
                path = with_camera(database, Path(scratch), given, factor)
                rows.append(solved(path, intrinsics, reference))
                progress.log(rows[-1].cells())
                if mappers and intrinsics in ("guess", "right"):
                    names = {image.name for image in initfree.load(path).observations.images}
                    for kind in ("incremental", "global"):
                        rows.append(mapped(path, intrinsics, kind, reference, names))
                        progress.log(rows[-1].cells())
        print(f"**{name}**\n")
        print("| method | intrinsics | cameras | rotation / translation AUC@5 | verdict | seconds | CPU seconds |")
        print("|---|---|---:|---:|---|---:|---:|")
        print("\n".join(row.cells() for row in rows) + "\n")


if __name__ == "__main__":
    tyro.cli(main)
