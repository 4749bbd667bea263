"""Bundle Adjustment in the Large (Agarwal and others 2010): `.txt`, `.bz2`, `.gz`.

BAL projects with p = -P/P.z: its cameras look down the negative z axis, and y points up. Turned by diag(1, -1, -1), they
are ours, and an observation (u, v) becomes (u, -v).
"""

import bz2
import gzip
import math
import warnings
import zlib
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

from initfree.data.files import opened
from initfree.data.observations import Image, Observations, without_repeats
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index, rows_of_each
from initfree.errors import InputError, in_words

_TURN = np.diag([1.0, -1.0, -1.0])
_PARAMETERS = 9
_MOST = 2**31
_HEAD = 4096
"""bytes that hold the three counts"""
_BLANKS = (b" ", b"\n", b"\t", b"\r")
_LEAST_NUMBERS = 100_000
"""that any packed file may hold; beyond, no number is packed into less than a byte"""
_BLOCK = 1 << 20
"""bytes that are read at a time"""
_FARTHEST = 1e6
"""pixels: larger coordinates are invalid"""


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
    """Parse and check the file; every error names the bad value."""
    unpacked = {".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix)
    try:
        with opened(path) as file, nullcontext(file) if unpacked is None else unpacked(file, "rb") as stream:
            head = stream.read(_HEAD)
            m, n, k = _counts(path, head)
            expected = 3 + 4 * k + _PARAMETERS * m + 3 * n
            size = path.stat().st_size
            if expected > (size if unpacked is None else _LEAST_NUMBERS + size):
                raise InputError(
                    f"{path} announces {m} cameras, {n} points and {k} observations: {expected} numbers; expected no more "
                    f"than its {size} bytes hold"
                )
            values = _numbers(path, chain([head], iter(lambda: stream.read(_BLOCK), b"")), expected)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {in_words(error)}") from error
    if len(values) != expected:
        more = " or more" if len(values) > expected else ""
        raise InputError(
            f"{path}: {m} cameras, {n} points and {k} observations take {expected} numbers; found {len(values)}{more}"
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


def _counts(path: Path, head: bytes) -> tuple[int, int, int]:
    """Cameras, points and observations, with which a BAL file begins."""
    words = head.split()[:3]
    try:
        counts = np.array(words, dtype=np.float64)
    except ValueError:
        counts = np.full(len(words), np.nan)
    shown = b" ".join(words)[:60].decode(errors="backslashreplace")
    if len(counts) < 3 or not np.isfinite(counts).all() or (counts < 0).any():
        raise InputError(
            f"{path} is not a BAL file: it begins with {shown!r}; expected to begin with three counts (cameras, points, "
            "observations), numbers only"
        )
    if (counts != np.floor(counts)).any() or (counts > _MOST).any():
        raise InputError(f"{path} begins with {shown}; expected three whole numbers")
    m, n, k = counts.astype(int).tolist()
    return m, n, k


def _numbers(path: Path, blocks: Iterable[bytes], most: int) -> Array:
    """The numbers of a file, read in blocks up to `most` numbers: a small packed file can expand to any number of
    gigabytes."""
    parts, found, rest = [np.empty(0)], 0, b""
    for block in chain(blocks, [b"\n"]):
        text = rest + block
        end = max(text.rfind(blank) for blank in _BLANKS) + 1
        text, rest = text[:end], text[end:]
        if len(rest) > _BLOCK:
            raise InputError(f"{path}: number {found + 1} begins with {rest[:40]!r} and does not end; expected numbers")
        if text.strip():
            parts.append(_parsed(path, text, found))
            found += len(parts[-1])
        if found > most:
            break
    return np.concatenate(parts)


def _parsed(path: Path, text: bytes, before: int) -> Array:
    """Numbers with blanks between them, `before` of which came earlier; the first word that is none is named."""
    try:
        with warnings.catch_warnings():
            # NumPy is fast and stops at a word that is no number, with a warning.
            warnings.simplefilter("error", DeprecationWarning)
            values = np.fromstring(text.decode("ascii"), sep=" ")
        if np.isfinite(values).all():
            return values
    except (ValueError, DeprecationWarning):
        pass
    for number, word in enumerate(text.split(), before + 1):
        try:
            finite = math.isfinite(float(word))
        except ValueError:
            finite = False
        if not finite:
            shown = word[:40].decode(errors="backslashreplace")
            raise InputError(f"{path}: number {number} is {shown!r}; expected finite numbers only")
    raise InputError(f"{path} is not a BAL file; expected numbers only")


def _name(camera: int) -> str:
    return f"camera-{camera:06d}"


def read_observations(path: Path) -> Observations:
    """Scaled pixels, intrinsics unknown, radial distortion ignored. Camera k is image id k + 1, point j is id j + 1."""
    bal = read_bal(path)
    first = without_repeats(bal.camera, bal.landmark)
    camera, landmark, uv = bal.camera[first], bal.landmark[first], bal.uv[first]
    scale = float(np.abs(uv).max(initial=1.0))
    # COLMAP's pixels begin at the corner; the file has no image size, so take the extent of the observations.
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
