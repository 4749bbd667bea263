"""Databases of photographs as people have them: initfree beside COLMAP's mappers, one after the other in one process.

Every `*.db` of INITFREE_DATA/photographs and of the folders given, such as `rendered.py` writes them. A reference, in
`reference/NAME` beside the database (`reference/NAME/K` of several scenes), is believed; without one, COLMAP's models in
`colmap/NAME/K` are compared with and nothing more is claimed. Agreement is the AUC@5 of rotations / directions over the
images that both have, beside how many of the reference's these are. Where a reference is believed, an image is right if more
than half of its pairs with the others of its model are within 5 degrees, rotation and direction, and a model is wrong if its
AUC@20 is below 90 over its images.

Every scene is solved (`initfree.solve_components`). CPU seconds are those of this process, from the file to the verdict,
without imports; compiled code is loaded before, by a database that does not count.

Rows are kept in a file as they come (`--rows`); what it has already is not run again. Names with numbers (KIND-SEED) are
gathered by kind in a second table.

INITFREE_DATA=... python benchmarks/photographs.py --rows photographs.jsonl --mappers incremental
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pycolmap
import tyro
from data import data_directory
from databases import mapped
from numpy.typing import NDArray
from rich.console import Console

import initfree
from initfree.api import as_model
from initfree.data.reconstruction import Reconstruction
from initfree.errors import InputError
from initfree.evaluation import evaluate_models

Mapper = Literal["incremental", "global"]
DEGREES = 5.0
"""within which the pose of one image relative to another is right"""
WRONG_AUC20 = 90.0


@dataclass(frozen=True)
class Row:
    """What a method made of a database."""

    database: str
    method: str
    images: int
    """of the database"""
    placed: list[int]
    """images of every model"""
    agreement: str
    """with the references, or with COLMAP's models: AUC@5 of rotations / directions (images compared)"""
    verdicts: list[str]
    """of every model, initfree's alone"""
    cpu: float
    right: list[list[str]] | None
    """images of every model that are placed rightly; None: nothing is known of that"""
    wrong: list[bool] | None
    """whether each model is wrong"""

    def cells(self) -> str:
        placed = f"{' + '.join(str(n) for n in self.placed) or 0} of {self.images}"
        told = self.database, self.method, placed, self.agreement, f"{self.cpu:.1f}", "; ".join(self.verdicts)
        return "| " + " | ".join(told) + " |"

    @property
    def accepted(self) -> list[bool]:
        return [verdict == "accepted" for verdict in self.verdicts] or [True] * len(self.placed)


def agreement(models: Sequence[Reconstruction], references: list[Reconstruction]) -> str:
    """Of the images that both have, for every model and every reference that share three."""
    found = []
    for model in models:
        for reference in references:
            shared = _shared(model, reference)
            if len(shared) < 3:
                continue
            m = evaluate_models(model, reference.subset(shared, slice(None)))
            found.append(f"{m.rotation_auc5:.1f} / {m.translation_auc5:.1f} ({len(shared)} of {len(reference.names)})")
    return "; ".join(found)


def judged(model: Reconstruction, references: list[Reconstruction]) -> tuple[list[str], bool]:
    """The images of a model that are placed rightly, and whether it is wrong, by the reference that has most of them."""
    reference = max(references, key=lambda one: len(_shared(model, one)))
    shared = _shared(model, reference)
    if len(shared) < 2:
        return [], True
    true = reference.subset(shared, slice(None))
    place = {name: k for k, name in enumerate(model.names)}
    own = model.subset(np.array([place[name] for name in true.names]), slice(None))
    near = _relative_errors(own, true) <= DEGREES
    np.fill_diagonal(near, val=False)
    # Images of another scene have no place in this one.
    right = near.sum(axis=1) > 0.5 * (len(model.names) - 1)
    m = evaluate_models(own, true)
    wrong = min(m.rotation_auc20, m.translation_auc20) < WRONG_AUC20 or len(shared) < len(model.names)
    return [true.names[k] for k in np.flatnonzero(right)], wrong


def _relative_errors(a: Reconstruction, b: Reconstruction) -> NDArray[np.float64]:
    """(images, images) degrees: the larger of the errors of the relative rotation and of the direction to the other."""
    angles = []
    turns = [np.einsum("iab,jcb->ijac", one.R, one.R) for one in (a, b)]
    trace = np.einsum("ijab,ijab->ij", *turns)
    angles.append(np.arccos(np.clip(0.5 * (trace - 1.0), -1.0, 1.0)))
    ways = []
    for one in (a, b):
        way = np.einsum("iab,ijb->ija", one.R, one.centres[None] - one.centres[:, None])
        ways.append(way / np.maximum(np.linalg.norm(way, axis=2, keepdims=True), 1e-300))
    angles.append(np.arccos(np.clip(np.einsum("ija,ija->ij", *ways), -1.0, 1.0)))
    return np.degrees(np.maximum(*angles))


def _shared(model: Reconstruction, reference: Reconstruction) -> NDArray[np.int64]:
    have = set(model.names)
    return np.array([k for k, name in enumerate(reference.names) if name in have], dtype=np.int64)


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
    """Every scene, from the file to the verdict."""
    cpu = time.process_time()
    try:
        results = initfree.solve_components(initfree.load(path))
    except InputError as error:
        return _row(path, "initfree", images, [], [f"no problem: {error}"], time.process_time() - cpu)
    cpu = time.process_time() - cpu
    verdicts = ["accepted" if one.accepted else f"not accepted: {one.certificate.reason}" for one in results]
    return _row(path, "initfree", images, [one.reconstruction for one in results], verdicts, cpu)


