"""What figures need of a run, in single precision: reconstructions over their truth, and the sets themselves."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from initfree.benchmark.data import Data, Place, load_data
from initfree.benchmark.jobs import DataSpec
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.errors import InputError
from initfree.evaluation import similarity

LANDMARKS = 1500


def reconstruction(data: Data, models: dict[str, Reconstruction]) -> bytes:
    """The .npz of a job: the truth, and every reconstruction aligned to it as the landmark errors are.

    Cameras and landmarks that a reconstruction lacks are NaN.
    """
    chosen = _subset(data.truth.ids[np.isin(data.truth.ids, data.problem.landmark_ids)])
    arrays = _truth(data.truth, chosen)
    for name, model in models.items():
        centres, R, xyz = aligned(model, data.truth)
        at = {image: k for k, image in enumerate(model.names)}
        cameras = np.array([at.get(image, -1) for image in data.truth.names])
        arrays[f"{name}_centres"] = _pick(centres, cameras)
        arrays[f"{name}_R"] = _pick(R, cameras)
        point = {int(i): k for k, i in enumerate(model.ids)}
        arrays[f"{name}_xyz"] = _pick(xyz, np.array([point.get(int(i), -1) for i in chosen], dtype=np.int64))
    return _packed(arrays)


def aligned(model: Reconstruction, truth: Reconstruction) -> tuple[Array, Array, Array]:
    """Centres, rotations and landmarks of a model in the world of the truth."""
    _, a, b = np.intersect1d(model.ids, truth.ids, return_indices=True)
    usable = np.isfinite(model.xyz[a]).all(axis=1)
    s, R, t = 1.0, np.eye(3), np.zeros(3)
    if usable.sum() >= 3:
        s, R, t = similarity(model.xyz[a[usable]], truth.xyz[b[usable]])
    return s * model.centres @ R.T + t, model.R @ R.T, s * model.xyz @ R.T + t


def picture_of_set(spec: DataSpec, place: Place) -> tuple[str, bytes | None]:
    """Name and .npz of a set: its truth, covisibility and statistics; None where the set cannot be made."""
    name = set_name(spec)
    try:
        data = load_data(spec, place)
    except InputError:
        return name, None
    tracks = data.problem.tracks
    lengths = np.diff(tracks.ptr)
    figures = {
        "cameras": tracks.cameras,
        "landmarks": tracks.landmarks,
        "observations": tracks.observations,
        "observations_a_landmark": float(lengths.mean()),
        "scene_scale": data.scene_scale,
    }
    arrays = _truth(data.truth, _subset(data.truth.ids))
    arrays["covisibility"] = tracks.covisibility.astype(np.int32)
    arrays["statistics"] = np.array(json.dumps(figures))
    return name, _packed(arrays)


def picture_name(set: str, seed: int, min_obs: int) -> str:
    """File name; degraded observations have the same truth, so the first condition stands for all."""
    return f"{Path(set).stem}-{seed}-{min_obs}.npz"


def set_name(spec: DataSpec) -> str:
    """File name of the picture of a job's set."""
    return picture_name(spec.set, spec.seed, spec.min_obs)


def _truth(truth: Reconstruction, chosen: Index) -> dict[str, NDArray]:
    place = {int(i): k for k, i in enumerate(truth.ids)}
    return {
        "names": np.array(truth.names),
        "truth_centres": truth.centres.astype(np.float32),
        "truth_R": truth.R.astype(np.float32),
        "truth_xyz": truth.xyz[[place[int(i)] for i in chosen]].astype(np.float32),
    }


def _subset(ids: Index) -> Index:
    if len(ids) <= LANDMARKS:
        return ids
    return np.sort(np.random.default_rng(0).choice(ids, LANDMARKS, replace=False))


def _pick(values: Array, rows: Index) -> NDArray[np.float32]:
    picked = np.full((len(rows), *values.shape[1:]), np.nan, np.float32)
    picked[rows >= 0] = np.clip(values[rows[rows >= 0]], -1e30, 1e30)
    return picked


def _packed(arrays: dict[str, NDArray]) -> bytes:
    stream = io.BytesIO()
    content: Any = arrays
    np.savez_compressed(stream, **content)
    return stream.getvalue()
