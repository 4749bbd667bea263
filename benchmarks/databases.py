"""From a COLMAP database to a model: initfree and COLMAP's two mappers on the same database, one after the other.

AUC@5 against a reference, over the images that the database has: the model of all 128 photographs of South Building, or, of
a name like set2-36 (a preset of the generator and a number of images), the exact truth; those images are rendered first, and
go through COLMAP's SIFT, exhaustive matching and verification. And against COLMAP's incremental model of the same database
with its guess of the camera. Intrinsics: that guess as it stands in the database (refined), the reference's camera (known),
and that with a focal length too long or too short (given as known). COLMAP's mappers run once each, on the database as it
stands: they refine whatever they are given.

INITFREE_DATA=... python benchmarks/databases.py --databases south-30 set2-36 --mappers incremental global
"""

import shutil
import sqlite3
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pycolmap
import tyro
from data import data_directory
from rich.console import Console

import initfree
from initfree.api import as_model
from initfree.data.reconstruction import Reconstruction
from initfree.evaluation import evaluate_models
from initfree.io.quiet import quiet


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    method: str
    intrinsics: str
    cameras: int
    scores: tuple[str, ...]
    """rotation / translation AUC@5 against each reference"""
    verdict: str
    seconds: float
    cpu: float

    def cells(self) -> str:
        scores = " | ".join(self.scores)
        return (
            f"| {self.method} | {self.intrinsics} | {self.cameras} | {scores} "
            f"| {self.verdict} | {self.seconds:.1f} | {self.cpu:.1f} |"
        )


@dataclass(frozen=True)
class Case:
    """A database, and the model and the camera that are right for its images."""

    path: Path
    reference: Reconstruction
    camera: pycolmap.Camera


def of_photographs(name: str) -> Case:
    """Of South Building, by name."""
    place = data_directory() / "south_building"
    model = pycolmap.Reconstruction(str(place / "sparse"))
    (camera,) = model.cameras.values()
    return Case(place / "databases" / f"{name}.db", as_model(model), camera)


def of_renderings(name: str, folder: Path) -> Case:
    """Images of a preset, 800x600, rendered into the folder and matched by COLMAP."""
    from initfree.generator import generate, write

    preset, images = name.rsplit("-", 1)
    dataset = generate(preset, 0, cameras=int(images), points=300, density=4.0, width=800, height=600)
    write(dataset, folder, database=False, figures=False, render=True)
    extraction, matching = pycolmap.FeatureExtractionOptions(), pycolmap.FeatureMatchingOptions()
    extraction.sift.max_num_features = 4096
    path, device = folder / f"{name}.db", pycolmap.Device.cpu
    with quiet():
        pycolmap.extract_features(
            path, folder / "images", camera_mode=pycolmap.CameraMode.SINGLE, extraction_options=extraction, device=device
        )
        pycolmap.match_exhaustive(path, matching_options=matching, device=device)
    return Case(path, as_model(folder / "sparse" / "0"), dataset.cameras[0])


def with_camera(database: Path, folder: Path, camera: pycolmap.Camera | None, factor: float = 1.0) -> Path:
    """A copy of the database, with another camera where one is given."""
    copy = folder / f"{database.stem}.db"
    shutil.copy(database, copy)
    if camera is not None:
        params = np.array(camera.params)
        params[camera.focal_length_idxs()] *= factor
        with sqlite3.connect(copy) as connection:
            connection.execute(
                "UPDATE cameras SET model = ?, params = ?",
                (int(camera.model.value), params.astype(np.float64).tobytes()),
            )
    return copy


def scores(model: Reconstruction, references: list[Reconstruction], names: set[str]) -> tuple[int, tuple[str, ...]]:
    """Cameras recovered and AUC@5 over the images of the database, against each reference."""
    found = []
    for reference in references:
        chosen = np.array([k for k, name in enumerate(reference.names) if name in names])
        found.append(evaluate_models(model, reference.subset(chosen, slice(None))))
    return found[0].cameras_recovered, tuple(f"{one.rotation_auc5:.2f} / {one.translation_auc5:.2f}" for one in found)


