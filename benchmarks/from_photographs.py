"""From a folder of photographs to a model: `initfree solve photographs` beside pycolmap's own pipeline, settings alike.

Each set is rendered by ray casting (a preset of the generator, from cameras whose focal length nothing tells) and goes from
image files to a model twice: `initfree.photographs.match`, `load` and `solve`; and pycolmap's `extract_features`,
`match_exhaustive` and `incremental_mapping`, its largest model. The same features, image size and one camera, on the CPU.
AUC@5 of rotations / directions against the exact truth over all images: those without a pose count as failures.

python benchmarks/from_photographs.py --sets set1-24 set7-24
"""

import tempfile
import time
from pathlib import Path

import pycolmap
import tyro
from rich.console import Console

import initfree
from initfree import photographs
from initfree.data.reconstruction import Reconstruction
from initfree.generator import generate, write
from initfree.io import colmap
from initfree.io.load import load_model
from initfree.io.quiet import quiet

WIDTH, HEIGHT, FOCAL = 640, 480, 600.0
POINTS, DENSITY = 1000, 3.5
"""of the truth's landmarks, which no method sees"""


def ours(images: Path, database: Path, settings: photographs.Matching) -> tuple[Reconstruction | None, str]:
    """The cameras, and the verdict."""
    photographs.match(images, database, settings)
    result = initfree.solve(initfree.load(database))
    return result.reconstruction, "accepted" if result.accepted else "not accepted"


def theirs(images: Path, database: Path, settings: photographs.Matching) -> tuple[Reconstruction | None, str]:
    """pycolmap's, with one camera for all photographs, as ours."""
    extraction = pycolmap.FeatureExtractionOptions()
    extraction.max_image_size, extraction.use_gpu = settings.image_size, False
    extraction.sift.max_num_features = settings.features
    matching = pycolmap.FeatureMatchingOptions()
    matching.use_gpu = False
    with quiet():
        pycolmap.extract_features(
            database,
            images,
            camera_mode=pycolmap.CameraMode.SINGLE,
            extraction_options=extraction,
            device=pycolmap.Device.cpu,
        )
        pycolmap.match_exhaustive(database, matching_options=matching, device=pycolmap.Device.cpu)
        models = pycolmap.incremental_mapping(database, images, database.parent / "models")
    if not models:
        return None, ""
    return colmap.reconstruction_of(max(models.values(), key=lambda model: model.num_reg_images())), ""


METHODS = {"initfree solve photographs": ours, "pycolmap, incremental": theirs}


def main(
    sets: tuple[str, ...] = ("set1-24", "set4-24", "set7-24"),
    features: int = photographs.Matching().features,
    image_size: int = photographs.Matching().image_size,
) -> None:
    """Print a table.

    Args:
        sets: Presets of the generator, each with a number of photographs.
        features: Most features of a photograph.
        image_size: Longer side to which larger photographs are scaled.
    """
    console, settings = Console(stderr=True), photographs.Matching(features=features, image_size=image_size)
    print("| photographs | method | placed | AUC@5 | verdict | CPU seconds |")
    print("|---|---|---:|---:|---|---:|")
    for name in sets:
        preset, _, count = name.partition("-")
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            with console.status(f"rendering {name}"):
                shape = {"width": WIDTH, "height": HEIGHT, "focal": FOCAL, "points": POINTS, "density": DENSITY}
                dataset = generate(preset, seed=0, cameras=int(count), **shape)
                write(dataset, folder, render=True, figures=False, database=False)
            truth = load_model(folder / "sparse" / "0")
            for method, run in METHODS.items():
                (folder / method).mkdir()
                with console.status(f"{name}: {method}"):
                    began = time.process_time()
                    found, verdict = run(folder / "images", folder / method / "database.db", settings)
                    cpu = time.process_time() - began
                scores = "0", "0 / 0"
                if found is not None:
                    m = initfree.evaluate(found, truth)
                    scores = str(len(found.names)), f"{m.rotation_auc5:.1f} / {m.translation_auc5:.1f}"
                print(f"| {name} | {method} | {scores[0]} of {count} | {scores[1]} | {verdict} | {cpu:.1f} |", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
