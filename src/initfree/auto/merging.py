"""Reconstructions of overlapping parts in one frame: similarities between pairs of parts, then a tree of them.

Two right parts differ by a similarity, which their common cameras and landmarks determine. A similarity that few of these
agree with is rejected: one of the parts, or their joint, is wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.evaluation import similarity

LEAST_SHARED = 12
"""cameras and landmarks that two parts must share"""
LARGEST_MISS = 0.02
"""median distance between common points of two parts after the similarity, over their extent; beyond, the parts disagree"""
_ROUNDS = 20


@dataclass(frozen=True)
class Similarity:
    """x -> scale R x + t, a change of frame."""

    scale: float
    R: Array
    t: Array

    def __call__(self, x: Array) -> Array:
        return self.scale * x @ self.R.T + self.t

    def after(self, first: "Similarity") -> "Similarity":
        """The composition: `first`, then this."""
        return Similarity(self.scale * first.scale, self.R @ first.R, self(first.t[None])[0])

    @property
    def inverse(self) -> "Similarity":
        return Similarity(1.0 / self.scale, self.R.T, -self.R.T @ self.t / self.scale)

    def moved(self, reconstruction: Reconstruction) -> Reconstruction:
        """The same reconstruction in the other frame; its projections do not change."""
        R = reconstruction.R @ self.R.T
        centres = self(reconstruction.centres)
        t = -np.einsum("nij,nj->ni", R, centres)
        return replace(reconstruction, R=np.ascontiguousarray(R), t=t, xyz=self(reconstruction.xyz))


IDENTITY = Similarity(1.0, np.eye(3), np.zeros(3))


def robust_similarity(source: Array, target: Array) -> tuple[Similarity, float]:
    """Umeyama's similarity (1991), reweighted by the median distance so that wrong landmarks lose their influence.

    Also the remaining median distance, as a share of the target's extent (the median distance from its centre).
    """
    weight = np.ones(len(source))
    found, distance = IDENTITY, np.zeros(len(source))
    for _ in range(_ROUNDS):
        found = Similarity(*similarity(source, target, weight))
        distance = np.linalg.norm(found(source) - target, axis=1)
        weight = 1.0 / (1.0 + (distance / (2.0 * float(np.median(distance)) + 1e-12)) ** 2)
    extent = float(np.median(np.linalg.norm(target - np.median(target, axis=0), axis=1)))
    return found, float(np.median(distance)) / max(extent, 1e-300)


@dataclass(frozen=True)
class PartialReconstruction:
    """A reconstruction of some of the cameras and landmarks of a whole."""

    reconstruction: Reconstruction
    cameras: Index
    """indices among the whole's cameras, ascending"""
    landmarks: Index
    """indices among its landmarks, ascending"""


@dataclass(frozen=True)
class Merged:
    """All parts that agree, in the frame of one of them."""

    reconstruction: Reconstruction
    """all cameras and landmarks of the whole; invalid if not placed"""
    placed: NDArray[np.bool_]
    """(cameras,): those of a part that agrees"""
    parts: tuple[int, ...]
    """indices of the agreeing parts"""


def merge(parts: Sequence[PartialReconstruction], cameras: int, landmarks: int) -> Merged:
    """The largest set of parts connected by similarities, in the frame of the part with most cameras.

    Similarities are composed along the tree of those with most common points. A common camera comes from the first part, a
    common landmark is the mean; an adjustment of the whole follows.
    """
    joints = _joints(parts)
    graph = coo_array(
        ([float(shared) for _, _, _, shared in joints], ([a for a, *_ in joints], [b for _, b, *_ in joints])),
        shape=(len(parts), len(parts)),
    ).tocsr()
    _, label = connected_components(graph, directed=False)
    sizes = np.array([len(part.cameras) for part in parts])
    inside: list[int] = np.flatnonzero(label == np.argmax(np.bincount(label, weights=sizes))).tolist()
    first = max(inside, key=lambda p: sizes[p])
    to_first = _along_tree(graph, first, {(a, b): into for a, b, into, _ in joints})
    R, t = np.tile(np.eye(3), (cameras, 1, 1)), np.zeros((cameras, 3))
    placed = np.zeros(cameras, dtype=bool)
    total, count = np.zeros((landmarks, 3)), np.zeros(landmarks)
    for p in inside:
        part, moved = parts[p], to_first[p].moved(parts[p].reconstruction)
        new = ~placed[part.cameras]
        R[part.cameras[new]], t[part.cameras[new]] = moved.R[new], moved.t[new]
        placed[part.cameras] = True
        total[part.landmarks] += moved.xyz
        count[part.landmarks] += 1.0
    xyz = total / np.maximum(count, 1.0)[:, None]
    whole = Reconstruction(R, t, np.ones(cameras), np.zeros((cameras, 2)), xyz)
    return Merged(whole, placed, tuple(inside))


def _joints(parts: Sequence[PartialReconstruction]) -> list[tuple[int, int, Similarity, int]]:
    """(a, b, similarity from the frame of a into that of b, common points), a < b, of parts that agree."""
    found = []
    for b, second in enumerate(parts):
        for a, first in enumerate(parts[:b]):
            _, ka, kb = np.intersect1d(first.cameras, second.cameras, assume_unique=True, return_indices=True)
            _, ja, jb = np.intersect1d(first.landmarks, second.landmarks, assume_unique=True, return_indices=True)
            if len(ka) + len(ja) < LEAST_SHARED:
                continue
            source, target = (
                np.concatenate([part.reconstruction.centres[k], part.reconstruction.xyz[j]])
                for part, k, j in ((first, ka, ja), (second, kb, jb))
            )
            finite = np.isfinite(source).all(axis=1) & np.isfinite(target).all(axis=1)
            into, miss = robust_similarity(source[finite], target[finite])
            if miss <= LARGEST_MISS:
                found.append((a, b, into, int(np.count_nonzero(finite))))
    return found


def _along_tree(graph: csr_array, root: int, joints: dict[tuple[int, int], Similarity]) -> dict[int, Similarity]:
    """Similarities into the frame of part `root` of all parts in the tree of the strongest joints."""
    negative = graph.copy()
    negative.data = -negative.data
    order, before = breadth_first_order(minimum_spanning_tree(negative), root, directed=False)
    found = {root: IDENTITY}
    for p in order[1:].tolist():
        q = int(before[p])
        step = joints[p, q] if p < q else joints[q, p].inverse
        found[p] = found[q].after(step)
    return found