def placed_by(path: Path, images: int, mapper: Mapper) -> Row:
    """By COLMAP, every model that it made."""
    cpu = time.process_time()
    try:
        found = mapped(path, mapper)
    except ValueError:
        return _row(path, f"COLMAP {mapper}", images, [], [], time.process_time() - cpu)
    return _row(path, f"COLMAP {mapper}", images, list(found.models), [], found.cpu)


def _row(path: Path, method: str, images: int, models: list[Reconstruction], verdicts: list[str], cpu: float) -> Row:
    references, believed = references_of(path)
    words = agreement(models, references) if believed or method != "COLMAP incremental" else ""
    told = [judged(model, references) for model in models] if believed else None
    return Row(
        path.stem, method, images, [len(model.names) for model in models], words, verdicts, cpu,
        None if told is None else [right for right, _ in told], None if told is None else [wrong for _, wrong in told],
    )  # fmt: skip


def by_kind(rows: list[Row]) -> list[str]:
    """One line for each kind of KIND-SEED, of those that both methods have."""
    kinds: dict[str, dict[str, dict[str, Row]]] = {}
    for row in rows:
        kind, _, seed = row.database.rpartition("-")
        if kind and seed.isdigit() and row.right is not None:
            kinds.setdefault(kind, {}).setdefault(seed, {})[row.method] = row
    lines, everything = [], []
    for kind, seeds in sorted(kinds.items()):
        both = [(one["initfree"], one["COLMAP incremental"]) for one in seeds.values() if len(one) > 1]
        everything += both
        lines.append(_line(kind, both))
    return [*lines, _line("all", everything)] if lines else []


def _line(kind: str, both: list[tuple[Row, Row]]) -> str:
    ours, theirs = [a for a, _ in both], [b for _, b in both]
    kept = sum(len(_right(b, b.accepted) & _right(a, a.accepted)) for a, b in both)
    colmap, found = (sum(len(_right(row, row.accepted)) for row in some) for some in (theirs, ours))
    anyhow = sum(len(_right(row, [True] * len(row.placed))) for row in ours)
    folded = sum(any(row.wrong or []) or not row.placed for row in theirs)
    wrong = sum(w and ok for row in ours for w, ok in zip(row.wrong or [], row.accepted, strict=False))
    accepted = sum(any(row.accepted) and bool(row.placed) for row in ours)
    seconds = [f"{np.median([row.cpu for row in some]):.1f}" if some else "" for some in (ours, theirs)]
    told = (
        kind, str(len(both)), str(sum(row.images for row in ours)), str(colmap), str(folded), str(found), str(anyhow),
        f"{kept / max(colmap, 1):.1%}", str(accepted), str(wrong), *seconds,
    )  # fmt: skip
    return "| " + " | ".join(told) + " |"


def _right(row: Row, which: list[bool]) -> set[str]:
    return {name for names, counts in zip(row.right or [], which, strict=False) if counts for name in names}


def main(
    folders: tuple[Path, ...] = (),
    databases: tuple[str, ...] = (),
    mappers: tuple[Mapper, ...] = (),
    rows: Path = Path("photographs.jsonl"),
    own: bool = True,
) -> None:
    """Print a table.

    Args:
        folders: With databases, beside those of INITFREE_DATA/photographs.
        databases: Names of those wanted; all by default.
        mappers: COLMAP's, to run on the same databases.
        rows: Where rows are kept; those it has are not run again.
        own: Whether those of INITFREE_DATA/photographs are run too.
    """
    progress = Console(stderr=True)
    kept = [Row(**json.loads(line)) for line in rows.read_text().splitlines()] if rows.is_file() else []
    done = {(row.database, row.method) for row in kept}
    places = [*([data_directory() / "photographs"] if own else []), *folders]
    wanted = [path for place in places for path in sorted(place.glob("*.db"))]
    wanted = [path for path in wanted if not databases or path.stem in databases]
    left = [path for path in wanted if (path.stem, "initfree") not in done]
    if left:
        initfree.solve_components(initfree.load(left[0]))
    for path in wanted:
        with pycolmap.Database.open(path) as database:
            images = database.num_images()
        for row in made(path, images, mappers, done):
            progress.log(row.cells())
            kept.append(row)
            with rows.open("a") as stream:
                stream.write(json.dumps(asdict(row)) + "\n")
    print("| database | method | images | AUC@5 | CPU seconds | verdict |")
    print("|---|---|---:|---:|---:|---|")
    numbered = by_kind(kept)
    alone = [row for row in kept if not numbered or row.right is None or not row.database.rpartition("-")[2].isdigit()]
    print(
        "\n".join(row.cells() for row in sorted(alone, key=lambda row: (row.database, row.method != "initfree", row.method)))
    )
    if numbered:
        print(
            "\n| kind | runs | images | COLMAP right | COLMAP wrong or none, runs | right and accepted | right at all "
            "| accepted of COLMAP's right | accepted, runs | wrong of these | CPU seconds | COLMAP |"
        )
        print(f"|---|{'---:|' * 11}")
        print("\n".join(numbered))


if __name__ == "__main__":
    tyro.cli(main)
