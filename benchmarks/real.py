"""Real tracks, as anyone has them: solved with the defaults, AUC against the reference where there is one.

INITFREE_DATA=... python benchmarks/real.py
INITFREE_DATA=... python benchmarks/real.py --given known shared own

`known` are the intrinsics of the input; `shared` and `own` give none, and one camera for all images or one for each. Where
there is no reference, these two are compared with the solution that `known` leads to, which is not the truth.
"""

import time
from pathlib import Path
from typing import Literal

import numpy as np
import pycolmap
import tyro
from data import data_directory
from intrinsics import focal_lengths

import initfree
from initfree.data.problem import Problem

SETS = (
    "fountain-p11", "castle-p19", "herz-jesu-p8", "dinosaur", "dinosaur_trimmed", "corridor", "house", "uwo",
    "lund_cath_small",
)  # fmt: skip
Given = Literal["known", "shared", "own"]
WORDS: dict[Given, str] = {
    "known": "known", "shared": "unknown, one camera", "own": "unknown, one camera an image",
}  # fmt: skip
COLUMNS = (
    "data", "intrinsics", "images", "AUC@5", "AUC@20", "median error, px", "focal length, px", "CPU seconds", "verdict",
)  # fmt: skip


def with_one_camera(model: pycolmap.Reconstruction) -> pycolmap.Reconstruction:
    """The model with the first of its cameras for all images; the real sets have a camera id for each image."""
    result = pycolmap.Reconstruction()
    first = model.cameras[min(model.cameras)]
    result.add_camera_with_trivial_rig(first)
    for image_id, image in sorted(model.images.items()):
        points = [pycolmap.Point2D(point.xy) for point in image.points2D]
        shared = pycolmap.Image(name=image.name, points2D=points, camera_id=first.camera_id, image_id=image_id)
        result.add_image_with_trivial_frame(shared, image.cam_from_world())
    for point in model.points3D.values():
        result.add_point3D(point.xyz, point.track)
    return result


def problem_of(place: Path, given: Given) -> Problem:
    """The input of a set, with what is said of its intrinsics."""
    if given == "known":
        return initfree.load(place / "input")
    model = pycolmap.Reconstruction(place / "input" / "sparse" / "0")
    return initfree.load(with_one_camera(model) if given == "shared" else model, intrinsics="unknown")


def main(sets: tuple[str, ...] = SETS, given: tuple[Given, ...] = ("known",)) -> None:
    """Print a table.

    Args:
        sets: Folders of real/.
        given: What is said of the intrinsics, a row each.
    """
    print("| " + " | ".join(COLUMNS) + " |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---|")
    for name in sets:
        place = data_directory() / "real" / name
        reference = pycolmap.Reconstruction(place / "gt" / "sparse" / "0") if (place / "gt").is_dir() else None
        for kind in given:
            problem = problem_of(place, kind)
            cpu = time.process_time()
            result = initfree.solve(problem)
            cpu = time.process_time() - cpu
            auc5 = auc20 = ""
            if reference is not None:
                metrics = initfree.evaluate(result, reference)
                auc5 = f"{metrics.rotation_auc5:.2f} / {metrics.translation_auc5:.2f}"
                auc20 = f"{metrics.rotation_auc20:.1f} / {metrics.translation_auc20:.1f}"
            elif kind == "known":
                reference = result.to_colmap()
            verdict = "accepted" if result.accepted else f"not accepted: {result.certificate.reason}"
            median = f"{result.certificate.evidence.median_pixels:.3f}"
            images = f"{result.problem.tracks.cameras} of {problem.tracks.cameras}"
            focal = focal_lengths(result.problem, result)
            span = f"{focal.min():.0f}" if np.ptp(focal) < 0.5 else f"{focal.min():.0f} to {focal.max():.0f}"
            cells = name, WORDS[kind], images, auc5, auc20, median, span, f"{cpu:.1f}", verdict
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
