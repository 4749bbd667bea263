"""One way in: whatever the path holds, a `Problem`; and, apart from it, the truth."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pycolmap

from initfree.data.files import read_text
from initfree.data.observations import Intrinsics, Observations
from initfree.data.problem import Problem, build_problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.io import colmap
from initfree.io.boundary import boundary
from initfree.io.formats import Asked, format_of

_LARGEST = 1e15
"""of a coordinate of a camera or a point, in whatever unit"""


def load(
    source: str | Path | pycolmap.Reconstruction,
    min_obs: int = 3,
    intrinsics: Intrinsics | None = None,
    images: Iterable[str] | None = None,
) -> Problem:
    """Read the observations of a file in any format that `initfree formats` lists, or of a COLMAP model in memory.

    Args:
        source: A path, or a pycolmap.Reconstruction. Poses and points are not read.
        min_obs: Fewest observations of a landmark.
        intrinsics: Whether the input's intrinsics are known, to be refined, or unknown. By default the input decides (a
            database marks guessed focal lengths). Intrinsics of a BAL file are never used.
        images: Names of the images to use; by default all.
    """
    if isinstance(source, pycolmap.Reconstruction):
        observations = colmap.observations_of(source, "the model", intrinsics or "known")
        return build_problem(_of_images(observations, None if images is None else frozenset(images)), min_obs)
    if not isinstance(source, str | Path):
        raise InputError(_refusal("the source", source, "a path or a pycolmap.Reconstruction"))
    return build_problem(load_observations(Path(source), intrinsics, images), min_obs)


def as_problem(source: Problem | str | Path | pycolmap.Reconstruction) -> Problem:
    """The problem itself, or what `load` makes of anything else."""
    if isinstance(source, Problem | str | Path | pycolmap.Reconstruction):
        return source if isinstance(source, Problem) else load(source)
    raise InputError(_refusal("the problem", source, "a Problem, a path or a pycolmap.Reconstruction"))


def _refusal(name: str, value: object, expected: str) -> str:
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
    return (
        f"{name} is of type {type(value).__name__}{shape}; expected {expected} "
        "(Problem.from_tracks and Problem.from_tracker take arrays)"
    )


def load_observations(path: Path, intrinsics: Intrinsics | None = None, images: Iterable[str] | None = None) -> Observations:
    """All observations, before filtering."""
    asked = Asked(intrinsics, None if images is None else frozenset(images))
    return _of_images(format_of(path).read(path, asked), asked.names)


def load_model(path: str | Path) -> Reconstruction:
    """Poses and landmarks at a path, to evaluate against or to be evaluated."""
    path = Path(path)
    found = format_of(path)
    if found.model is None:
        raise InputError(f"{path} is a {found.name}, which has observations but no poses; expected a reconstruction")
    model = found.model(path)
    check_poses(path, model)
    return model


def load_colmap(path: Path) -> pycolmap.Reconstruction | None:
    """The COLMAP model at a path with all that is in it; None where there is none."""
    with boundary(path, "a COLMAP model"):
        directory = colmap.find_model(path) if path.is_dir() else None
        if directory is None:
            return None
        model = colmap.read_model(directory)
        check_poses(path, colmap.reconstruction_of(model))
    return model


def check_poses(path: Path, model: Reconstruction) -> None:
    """Poses and positions that can be computed with."""
    _check_numbers(path, "pose of image", model.names, np.concatenate([model.R.reshape(-1, 9), model.t], axis=1))
    _check_numbers(path, "position of point", model.ids.tolist(), model.xyz)


def _check_numbers(path: Path, what: str, names: Sequence[object], values: Array) -> None:
    """Numbers that can be computed with: beyond, squares and products of them overflow."""
    bad = np.flatnonzero(~(np.abs(values) <= _LARGEST).all(axis=1))
    if len(bad):
        row = values[bad[0]]
        worst = row[~(np.abs(row) <= _LARGEST)][0]
        raise InputError(f"{path}: the {what} {names[bad[0]]!s} has {worst:g}; expected numbers up to {_LARGEST:g}")


def image_names(path: Path) -> list[str]:
    """Names of images, one a line, as COLMAP's image lists have them."""
    names = [line.strip() for line in read_text(path).split("\n")]
    names = [name for name in names if name]
    if not names:
        raise InputError(f"image list {path} is empty; expected the name of an image on each line")
    return names


def _of_images(o: Observations, names: frozenset[str] | None) -> Observations:
    """The observations in the images of these names alone."""
    if names is None or names == {image.name for image in o.images}:
        return o
    missing = sorted(names - {image.name for image in o.images})
    if missing:
        raise InputError(f"{o.source} has no image named {missing[0]!r}; the image list names {len(missing)} that it lacks")
    stay = np.array([image.name in names for image in o.images])
    number = np.cumsum(stay) - 1
    kept = stay[o.image]
    return replace(
        o,
        images=tuple(image for image, wanted in zip(o.images, stay, strict=True) if wanted),
        image=number[o.image[kept]],
        landmark_id=o.landmark_id[kept],
        keypoint=o.keypoint[kept],
        normalised=o.normalised[kept],
        image_unit=o.image_unit[stay],
        colour=None if o.colour is None else o.colour[kept],
    )
