"""Figures that say what was made: sizes, density, connectivity, baselines, parallax."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import triu
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from initfree.generator.dataset import Dataset
from initfree.generator.projections import Projections
from initfree.generator.trajectories import Poses


def statistics(dataset: Dataset) -> dict[str, Any]:
    """Plain numbers for dataset.json; lengths in scene units, angles in degrees."""
    observations, images, landmarks = dataset.observations, len(dataset.names), len(dataset.landmarks)
    lengths = observations.track_lengths(landmarks)
    covisibility = observations.covisibility(images, landmarks)
    shared = triu(covisibility, k=1).tocoo().data
    components, label = connected_components(covisibility, directed=False)
    centres = dataset.poses.centres
    nearest = KDTree(centres).query(centres, k=2)[0][:, 1] if images > 1 else np.zeros(1)
    depths = np.einsum(
        "nd,nd->n",
        dataset.poses.rotations[observations.image, 2],
        dataset.landmarks[observations.landmark],
    )
    depths += dataset.poses.translations[observations.image, 2]
    figures: dict[str, Any] = {
        "cameras": images,
        "landmarks": landmarks,
        "observations": len(observations),
        "observations_a_landmark": _summary(lengths),
        "observations_a_camera": _summary(observations.per_image(images)),
        "landmark_spread": float(np.sqrt(dataset.landmarks.var(axis=0).sum())),
        "depth": _summary(depths),
        "covisibility": {
            "pairs": images * (images - 1) // 2,
            "pairs_that_share": len(shared),
            "shared_landmarks": _summary(shared) if len(shared) else None,
            "connected_components": int(components),
            "largest_component": int(np.bincount(label).max()),
        },
        "baseline_to_nearest_camera": _summary(nearest),
        "parallax": _summary(parallax(observations, dataset.poses, dataset.landmarks)),
    }
    if dataset.degraded:
        shift = np.linalg.norm(dataset.noisy.pixel - observations.pixel, axis=1)
        figures["degraded"] = {
            "wrong_observations": int(dataset.wrong.sum()),
            "tracks": len(np.unique(dataset.noisy.landmark)),
            "pixel_noise_rms_per_axis": float(np.sqrt((shift**2).mean() / 2)),
        }
    return figures


def parallax(observations: Projections, poses: Poses, landmarks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Widest angle between two rays of each landmark, degrees."""
    rays = poses.centres[observations.image] - landmarks[observations.landmark]
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    lengths = observations.track_lengths(len(landmarks))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    widest = np.zeros(len(landmarks))
    for length in np.unique(lengths[lengths > 1]):
        tracks = np.flatnonzero(lengths == length)
        for some in np.array_split(tracks, max(1, len(tracks) * length**2 // 10_000_000)):
            bundle = rays[starts[some][:, None] + np.arange(length)]
            least = np.einsum("nkd,nld->nkl", bundle, bundle).min(axis=(1, 2))
            widest[some] = np.degrees(np.arccos(np.clip(least, -1, 1)))
    return widest


def _summary(values: NDArray[Any]) -> dict[str, float]:
    return {
        "mean": float(np.mean(values)),
        "min": float(np.min(values)),
        "median": float(np.median(values)),
        "max": float(np.max(values)),
    }
