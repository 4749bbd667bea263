"""From tracks alone: initfree and COLMAP's global mapper on the same tracks, one after the other, on all cores.

    INITFREE_DATA=... OPENBLAS_NUM_THREADS=1 python benchmarks/tracks.py

COLMAP takes pairs, so the tracks become matches of a database, which COLMAP verifies (its time counts, apart). The mapper
is set up as well as it can be (`benchmark.mappers`): intrinsics fixed to the known ones, pairs of eight matches and more.
Both know the intrinsics. Each problem is solved once before, for what has to be compiled or loaded.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap
import tyro
from data import data_directory
from numpy.typing import NDArray

import initfree
from initfree.api import as_model
from initfree.benchmark.mappers import FEWEST, global_mapping
from initfree.data.problem import Problem
from initfree.data.recalibration import keypoints_of
from initfree.data.reconstruction import Reconstruction
from initfree.evaluation import evaluate_models
from initfree.generator.database import write_database
from initfree.generator.projections import Projections
from initfree.io.quiet import quiet

SETS = ("fountain-p11", "castle-p19", "south-building")


@dataclass(frozen=True)
class Clock:
    """Seconds, and CPU seconds of all threads, or between two moments."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> "Clock":
        return cls(time.perf_counter(), time.process_time())

    def __sub__(self, before: "Clock") -> "Clock":
        return Clock(self.wall - before.wall, self.cpu - before.cpu)


@dataclass(frozen=True)
class Given:
    """The observations that a problem uses, for `write_database`."""

    names: tuple[str, ...]
    cameras: list[pycolmap.Camera]
    camera_of_image: NDArray[np.int64]
    landmarks: range
    noisy: Projections

    @classmethod
    def to(cls, problem: Problem) -> "Given":
        ids, camera_of_image = np.unique(problem.camera_ids, return_inverse=True)
        t = problem.tracks
        seen = Projections(t.cam.astype(np.int32), t.landmark.astype(np.int32), keypoints_of(problem))
        cameras = [problem.observations.cameras[int(k)] for k in ids]
        return cls(tuple(problem.names), cameras, camera_of_image, range(t.landmarks), seen)


def places(name: str) -> tuple[Path, Path]:
    """Input and reference of a set of real/, or the South Building's model for both: poses are not read."""
    if name == "south-building":
        model = data_directory() / "south_building" / "sparse"
        return model, model
    place = data_directory() / "real" / name
    return place / "input", place / "gt" / "sparse" / "0"


def row(name: str, method: str, model: Reconstruction, reference: Reconstruction, took: str, verdict: str) -> str:
    found = evaluate_models(model, reference)
    auc = f"{found.rotation_auc5:.2f} / {found.translation_auc5:.2f}"
    return f"| {name} | {method} | {found.cameras_recovered} of {len(reference.names)} | {auc} | {took} | {verdict} |"


def main(sets: tuple[str, ...] = SETS, warm: bool = True) -> None:
    """Print a table.

    Args:
        sets: Folders of real/, or south-building.
        warm: Solve each once before.
    """
    print("| data | method | images | AUC@5 | seconds | CPU seconds | verdict |")
    print("|---|---|---:|---:|---:|---:|---|")
    for name in sets:
        given, truth = places(name)
        problem, reference = initfree.load(given), as_model(truth)
        if warm:
            initfree.solve(problem)
        problem = initfree.load(given)
        began = Clock.now()
        result = initfree.solve(problem)
        took = Clock.now() - began
        verdict = "accepted" if result.accepted else f"not accepted: {result.certificate.reason}"
        cells = f"{took.wall:.1f} | {took.cpu:.1f}"
        print(row(name, "initfree", result.reconstruction, reference, cells, verdict), flush=True)
        with tempfile.TemporaryDirectory(prefix="initfree-") as scratch, quiet():
            database = Path(scratch, "database.db")
            began = Clock.now()
            write_database(Given.to(problem), database, FEWEST)
            verified = Clock.now()
            models = global_mapping(database, Path(scratch), 0, threads=-1)
            mapping, verifying = Clock.now() - verified, verified - began
        if not models:
            print(f"| {name} | COLMAP global | none | | | | |", flush=True)
            continue
        best = as_model(max(models.values(), key=lambda model: model.num_reg_images()))
        cells = f"{verifying.wall:.1f} + {mapping.wall:.1f} | {verifying.cpu:.1f} + {mapping.cpu:.1f}"
        print(row(name, "COLMAP global", best, reference, cells, ""), flush=True)


if __name__ == "__main__":
    tyro.cli(main)
