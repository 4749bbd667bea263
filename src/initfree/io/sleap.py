"""SLEAP's analysis files: a folder with one NAME.analysis.h5 a camera (`sleap-convert --format analysis`).

tracks (tracks, 2, nodes, frames), node_names, point_scores (tracks, nodes, frames). Needs h5py (extra `sleap`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from initfree.data.files import regular
from initfree.data.observations import Intrinsics, Observations
from initfree.errors import InputError
from initfree.extras import install
from initfree.io.keypoints import Detection, named_apart, observations_of_keypoints

_ENDING = ".analysis.h5"
_LEAST, _LEAST_DETECTION = 100_000, 4
"""detections in a file of any size, and bytes of each further one, packed"""
_LEAST_BYTES, _MOST_RATIO = 64 << 20, 16
"""of a dataset in a file of any size, and more as a multiple of it: where nothing was detected, nothing is stored"""


def is_sleap(path: Path) -> bool:
    return path.is_dir() and len(_files(path)) >= 2


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """A camera is called as its file; of several tracks the points are called TRACK.NODE."""
    files = _files(path)
    cameras = named_apart(path, files, [file.name.removesuffix(_ENDING) for file in files])
    return observations_of_keypoints(path, {name: _detections(file) for name, file in cameras.items()}, intrinsics)


def _files(path: Path) -> list[Path]:
    return sorted(path.glob(f"*{_ENDING}"))


def _detections(path: Path) -> Iterator[Detection]:
    try:
        import h5py
    except ImportError as error:
        raise InputError(f"{path} is a file of SLEAP, which needs h5py ({install('sleap')})") from error
    try:
        with h5py.File(regular(path), "r") as file:
            tracked, named, scored = (_dataset(path, file, name) for name in ("tracks", "node_names", "point_scores"))
            if tracked is None or named is None:
                raise InputError(f"{path} has no tracks or no node_names; expected an analysis file of SLEAP")
            shape = tracked.shape
            if len(shape) != 4 or shape[1] != 2:
                raise InputError(f"{path}: tracks has shape {shape}; expected (tracks, 2, nodes, frames)")
            if named.shape != shape[2:3]:
                raise InputError(f"{path} has node_names of shape {named.shape}; expected {shape[2]}, as tracks has nodes")
            xy = np.asarray(tracked, dtype=np.float64)
            nodes = [name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in named[:]]
            fits = scored is not None and scored.shape == (shape[0], *shape[2:])
            scores = np.asarray(scored, dtype=np.float64) if fits else None
    except InputError:
        raise
    except Exception as error:  # h5py raises whatever a damaged file leads it to
        raise InputError(f"{path} cannot be read as HDF5: it is cut or damaged") from error
    tracks, size = len(xy), path.stat().st_size
    seen = np.isfinite(xy).all(axis=1)
    if np.count_nonzero(seen) > _LEAST + size // _LEAST_DETECTION:
        raise InputError(f"{path} has {np.count_nonzero(seen):,} detections in {size:,} bytes; expected some that differ")
    names = [[node if tracks == 1 else f"{track}.{node}" for node in nodes] for track in range(tracks)]
    for track, node, frame in zip(*np.nonzero(seen), strict=True):
        score = 1.0 if scores is None else min(float(scores[track, node, frame]), 1.0)
        x, y = xy[track, :, node, frame].tolist()
        yield int(frame), names[track][node], x, y, score


def _dataset(path: Path, file: Any, name: str) -> Any:
    """A dataset that is in this file, and not much larger than it: what is not stored is no number of bytes."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink) or not isinstance(file[name], h5py.Dataset):
        return None
    found: Any = file[name]
    if found.is_virtual or found.external:
        raise InputError(f"{path}: {name} is kept in another file; expected an analysis file of SLEAP")
    most = _LEAST_BYTES + _MOST_RATIO * path.stat().st_size
    if found.size * max(found.dtype.itemsize, 8) > most:
        raise InputError(f"{path}: {name} has shape {found.shape}; expected at most {most:,} bytes in a file of its size")
    return found
