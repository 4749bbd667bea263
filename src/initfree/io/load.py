"""One way in: whatever the path holds, a `Problem`; and, apart from it, the truth."""

from pathlib import Path
from typing import Literal

import pycolmap

from initfree.errors import InputError
from initfree.io import bal, colmap
from initfree.model import MetricModel
from initfree.problem import Observations, Problem, build_problem

Intrinsics = Literal["known", "unknown"]


def load(source: str | Path | pycolmap.Reconstruction, min_obs: int = 3, intrinsics: Intrinsics = "known") -> Problem:
    """Read the observations of a COLMAP model (text or binary, at PATH, PATH/sparse or PATH/sparse/0; or in memory) or of a
    BAL file.

    Landmarks need `min_obs` observations. With `intrinsics="unknown"` the focal lengths and distortion of a COLMAP model
    are not used; those of a BAL file never are. Poses and points are not read.
    """
    if isinstance(source, pycolmap.Reconstruction):
        return build_problem(colmap.observations_of(source, "the model", intrinsics == "known"), min_obs)
    return build_problem(load_observations(Path(source), intrinsics), min_obs)


def load_observations(path: Path, intrinsics: Intrinsics = "known") -> Observations:
    """All observations, before filtering."""
    if bal.is_bal(path):
        return bal.read_observations(path)
    return colmap.read_observations(_model_directory(path), intrinsics == "known")


def load_model(path: str | Path) -> MetricModel:
    """Poses and landmarks of a COLMAP model or a BAL file, to evaluate against or to be evaluated."""
    path = Path(path)
    if bal.is_bal(path):
        return bal.metric_model(path)
    return colmap.metric_model(colmap.read_model(_model_directory(path)))


def _model_directory(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"{path} does not exist; expected a COLMAP model directory or a BAL file")
    directory = colmap.find_model(path) if path.is_dir() else None
    if directory is None:
        raise InputError(
            f"{path} holds no model; expected cameras, images and points3D (.bin or .txt) in it, in sparse or in sparse/0, "
            "or a BAL file (.txt, .bz2, .gz)"
        )
    return directory
