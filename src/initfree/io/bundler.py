"""Bundler's bundle.out (v0.3): cameras that look down -z, y up, measurements from the middle of the image.

list.txt beside it names the images. Turned by diag(1, -1, -1), cameras and measurements are ours, as in BAL.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from initfree.data.files import beginning, read_text
from initfree.data.observations import Intrinsics, Observations
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.io.posed import rotations
from initfree.io.rows import centred_camera, observations_of_rows, size_around
from initfree.io.words import Views, Words, read_views

_HEAD = "# Bundle file"
_TURN = np.diag([1.0, -1.0, -1.0])


def is_bundler(path: Path) -> bool:
    return beginning(path, len(_HEAD)) == _HEAD.encode()


@dataclass(frozen=True)
class _Bundle:
    names: list[str]
    cameras: Array
    """(cameras, 15): f, k1, k2, R row by row, t; f is zero where Bundler did not register the image"""
    views: Views
    """from the middle of the image, y down"""


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Focal lengths and distortion of the file are a guess to refine. Image ids and point ids count from 1."""
    bundle = _read(path)
    views = bundle.views
    size = size_around(str(path), views.uv)
    focal = np.where(bundle.cameras[:, 0] > 0.0, bundle.cameras[:, 0], float(size))
    cameras = [centred_camera(f, k1, k2, size) for f, (k1, k2) in zip(focal, bundle.cameras[:, 1:3], strict=True)]
    return observations_of_rows(
        str(path), bundle.names, cameras, views.image, views.landmark + 1, views.uv + size / 2.0, intrinsics or "refine"
    )


def reconstruction_of(path: Path) -> Reconstruction:
    """The file's own cameras and points."""
    bundle = _read(path)
    placed = np.flatnonzero(bundle.cameras[:, 0] > 0.0)
    names = tuple(bundle.names[k] for k in placed)
    R = _TURN @ rotations(path, bundle.cameras[placed, 3:12].reshape(-1, 3, 3), names)
    t = bundle.cameras[placed, 12:] @ _TURN
    return Reconstruction.of_poses(names, R, t, np.arange(1, len(bundle.views.xyz) + 1), bundle.views.xyz)


def _read(path: Path) -> _Bundle:
    text = read_text(path)
    words = Words(path, "Bundler file", text.split("\n", 1)[1] if "\n" in text else "")
    cameras, points = words.count("the number of cameras"), words.count("the number of points")
    table = words.numbers(15 * cameras, "f, k1, k2, R, t of the cameras").reshape(cameras, 15)
    views = read_views(words, points, cameras)
    return _Bundle(_names(path, cameras), table, replace(views, uv=views.uv * (1.0, -1.0)))


def _names(path: Path, cameras: int) -> list[str]:
    beside = [path.parent / "list.txt", path.parent.parent / "list.txt"]
    for file in beside:
        if file.is_file():
            names = [line.split()[0].removeprefix("./") for line in read_text(file).splitlines() if line.strip()]
            if len(names) == cameras:
                return names
    return [f"camera-{k:06d}" for k in range(cameras)]
