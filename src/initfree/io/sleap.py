"""SLEAP's analysis files: a folder with one NAME.analysis.h5 a camera (`sleap-convert --format analysis`).

tracks (tracks, 2, nodes, frames), node_names, point_scores (tracks, nodes, frames). Needs h5py
(`pip install 'initfree[sleap]'`).
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from initfree.data.observations import Intrinsics, Observations
from initfree.errors import InputError
from initfree.io.keypoints import Detection, named_apart, observations_of_keypoints

_ENDING = ".analysis.h5"


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
        raise InputError(f"{path} is a file of SLEAP, which needs h5py (pip install 'initfree[sleap]')") from error
    try:
        with h5py.File(path, "r") as file:
            tracked, named = file.get("tracks"), file.get("node_names")
            if not isinstance(tracked, h5py.Dataset) or not isinstance(named, h5py.Dataset):
                raise InputError(f"{path} has no tracks or no node_names; expected an analysis file of SLEAP")
            shape = tracked.shape
            if len(shape) != 4 or shape[1] != 2 or np.prod(shape, dtype=np.float64) > 1e9:
                raise InputError(f"{path}: tracks has shape {shape}; expected (tracks, 2, nodes, frames)")
            xy = np.asarray(tracked, dtype=np.float64)
            nodes = [name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in named[:]]
            scores = np.asarray(file["point_scores"], dtype=np.float64) if "point_scores" in file else np.ones(1)
    except InputError:
        raise
    except Exception as error:  # h5py raises whatever a damaged file leads it to
        raise InputError(f"{path} cannot be read as HDF5: it is cut or damaged") from error
    tracks, _, count, _ = xy.shape
    if len(nodes) != count:
        raise InputError(f"{path} has {len(nodes)} node_names; expected {count}, as tracks has")
    scored = scores.shape == (tracks, count, xy.shape[3])
    for track, node, frame in zip(*np.nonzero(np.isfinite(xy).all(axis=1)), strict=True):
        name = nodes[node] if tracks == 1 else f"{track}.{nodes[node]}"
        score = min(float(scores[track, node, frame]), 1.0) if scored else 1.0
        yield int(frame), name, float(xy[track, 0, node, frame]), float(xy[track, 1, node, frame]), score
