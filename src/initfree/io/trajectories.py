"""Where the points of an array were in each frame, as tables: points.csv, and lengths.csv of a known length."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pycolmap

from initfree.data.files import read_json
from initfree.data.names import natural
from initfree.data.tracks import Array
from initfree.drawing.scene import model_of, unit_deviations
from initfree.errors import InputError
from initfree.io.alignment import Alignment, read_moments

POINTS = "points.csv"
LENGTHS = "lengths.csv"


def trajectories(model: pycolmap.Reconstruction, noise: float) -> tuple[list[int], Array, Array]:
    """Ids, places and standard deviations of the landmarks, for observations with a deviation of `noise` pixels.

    The deviation is the root of the trace of a landmark's covariance, the cameras held.
    """
    shown = model_of(model, "model")
    at = {name: k for k, name in enumerate(shown.images)}
    number = {image.image_id: at[image.name] for image in model.images.values() if image.has_pose}
    by_name = {image.name: model.cameras[image.camera_id] for image in model.images.values()}
    focal = np.array([by_name[name].mean_focal_length() for name in shown.images])
    tracks = [model.points3D[k].track.elements for k in shown.ids.tolist()]
    seen = [np.array([number[e.image_id] for e in track if e.image_id in number], dtype=np.int64) for track in tracks]
    return shown.ids.tolist(), shown.xyz, noise * unit_deviations(seen, shown, focal)


def write_points(path: Path, model: pycolmap.Reconstruction, moments: dict[int, tuple[str, str]], noise: float) -> None:
    """frame, point, x, y, z, sigma of every landmark of an array, in the unit of the model."""
    ids, xyz, sigma = trajectories(model, noise)
    rows = sorted(
        ((*moments[k], *place, deviation) for k, place, deviation in zip(ids, xyz.tolist(), sigma.tolist(), strict=True)),
        key=lambda row: (natural(row[0]), row[1]),
    )
    _write(path, ("frame", "point", "x", "y", "z", "sigma"), rows)


def write_lengths(path: Path, found: dict[str, float], length: float) -> None:
    """frame, length and residual against the known one."""
    _write(path, ("frame", "length", "residual"), [(frame, one, one - length) for frame, one in found.items()])


def lengths(model: pycolmap.Reconstruction, moments: dict[int, tuple[str, str]], ends: tuple[str, str]) -> dict[str, float]:
    """By frame, the distance of two points (/A and /B) that were seen in it."""
    first, second = (
        {moments[k][0]: point.xyz for k, point in model.points3D.items() if k in moments and f"/{moments[k][1]}" == end}
        for end in ends
    )
    both = sorted(set(first) & set(second), key=natural)
    return {frame: float(np.linalg.norm(first[frame] - second[frame])) for frame in both}


def write_trajectories(directory: Path, wanted: Alignment) -> str | None:
    """The tables beside the model that a solve has written and aligned; how well a known length is met, where one is."""
    model, moments = pycolmap.Reconstruction(directory / "sparse" / "0"), read_moments(directory)
    write_points(directory / POINTS, model, moments, noise_of(directory))
    if wanted.scale is None or wanted.scale_points is None:
        return None
    found = lengths(model, moments, wanted.scale_points)
    if not found:
        return None
    write_lengths(directory / LENGTHS, found, wanted.scale)
    off = np.array(list(found.values())) - wanted.scale
    return (
        f"{' to '.join(wanted.scale_points)} is {wanted.scale:g}; single frames differ by {np.median(np.abs(off)):.2g} in "
        f"the median, by {np.abs(off).max():.2g} at most ({len(off):,} frames, {LENGTHS})"
    )


def noise_of(directory: Path) -> float:
    """Of the observations, in pixels, as run.json has it; a third of a pixel where it is unknown."""
    try:
        return float(read_json(directory / "run.json")["uncertainty"]["noise_pixels"])
    except (InputError, ValueError, KeyError, TypeError):
        return 1.0 / 3.0


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(head)
        writer.writerows([f"{value:.9g}" if isinstance(value, float) else value for value in row] for row in rows)
