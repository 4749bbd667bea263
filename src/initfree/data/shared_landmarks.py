"""Which landmark of one model is which of another: the ones that the same keypoints of the same images observe.

Ids are private to a program. Two landmarks are one where at least two of their observations are the same: in an image of
the same name, the same keypoint. Keypoints are the same by number where both models list the same ones (as many, and mostly
at the same places; noise may have been added), and otherwise where they are nearest to each other and within a pixel.
"""

import numpy as np
from scipy.spatial import KDTree

from initfree.data.observations import Observations
from initfree.data.tracks import Array, Index

SHARED = 2
"""observations that two landmarks must share"""
NEAR = 1.0
"""pixels between keypoints of different lists that are the same"""
SAME_LIST = 4.0
"""pixels: half of the keypoints of two lists that are the same differ by less"""


def landmark_matches(a: Observations, b: Observations) -> tuple[Index, Index]:
    """Landmark ids of `a` and of `b` that are the same, each at most once: mutually those that share most observations."""
    of_b = {image.name: k for k, image in enumerate(b.images)}
    rows_a, rows_b = _by_image(a), _by_image(b)
    found_a, found_b = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for k, image in enumerate(a.images):
        other = of_b.get(image.name)
        if other is None or not len(rows_a[k]) or not len(rows_b[other]):
            continue
        one, two = rows_a[k], rows_b[other]
        i, j = _same(a.keypoint[one], b.keypoint[two], image.keypoints, b.images[other].keypoints)
        found_a.append(a.landmark_id[one[i]])
        found_b.append(b.landmark_id[two[j]])
    pairs, votes = np.unique(
        np.stack([np.concatenate(found_a), np.concatenate(found_b)], axis=1), axis=0, return_counts=True
    )
    pairs, votes = pairs[votes >= SHARED], votes[votes >= SHARED]
    mutual = _first_of(pairs[:, 0], votes, pairs[:, 1]) & _first_of(pairs[:, 1], votes, pairs[:, 0])
    return pairs[mutual, 0], pairs[mutual, 1]


def _by_image(o: Observations) -> list[Index]:
    order = np.argsort(o.image, kind="stable")
    return np.split(order, np.searchsorted(o.image[order], np.arange(1, len(o.images))))


def _same(a: Index, b: Index, xy_a: Array, xy_b: Array) -> tuple[Index, Index]:
    """Which of the observed keypoints `a` and `b` are the same."""
    with np.errstate(invalid="ignore"):  # keypoints that nothing is observed at may be anything
        same = len(xy_a) == len(xy_b) and np.median(np.linalg.norm(xy_a - xy_b, axis=1)) < SAME_LIST
    if same:
        _, i, j = np.intersect1d(a, b, return_indices=True)
        return i, j
    distance, j = KDTree(xy_b[b]).query(xy_a[a])
    _, i = KDTree(xy_a[a]).query(xy_b[b])
    mutual = np.flatnonzero((distance <= NEAR) & (i[j] == np.arange(len(a))))
    return mutual, j[mutual]


def _first_of(key: Index, votes: Index, other: Index) -> np.ndarray:
    """Of the pairs with the same key, the one with most votes."""
    order = np.lexsort((other, -votes, key))
    first = np.zeros(len(key), dtype=bool)
    first[order] = np.concatenate([np.ones(min(len(key), 1), dtype=bool), np.diff(key[order]) != 0])
    return first
