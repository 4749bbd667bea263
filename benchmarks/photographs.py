"""Databases of photographs as people have them: initfree beside COLMAP's mappers, one after the other in one process.

Every `*.db` of INITFREE_DATA/photographs and of the folders given. A reference, in `reference/NAME` beside the database, is
believed; without one, COLMAP's models in `colmap/NAME/K` are compared with and nothing more is claimed. Agreement is the
AUC@5 of rotations / directions over the images that both have, beside how many of the reference's these are.

Rows are kept in a file as they come (`--rows`); what it has already is not run again.

INITFREE_DATA=... python benchmarks/photographs.py --rows photographs.jsonl --mappers incremental
"""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pycolmap
import tyro
from data import data_directory
from databases import mapped
from rich.console import Console

import initfree
from initfree.api import as_model
from initfree.data.reconstruction import Reconstruction
from initfree.evaluation import evaluate_models

Mapper = Literal["incremental", "global"]


@dataclass(frozen=True)
class Row:
    """What a method made of a database."""

    database: str
    method: str
    images: int
    """of the database"""
    placed: int
    agreement: str
    """with the reference, or with COLMAP's models: AUC@5 of rotations / directions (images compared)"""
    verdict: str
    cpu: float

    def cells(self) -> str:
        told = self.database, self.method, f"{self.placed} of {self.images}", self.agreement, f"{self.cpu:.1f}", self.verdict
        return "| " + " | ".join(told) + " |"


def agreement(model: Reconstruction, references: list[Reconstruction]) -> str:
    """Of the images that both have, for every reference that shares three."""
    found = []
    for reference in references:
        shared = np.array([k for k, name in enumerate(reference.names) if name in set(model.names)], dtype=np.int64)
        if len(shared) < 3:
            continue
        m = evaluate_models(model, reference.subset(shared, slice(None)))
        found.append(f"{m.rotation_auc5:.1f} / {m.translation_auc5:.1f} ({len(shared)} of {len(reference.names)})")
    return "; ".join(found)


def references_of(database: Path) -> tuple[list[Reconstruction], bool]:
    """The models to compare with, largest first, and whether they are believed."""
    right = database.parent / "reference" / database.stem
    if right.is_dir():
        inner = sorted(path for path in right.iterdir() if path.is_dir())
        return [as_model(path) for path in inner or [right]], True
    found = [as_model(path) for path in sorted((database.parent / "colmap" / database.stem).glob("[0-9]*"))]
    return sorted(found, key=lambda model: -len(model.names)), False


def made(path: Path, images: int, mappers: tuple[Mapper, ...], done: set[tuple[str, str]]) -> Iterator[Row]:
    """By every method that is not done."""
    if (path.stem, "initfree") not in done:
        yield solved(path, images)
    for mapper in mappers:
        if (path.stem, f"COLMAP {mapper}") not in done:
            yield placed_by(path, images, mapper)


def solved(path: Path, images: int) -> Row:
    """From the file to the verdict."""
    references, _ = references_of(path)
    cpu = time.process_time()
    result = initfree.solve(initfree.load(path))
    cpu = time.process_time() - cpu
    model = result.reconstruction
    verdict = "accepted" if result.accepted else f"not accepted: {result.certificate.reason}"
    return Row(path.stem, "initfree", images, len(model.names), agreement(model, references), verdict, cpu)


def placed_by(path: Path, images: int, mapper: Mapper) -> Row:
    """By COLMAP, every model that it made."""
    references, believed = references_of(path)
    try:
        found = mapped(path, mapper)
    except ValueError:
        return Row(path.stem, f"COLMAP {mapper}", images, 0, "", "no model", 0.0)
    told = agreement(found.model, references) if believed or mapper != "incremental" else ""
    return Row(path.stem, f"COLMAP {mapper}", images, len(found.model.names), told, "", found.cpu)


def main(
    folders: tuple[Path, ...] = (),
    databases: tuple[str, ...] = (),
    mappers: tuple[Mapper, ...] = (),
    rows: Path = Path("photographs.jsonl"),
) -> None:
    """Print a table.

    Args:
        folders: With databases, beside those of INITFREE_DATA/photographs.
        databases: Names of those wanted; all by default.
        mappers: COLMAP's, to run on the same databases.
        rows: Where rows are kept; those it has are not run again.
    """
    progress = Console(stderr=True)
    kept = [Row(**json.loads(line)) for line in rows.read_text().splitlines()] if rows.is_file() else []
    done = {(row.database, row.method) for row in kept}
    places = [data_directory() / "photographs", *folders]
    for path in [path for place in places for path in sorted(place.glob("*.db"))]:
        if databases and path.stem not in databases:
            continue
        with pycolmap.Database.open(path) as database:
            images = database.num_images()
        for row in made(path, images, mappers, done):
            progress.log(row.cells())
            kept.append(row)
            with rows.open("a") as stream:
                stream.write(json.dumps(asdict(row)) + "\n")
    print("| database | method | images | AUC@5 | CPU seconds | verdict |")
    print("|---|---|---:|---:|---:|---|")
    print(
        "\n".join(row.cells() for row in sorted(kept, key=lambda row: (row.database, row.method != "initfree", row.method)))
    )


if __name__ == "__main__":
    tyro.cli(main)
