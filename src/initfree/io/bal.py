"""Bundle Adjustment in the Large (Agarwal and others 2010): `.txt`, `.bz2`, `.gz`.

BAL projects with p = -P/P.z: its cameras look down the negative z axis, and y points up. Turned by diag(1, -1, -1), they
are ours, and an observation (u, v) becomes (u, -v).
"""

import bz2
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

from initfree.errors import InputError
from initfree.observations import Image, Observations, without_repeats
from initfree.reconstruction import Reconstruction
from initfree.tracks import Array, Index

_TURN = np.diag([1.0, -1.0, -1.0])
_PARAMETERS = 9
_MOST = 2**31
_FARTHEST = 1e6
"""pixels: beyond, a coordinate is no observation but a broken number"""


@dataclass(frozen=True)
class BalFile:
    """The numbers of a BAL file."""

    camera: Index
    landmark: Index
    uv: Array
    """(observations, 2) pixels from the principal point, y down"""
    parameters: Array
    """(cameras, 9): rotation vector, translation, f, k1, k2"""
    xyz: Array


def is_bal(path: Path) -> bool:
    return path.is_file() and path.suffix in {".txt", ".bz2", ".gz"}


def read_bal(path: Path) -> BalFile:
    """Parse and check; every complaint names what was found."""
    opener = {".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix, open)
    try:
        with opener(path, "rt") as stream:
            words = stream.read().split()
        values = np.array(words, dtype=np.float64)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    except ValueError as error:
        raise InputError(f"{path} is not a BAL file: {error}; expected numbers only") from error
    if len(values) < 3 or not np.isfinite(values[:3]).all() or (values[:3] < 0).any():
        raise InputError(f"{path} is not a BAL file: expected to begin with three counts (cameras, points, observations)")
    if (values[:3] != np.floor(values[:3])).any() or (values[:3] > _MOST).any():
        raise InputError(f"{path} begins with {' '.join(words[:3])}; expected three whole numbers")
    m, n, k = values[:3].astype(int)
    expected = 3 + 4 * k + _PARAMETERS * m + 3 * n
    if len(values) != expected:
        raise InputError(
            f"{path}: {m} cameras, {n} points and {k} observations take {expected} numbers; found {len(values)}"
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(f"{path}: number {bad[0] + 1} is {words[bad[0]]!r}; expected a finite number")
    observations = values[3 : 3 + 4 * k].reshape(k, 4)
    if (observations[:, :2] != np.floor(observations[:, :2])).any():
        raise InputError(f"{path}: an observation names a camera or point by a fraction; expected whole numbers")
    if (np.abs(observations[:, 2:]) > _FARTHEST).any():
        raise InputError(f"{path}: an observation lies {np.abs(observations[:, 2:]).max():g} pixels from the centre")
    camera, landmark = observations[:, 0].astype(np.int64), observations[:, 1].astype(np.int64)
    if k and (camera.min() < 0 or camera.max() >= m or landmark.min() < 0 or landmark.max() >= n):
        raise InputError(f"{path}: an observation names a camera or point outside 0..{m - 1}, 0..{n - 1}")
    rest = values[3 + 4 * k :]
    return BalFile(
        camera,
        landmark,
        observations[:, 2:] * (1.0, -1.0),
        rest[: _PARAMETERS * m].reshape(m, _PARAMETERS),
        rest[_PARAMETERS * m :].reshape(n, 3),
    )


def _name(camera: int) -> str:
    return f"camera-{camera:06d}"


def read_observations(path: Path) -> Observations:
    """Scaled pixels, intrinsics unknown, radial distortion ignored. Camera k is image id k + 1, point j is id j + 1."""
    bal = read_bal(path)
    first = without_repeats(bal.camera, bal.landmark)
    camera, landmark, uv = bal.camera[first], bal.landmark[first], bal.uv[first]
    scale = float(np.abs(uv).max(initial=1.0))
    # COLMAP's pixels begin at the corner; the file does not tell the image size, so take what the observations span.
    size = 2 * int(np.ceil(scale)) + 2
    images, cameras = [], {}
    keypoint = np.empty(len(camera), dtype=np.int64)
    for k in range(len(bal.parameters)):
        here = np.flatnonzero(camera == k)
        keypoint[here] = np.arange(len(here))
        images.append(Image(_name(k), k + 1, k + 1, uv[here] + size / 2.0))
        cameras[k + 1] = pycolmap.Camera(
            camera_id=k + 1, model="SIMPLE_RADIAL", width=size, height=size,
            params=[scale, size / 2.0, size / 2.0, 0.0],
        )  # fmt: skip
    return Observations(
        str(path), tuple(images), cameras, "unknown", camera, landmark + 1, keypoint, uv / scale,
        np.full((len(images), 2), scale), int(np.count_nonzero(~first)),
    )  # fmt: skip


def reconstruction_of(path: Path) -> Reconstruction:
    """The file's own cameras and points."""
    bal = read_bal(path)
    R = _TURN @ Rotation.from_rotvec(bal.parameters[:, :3]).as_matrix()
    t = bal.parameters[:, 3:6] @ _TURN
    names = tuple(_name(k) for k in range(len(R)))
    return Reconstruction.of_poses(names, R, t, np.arange(1, len(bal.xyz) + 1), bal.xyz)
