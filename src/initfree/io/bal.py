"""Bundle Adjustment in the Large (Agarwal and others 2010): `.txt`, `.bz2`, `.gz`.

BAL projects with p = -P/P.z: its cameras look down the negative z axis, and y points up. Turned by diag(1, -1, -1), they
are ours, and an observation (u, v) becomes (u, -v).
"""

import bz2
import gzip
import math
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

from initfree.data.observations import Image, Observations, without_repeats
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index, rows_of_each
from initfree.errors import InputError, in_words

_TURN = np.diag([1.0, -1.0, -1.0])
_PARAMETERS = 9
_MOST = 2**31
_HEAD = 4096
"""bytes that hold the three counts"""
_LONGEST_NUMBER = 64
"""bytes of a number with the blanks behind it, on average, at most"""
_BLOCK = 1 << 20
"""bytes that are read at a time"""
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
        with opener(path, "rb") as stream:
            head = stream.read(_HEAD)
            m, n, k = _counts(path, head)
            expected = 3 + 4 * k + _PARAMETERS * m + 3 * n
            # No more than the counts allow: a small compressed file can hold any number of gigabytes.
            text = _at_most(stream, head, expected * _LONGEST_NUMBER)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {in_words(error)}") from error
    values = _numbers(path, text)
    if len(values) != expected:
        raise InputError(
            f"{path}: {m} cameras, {n} points and {k} observations take {expected} numbers; found {len(values)}"
        )
    observations = values[3 : 3 + 4 * k].reshape(k, 4)
    names = observations[:, :2]
    if (names != np.floor(names)).any():
        raise InputError(f"{path}: an observation names a camera or point by a fraction; expected whole numbers")
    if ((names < 0) | (names >= (m, n))).any():
        bad = np.flatnonzero(((names < 0) | (names >= (m, n))).any(axis=1))[0]
        raise InputError(
            f"{path}: observation {bad} names camera {names[bad, 0]:g} and point {names[bad, 1]:g}, outside 0..{m - 1}, "
            f"0..{n - 1}"
        )
    if (np.abs(observations[:, 2:]) > _FARTHEST).any():
        raise InputError(f"{path}: an observation lies {np.abs(observations[:, 2:]).max():g} pixels from the centre")
    camera, landmark = observations[:, 0].astype(np.int64), observations[:, 1].astype(np.int64)
    rest = values[3 + 4 * k :]
    return BalFile(
        camera,
        landmark,
        observations[:, 2:] * (1.0, -1.0),
        rest[: _PARAMETERS * m].reshape(m, _PARAMETERS),
        rest[_PARAMETERS * m :].reshape(n, 3),
    )


def _at_most(stream: IO[bytes], head: bytes, size: int) -> bytes:
    """`head` and what follows it, `size` bytes together.

    Block by block: a single `read` sets aside all that it is asked for, and a damaged count asks for gigabytes."""
    blocks = [head]
    missing = size - len(head)
    while missing > 0 and (block := stream.read(min(missing, _BLOCK))):
        blocks.append(block)
        missing -= len(block)
    return b"".join(blocks)


def _counts(path: Path, head: bytes) -> tuple[int, int, int]:
    """Cameras, points and observations, with which a BAL file begins."""
    words = head.split()[:3]
    try:
        counts = np.array(words, dtype=np.float64)
    except ValueError:
        counts = np.full(len(words), np.nan)
    told = b" ".join(words)[:60].decode(errors="backslashreplace")
    if len(counts) < 3 or not np.isfinite(counts).all() or (counts < 0).any():
        raise InputError(
            f"{path} is not a BAL file: it begins with {told!r}; expected to begin with three counts (cameras, points, "
            "observations), numbers only"
        )
    if (counts != np.floor(counts)).any() or (counts > _MOST).any():
        raise InputError(f"{path} begins with {told}; expected three whole numbers")
    m, n, k = counts.astype(int).tolist()
    return m, n, k


def _numbers(path: Path, text: bytes) -> Array:
    """All numbers of the file; the first word that is none is named."""
    try:
        with warnings.catch_warnings():
            # NumPy is fast and stops at a word that is no number, with a warning.
            warnings.simplefilter("error", DeprecationWarning)
            values = np.fromstring(text.decode("ascii"), sep=" ")
        if np.isfinite(values).all():
            return values
    except (ValueError, DeprecationWarning):
        pass
    for number, word in enumerate(text.split(), 1):
        try:
            finite = math.isfinite(float(word))
        except ValueError:
            finite = False
        if not finite:
            told = word[:40].decode(errors="backslashreplace")
            raise InputError(f"{path}: number {number} is {told!r}; expected finite numbers only")
    raise InputError(f"{path} is not a BAL file; expected numbers only")


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
    for k, here in enumerate(rows_of_each(camera, len(bal.parameters))):
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
