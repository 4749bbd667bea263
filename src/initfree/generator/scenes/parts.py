"""Clusters of landmarks with nothing between them: what is hard about them is their geometry, not what hides them."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.scenes.surface import Candidates, Surface

Floats = NDArray[np.float64]

_SAME = 1e-6
"""scene units within which a landmark and its equal, moved by the parts' distance, coincide"""


def parts(scene: config.Parts, rng: np.random.Generator) -> Surface:
    """All landmarks of all parts; normals at random, for none has a surface."""
    local: list[Floats] = []
    for number, part in enumerate(scene.parts):
        if part.equal_to is not None and part.equal_to >= number:
            raise InputError(f"part {number} is equal to part {part.equal_to}; expected one of the parts before it")
        local.append(_shape(part, rng) if part.equal_to is None else local[part.equal_to])
    positions = np.concatenate([points + part.centre for points, part in zip(local, scene.parts, strict=True)])
    normals = rng.standard_normal(positions.shape)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    fixed = Candidates(positions, normals, rng.integers(60, 230, positions.shape, np.uint8))
    return Surface(np.zeros((0, 3)), np.zeros((0, 3), np.int64), np.zeros((0, 3, 3), np.uint8), fixed=fixed)


def equal_landmarks(scene: config.Scene, positions: Floats) -> NDArray[np.int64]:
    """(pairs, 2): landmarks of a part and of the part that it is equal to which look the same."""
    pairs = [np.zeros((0, 2), np.int64)]
    if isinstance(scene, config.Parts):
        tree = KDTree(positions)
        for part in scene.parts:
            if part.equal_to is not None:
                apart = np.array(part.centre) - scene.parts[part.equal_to].centre
                distance, other = tree.query(positions + apart, distance_upper_bound=_SAME)
                first = np.flatnonzero(np.isfinite(distance))
                pairs.append(np.stack([first, other[first]], axis=1))
    return np.concatenate(pairs)


def _shape(part: config.Cluster, rng: np.random.Generator) -> Floats:
    half = np.array(part.size) / 2
    if part.shape == "box":
        return half * rng.uniform(-1, 1, (part.landmarks, 3))
    if part.shape == "cubic":
        return half * rng.uniform(-1, 1, part.landmarks)[:, None] ** np.array([1, 2, 3])
    height, angle = rng.uniform(-1, 1, part.landmarks), rng.uniform(0, 2 * np.pi, part.landmarks)
    wide = np.sqrt(1 + height**2)
    return half * np.stack([wide * np.cos(angle), wide * np.sin(angle), height], axis=1)