def solved(path: Path, intrinsics: str, references: list[Reconstruction]) -> Row:
    """Reading, solving and the verdict."""
    began, cpu = time.perf_counter(), time.process_time()
    problem = initfree.load(path, intrinsics=None if intrinsics == "guess" else "known")
    result = initfree.solve(problem)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    names = {image.name for image in problem.observations.images}
    verdict = "accepted" if result.accepted else f"not accepted: {result.certificate.reason[:60]}"
    return Row("initfree", intrinsics, *scores(result.reconstruction, references, names), verdict, seconds, cpu)


@dataclass(frozen=True)
class Mapped:
    """What a mapper made of a database."""

    kind: str
    models: tuple[Reconstruction, ...]
    """largest first"""
    seconds: float
    cpu: float

    @property
    def model(self) -> Reconstruction:
        return self.models[0]

    def row(self, intrinsics: str, references: list[Reconstruction], names: set[str]) -> Row:
        return Row(
            f"COLMAP {self.kind}", intrinsics, *scores(self.model, references, names), "", self.seconds, self.cpu
        )  # fmt: skip


def mapped(path: Path, kind: str) -> Mapped:
    """COLMAP's mapper as it comes, colours aside; no models where it makes none."""
    began, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory(prefix="initfree-") as output, quiet():
        if kind == "incremental":
            options = pycolmap.IncrementalPipelineOptions()
            options.extract_colors = False
            models = pycolmap.incremental_mapping(path, output, output, options)
        else:
            models = pycolmap.global_mapping(path, output, output, pycolmap.GlobalPipelineOptions())
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    found = sorted(models.values(), key=lambda model: -model.num_reg_images())
    return Mapped(kind, tuple(as_model(model) for model in found), seconds, cpu)


def main(
    databases: tuple[str, ...] = ("south-30", "south-128"),
    given: tuple[Literal["guess", "right"], ...] = ("guess", "right"),
    off: tuple[float, ...] = (1.03, 1.06, 1.1, 0.97, 0.94, 0.9),
    mappers: tuple[Literal["incremental", "global"], ...] = (),
) -> None:
    """Print a table for each database.

    Args:
        databases: Names in south_building/databases, or of a preset of the generator with a number of images.
        given: The camera as it stands in the database, the right one, or both.
        off: Factors of the right focal length, given as known.
        mappers: COLMAP's, to run on the databases as they stand.
    """
    progress = Console(stderr=True)
    for name in databases:
        with tempfile.TemporaryDirectory(prefix="initfree-") as scratch:
            folder = Path(scratch)
            case = of_photographs(name) if name.startswith("south-") else of_renderings(name, folder / "rendered")
            cases = [(word, case.camera if word == "right" else None, 1.0) for word in given]
            cases += [(f"{abs(f - 1.0):.0%} {'long' if f > 1.0 else 'short'}", case.camera, f) for f in off]
            names = {image.name for image in initfree.load(case.path).observations.images}
            rows, references = [], [case.reference]
            for intrinsics, camera, factor in cases:
                path = with_camera(case.path, folder, camera, factor)
                models = [mapped(path, kind) for kind in mappers if camera is None]
                references += [one.model for one in models if one.kind == "incremental"]
                rows += [solved(path, intrinsics, references), *(one.row(intrinsics, references, names) for one in models)]
                for row in rows[-1 - len(models) :]:
                    progress.log(row.cells())
        columns = ["AUC@5"] if len(references) == 1 else ["AUC@5, reference", "AUC@5, COLMAP incremental"]
        print(f"**{name}**\n")
        print(f"| method | intrinsics | cameras | {' | '.join(columns)} | verdict | seconds | CPU seconds |")
        print(f"|---|---|---:|{'---:|' * len(columns)}---|---:|---:|")
        print("\n".join(row.cells() for row in rows) + "\n")


if __name__ == "__main__":
    tyro.cli(main)
