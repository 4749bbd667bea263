"""From a folder of photographs to a model: `initfree solve photographs` beside pycolmap's own pipeline, settings alike.

Five sets are rendered by ray casting: a ring around a courthouse (the generator), and four of the collections of
`rendered.py`: a yard taken with one camera, with strangers' cameras, as a video, and houses from a drone. Each goes from
image files to a model twice: `initfree.photographs.match`, `load` and `solve`; and pycolmap's `extract_features`,
`match_exhaustive` (`match_sequential` for a video) and `incremental_mapping`, its largest model. The same features, image
size, pairs and sharing of cameras, on the CPU; EXIF as the files have it. AUC@5 of rotations / directions against the exact
truth over all images: those without a pose count as failures. Kernels are compiled before, as they are once on a machine.

python benchmarks/from_photographs.py
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap
import tyro
from rendered import KINDS, save, write_truth
from rich.console import Console

import initfree
from initfree import photographs
from initfree.commands.warmup import compile_all
from initfree.data.reconstruction import Reconstruction
from initfree.generator import generate, write
from initfree.io import colmap
from initfree.io.load import load_model
from initfree.io.quiet import quiet
from initfree.photographs.settings import Cameras, Pairs

RING = {"cameras": 24, "width": 640, "height": 480, "focal": 600.0, "points": 1000, "density": 3.5}
"""the truth's landmarks, which no method sees, among them"""


@dataclass(frozen=True)
class Set:
    """How a set is made, and what both methods know of it."""

    make: Callable[[Path, int], None]
    """writes `images` and a model of the truth to a folder, from a seed"""
    cameras: Cameras = "single"
    pairs: Pairs = "exhaustive"


def ring(folder: Path, seed: int) -> None:
    dataset = generate("set1", seed=seed, **RING)
    write(dataset, folder, render=True, figures=False, database=False)


def collection(kind: str) -> Callable[[Path, int], None]:
    def made(folder: Path, seed: int) -> None:
        rng = np.random.default_rng([list(KINDS).index(kind), seed])
        shots = KINDS[kind](rng)
        (folder / "images").mkdir()
        save(shots, folder / "images", rng)
        write_truth(shots, folder / "sparse" / "0")

    return made


SETS = {
    "courthouse, ring, no EXIF": Set(ring),
    "yard, one camera, EXIF": Set(collection("right")),
    "yard, strangers' cameras, some EXIF": Set(collection("internet"), "image"),
    "yard, video, no EXIF": Set(collection("video"), pairs="sequential"),
    "houses, drone, EXIF to a tenth": Set(collection("strip")),
}


def ours(images: Path, database: Path, settings: photographs.Matching) -> tuple[Reconstruction | None, str]:
    """The cameras, and the verdict."""
    photographs.match(images, database, settings)
    try:
        result = initfree.solve(initfree.load(database))
    except initfree.InputError as error:
        return None, str(error)
    return result.reconstruction, "accepted" if result.accepted else "not accepted"


def theirs(images: Path, database: Path, settings: photographs.Matching) -> tuple[Reconstruction | None, str]:
    """pycolmap's."""
    extraction = pycolmap.FeatureExtractionOptions()
    extraction.max_image_size, extraction.use_gpu = settings.image_size, False
    extraction.sift.max_num_features = settings.features
    matching = pycolmap.FeatureMatchingOptions()
    matching.use_gpu = False
    pairs = pycolmap.match_sequential if settings.pairs == "sequential" else pycolmap.match_exhaustive
    with quiet():
        pycolmap.extract_features(
            database,
            images,
            camera_mode=pycolmap.CameraMode.PER_IMAGE if settings.cameras == "image" else pycolmap.CameraMode.SINGLE,
            extraction_options=extraction,
            device=pycolmap.Device.cpu,
        )
        pairs(database, matching_options=matching, device=pycolmap.Device.cpu)
        models = pycolmap.incremental_mapping(database, images, database.parent / "models")
    if not models:
        return None, ""
    return colmap.reconstruction_of(max(models.values(), key=lambda model: model.num_reg_images())), ""


METHODS = {"initfree solve photographs": ours, "pycolmap, incremental": theirs}


def main(
    sets: tuple[str, ...] = tuple(SETS),
    seeds: tuple[int, ...] = (7,),
    features: int = photographs.Matching().features,
    image_size: int = photographs.Matching().image_size,
) -> None:
    """Print a table.

    Args:
        sets: Names of `SETS`.
        seeds: Of the scenes.
        features: Most features of a photograph.
        image_size: Longer side to which larger photographs are scaled.
    """
    console = Console(stderr=True)
    compile_all()
    print("| photographs | method | placed | AUC@5 | verdict | CPU seconds | seconds |")
    print("|---|---|---:|---:|---|---:|---:|")
    for name in sets:
        for seed in seeds:
            one = SETS[name]
            settings = photographs.Matching(features, image_size, one.pairs, one.cameras)
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                with console.status(f"rendering {name}"):
                    one.make(folder, seed)
                truth = load_model(folder / "sparse" / "0")
                for method, run in METHODS.items():
                    (folder / method).mkdir()
                    with console.status(f"{name}: {method}"):
                        began, wall = time.process_time(), time.perf_counter()
                        found, verdict = run(folder / "images", folder / method / "database.db", settings)
                        cpu, wall = time.process_time() - began, time.perf_counter() - wall
                    scores = "0", "0 / 0"
                    if found is not None:
                        m = initfree.evaluate(found, truth)
                        scores = str(len(found.names)), f"{m.rotation_auc5:.1f} / {m.translation_auc5:.1f}"
                    placed = f"{scores[0]} of {len(truth.names)}"
                    print(f"| {name} | {method} | {placed} | {scores[1]} | {verdict} | {cpu:.1f} | {wall:.1f} |", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
