"""A dataset as files: all there or none."""

import json
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from initfree.errors import InputError
from initfree.generator.dataset import Dataset
from initfree.generator.presets import as_table
from initfree.generator.statistics import statistics
from initfree.io.staged import staged_directory

Progress = Callable[[str], None]
FIGURES = ("covisibility.png", "overview.png", "gallery.png")
_LIBRARIES = ("initfree", "numpy", "scipy", "pycolmap", "embreex")


def write(
    dataset: Dataset,
    output: Path | str,
    *,
    database: bool = True,
    figures: bool = True,
    render: bool = False,
    overwrite: bool = False,
    progress: Progress = lambda stage: None,
) -> dict[str, Any]:
    """Write everything into the directory `output` and return the content of dataset.json.

    sparse/0      the exact truth: COLMAP model, binary and text
    noisy/0       only with degradation: degraded observations, initial poses and landmarks
    database.db   keypoints and verified matches of the (degraded) observations
    dataset.json  every parameter, the seed, versions, statistics
    covisibility.png, overview.png, gallery.png; with `render` also images/ and depth/

    What is there and was not generated is replaced only with `overwrite`.
    """
    if render and dataset.surface is None:
        raise InputError(f"{dataset.config.name} is an existing COLMAP model: there is no surface to render")
    how = dataset.config.render
    if render and how.backend == "blender":
        from initfree.generator.blender.rendering import check

        check(dataset)
    planned = ["sparse/0", "dataset.json", *(["noisy/0"] if dataset.degraded else []), *(FIGURES if figures else ())]
    planned += [*(["database.db"] if database else []), *(["images", "depth"] if render else [])]
    with staged_directory(Path(output), "generate", planned, overwrite=overwrite) as staging:
        progress("COLMAP models")
        _write_model(dataset, False, staging / "sparse" / "0")
        if dataset.degraded:
            _write_model(dataset, True, staging / "noisy" / "0")
        progress("statistics")
        description = describe(dataset)
        if render:
            description["render"] = {"depth_scale": 0.01 if how.depth == "png" else 1}
            if how.backend == "blender":
                from initfree.generator.blender.client import version as blender_version

                description["versions"]["bpy"] = blender_version()
        (staging / "dataset.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
        if figures:
            progress("figures")
            from initfree.generator.figures import covisibility, gallery, overview

            covisibility(dataset, staging / "covisibility.png")
            overview(dataset, staging / "overview.png")
            gallery(dataset, staging / "gallery.png")
        if database:
            progress("database: matches, verified by COLMAP")
            from initfree.generator.database import write_database

            write_database(dataset, staging / "database.db")
        if render:
            _render(dataset, staging, progress)
    return description


def describe(dataset: Dataset) -> dict[str, Any]:
    """The content of dataset.json."""
    return {
        "config": as_table(dataset.config),
        "seed": dataset.seed,
        "statistics": statistics(dataset),
        "versions": {
            "python": platform.python_version(),
            "platform": sys.platform,
            **{library: version(library) for library in _LIBRARIES},
        },
    }


def _write_model(dataset: Dataset, noisy: bool, folder: Path) -> None:
    folder.mkdir(parents=True)
    model = dataset.to_colmap(noisy)
    model.write_binary(folder)
    model.write_text(folder)


def _render(dataset: Dataset, staging: Path, progress: Progress) -> None:
    from initfree.generator.render import render, save
    from initfree.generator.visibility import RayCaster

    assert dataset.surface is not None
    how = dataset.config.render
    if how.backend == "blender":
        from initfree.generator.blender.rendering import render_all

        renderings = render_all(dataset, progress)
    else:
        caster = RayCaster(dataset.surface)
        renderings = (
            render(dataset.surface, caster, dataset.cameras[camera], dataset.poses, number)
            for number, camera in enumerate(dataset.camera_of_image)
        )
    for number, (name, rendering) in enumerate(zip(dataset.names, renderings, strict=True)):
        progress(f"image {number + 1} of {len(dataset.names)}")
        save(rendering, staging / "images" / name, (staging / "depth" / name).with_suffix(f".{how.depth}"))
