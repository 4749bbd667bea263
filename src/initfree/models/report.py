"""What `initfree check` leaves on disk: check.json, and the same for people in summary.html, whole or not at all."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from initfree.drawing.check_page import check_page
from initfree.drawing.residual_figures import residual_figures
from initfree.drawing.scene import Scene, scene_of
from initfree.drawing.summary import FILE as SUMMARY
from initfree.drawing.summary import LANDMARKS
from initfree.io.run_json import plain, write_json
from initfree.io.staged import staged_directory
from initfree.models.check import Check, check

COMMAND = "check"
REPORT = "check.json"
PLANNED = (REPORT, SUMMARY)


def write_check(found: Check, output: Path, *, overwrite: bool = False) -> None:
    """Write both files to `output`, which is made if need be."""
    with staged_directory(output, COMMAND, PLANNED, overwrite=overwrite) as staging:
        write_into(found, staging)


def write_into(found: Check, staging: Path) -> None:
    """Both files, into a directory that exists."""
    values = plain(found.to_dict())
    write_json(staging / REPORT, values)
    page = check_page(values, scene_of_check(found, LANDMARKS), residual_figures(found.problem, found.reconstruction))
    (staging / SUMMARY).write_text(page, encoding="utf-8")


def scene_of_check(found: Check, most: int) -> Scene:
    """The model with its weakest joint and the images that the verdict does not vouch for."""
    return scene_of(found.model, as_run(found), most=most)


def as_run(found: Check) -> dict[str, Any]:
    """What a run.json would have of it."""
    u, names = found.deviations, found.problem.names
    joint = found.certificate.evidence.joint
    cameras = {
        name: {
            "detections": image.observations, "wrong": round((1.0 - (image.fitting or 0.0)) * image.observations),
            "mean_pixels": None, "rotation_degrees": image.rotation_degrees,
            "centre_share_of_extent": image.centre_share_of_extent,
        }
        for name, image in ((image.name, image) for image in found.images)
    }  # fmt: skip
    return plain({
        "certificate": {
            "accepted": found.accepted, "reason": found.reason, "failing": [image.name for image in found.untrusted],
        },
        "weakest_joint": {"images": [names[k] for k in np.flatnonzero(joint.smaller)]},
        "uncertainty": {"noise_pixels": u.noise},
        "cameras": cameras,
    })  # fmt: skip


def checked_scene(model: Path, database: Path | None, most: int) -> Scene:
    """What `initfree view --check` shows."""
    found = check(model, database)
    scene = scene_of_check(found, most)
    return replace(scene, model=replace(scene.model, name=str(model)))
