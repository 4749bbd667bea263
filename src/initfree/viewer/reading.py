"""The scene of a folder: its model, its run.json and trace.npz if present, and a second model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from initfree.data.files import read_json
from initfree.drawing.scene import Model, Scene, model_of, scene_of
from initfree.drawing.steps import FILE as TRACE
from initfree.drawing.steps import Steps
from initfree.errors import InputError
from initfree.evaluation import global_rotation
from initfree.io.boundary import boundary
from initfree.io.load import load_colmap

MOST = 50_000
"""landmarks shown; of more, evenly spaced ones"""


def read_scene(directory: Path, second: Path | None = None, most: int = MOST) -> Scene:
    """The scene of a folder that `solve` wrote, or of any COLMAP model; `second` lies over it after alignment."""
    model = _model(directory)
    run = _run(directory / "run.json")
    scene = scene_of(model, run, steps=_steps(directory / TRACE), most=most)
    scene = replace(scene, model=replace(scene.model, name=named(directory)))
    if second is None:
        return scene
    return replace(scene, other=aligned(read_model_of(second, most), scene.model))


def read_model_of(directory: Path, most: int | None = None) -> Model:
    """The cameras and landmarks of a folder alone."""
    return model_of(_model(directory), named(directory), most)


def named(directory: Path) -> str:
    """The folder's name as a person would say it: that of `problem/sparse/0` is problem/sparse/0, not 0."""
    parts = directory.resolve().parts
    said = 3 if parts[-2:-1] == ("sparse",) else 2 if parts[-1].isdecimal() else 1
    return "/".join(parts[-said:]) if len(parts) > said else str(directory)


def _model(directory: Path) -> pycolmap.Reconstruction:
    if not directory.is_dir():
        raise InputError(f"{directory} is no directory; expected the output of `initfree solve`, or a COLMAP model")
    model = load_colmap(directory)
    if model is None:
        raise InputError(f"{directory} holds no COLMAP model, nor does its sparse/0; expected cameras, images and points3D")
    if not any(image.has_pose for image in model.images.values()):
        raise InputError(f"{directory} has no image with a pose: there is nothing to show")
    return model


def _steps(path: Path) -> Steps | None:
    if not path.exists():
        return None
    with boundary(path, "the trace that `initfree solve` wrote"):
        return Steps.read(path)


def _run(path: Path) -> dict[str, Any]:
    return _as(_RUN, read_json(path), path, "the file") if path.exists() else {}


_REPORT = dict.fromkeys(("mean_pixels", "rotation_degrees", "centre_share_of_extent"), float)
_RUN: dict[str, Any] = {
    "verdict": str,
    "certificate": {"accepted": bool, "reason": str, "failing": [str]},
    "weakest_joint": {"images": [str]},
    "problem": {"array": bool, "dropped": {"images": [str]}},
    "frame": {"z_up": bool, "floor": float, "unit": bool},
    "uncertainty": {"noise_pixels": float},
    "cameras": {str: {"detections": int, "wrong": int, **_REPORT}},
}
"""what is shown of a run.json; a type in place of a key stands for any"""
_WORDS = {bool: "true or false", str: "a text", int: "a whole number", float: "a number", list: "a list", dict: "an object"}


def _as(shape: Any, value: Any, path: Path, what: str) -> Any:
    """The parts of a value that a shape has, null where there are none; each of the type that the shape says."""
    kind = shape if isinstance(shape, type) else type(shape)
    if value is None:
        return {} if kind is dict else [] if kind is list else None
    good = isinstance(value, (int, float) if kind is float else kind) and isinstance(value, bool) == (kind is bool)
    if not good:
        raise InputError(f"{path}: {what} is {str(value)[:40]!r}; expected {_WORDS[kind]}")
    if isinstance(shape, list):
        return [_as(shape[0], one, path, f"an entry of {what}") for one in value]
    if not isinstance(shape, dict):
        return value
    if str in shape:
        return {key: _as(shape[str], one, path, f"{key!r} of {what}") for key, one in value.items()}
    return {key: _as(of_key, value.get(key), path, key) for key, of_key in shape.items()}


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
