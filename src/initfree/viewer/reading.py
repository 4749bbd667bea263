"""What is seen of a folder: its model, its run.json and trace.npz where it has them, and a second model over it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from initfree.drawing.scene import Model, Scene, model_of, scene_of
from initfree.drawing.steps import FILE as TRACE
from initfree.drawing.steps import Steps
from initfree.errors import InputError
from initfree.evaluation import global_rotation
from initfree.io.colmap import find_model, read_model

MOST = 50_000
"""landmarks shown; of more, evenly spaced ones"""


def read_scene(directory: Path, second: Path | None = None, most: int = MOST) -> Scene:
    """The scene of a folder that `solve` wrote, or of any COLMAP model; `second` lies over it after alignment."""
    model = _model(directory)
    run = _run(directory)
    trace = directory / TRACE
    scene = scene_of(model, run, steps=Steps.read(trace) if trace.is_file() else None, most=most)
    scene = replace(scene, model=replace(scene.model, name=named(directory)))
    if second is None:
        return scene
    other = model_of(_model(second), named(second), most)
    return replace(scene, other=aligned(other, scene.model))


def named(directory: Path) -> str:
    """The folder's name as a person would say it: that of `problem/sparse/0` is problem/sparse/0, not 0."""
    parts = directory.resolve().parts
    said = 3 if parts[-2:-1] == ("sparse",) else 2 if parts[-1].isdecimal() else 1
    return "/".join(parts[-said:]) if len(parts) > said else str(directory)


def _model(directory: Path) -> pycolmap.Reconstruction:
    if not directory.is_dir():
        raise InputError(f"{directory} is no directory; expected the output of `initfree solve`, or a COLMAP model")
    found = find_model(directory)
    if found is None:
        raise InputError(f"{directory} holds no COLMAP model, nor does its sparse/0; expected cameras, images and points3D")
    model = read_model(found)
    if not any(image.has_pose for image in model.images.values()):
        raise InputError(f"{found} has no image with a pose: there is nothing to show")
    return model


def _run(directory: Path) -> dict[str, Any]:
    path = directory / "run.json"
    if not path.is_file():
        return {}
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}") from error
    if not isinstance(run, dict):
        raise InputError(f"{path} holds a {type(run).__name__}; expected the object that `initfree solve` writes")
    return run


def aligned(model: Model, target: Model) -> Model:
    """The model turned by the chordal mean of its cameras' rotations, then moved and scaled by their centres."""
    at = {name: k for k, name in enumerate(target.images)}
    mine = np.array([k for k, name in enumerate(model.images) if name in at], dtype=np.int64)
    theirs = np.array([at[model.images[k]] for k in mine], dtype=np.int64)
    if len(mine) < 2:
        raise InputError(
            f"the models share {len(mine)} images by name (for example {model.images[0]!r} and {target.images[0]!r}); "
            "expected at least 2 to align them by"
        )
    turn = global_rotation(model.R[mine], target.R[theirs])
    a, b = model.centres[mine] @ turn.T, target.centres[theirs]
    # Medians: a camera that one of the models has at a wrong place must not decide.
    x, y = a - np.median(a, axis=0), b - np.median(b, axis=0)
    s = float(np.median(np.linalg.norm(y, axis=1)) / max(float(np.median(np.linalg.norm(x, axis=1))), 1e-300))
    return model.moved(s, turn, np.median(b, axis=0) - s * np.median(a, axis=0))
