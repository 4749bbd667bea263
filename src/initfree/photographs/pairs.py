"""Which photographs are matched with which."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from initfree.photographs.settings import Pairs

EXHAUSTIVE = 150
"""photographs up to which every pair is matched: 11,175 of them"""
_FOLLOWING = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 32, 64)
"""distances in a sequence that are matched, as COLMAP's sequential matcher with its quadratic overlap"""
PARTNERS = 30
"""photographs that look most alike, of each"""
LARGEST = 100
"""features of the largest scale that decide it"""
_ALIKE = 4
"""matches among them, from which a pair is matched in full (Wu 2013, section 2)"""
_RATIO = 0.8
"""of the angles to the nearest and the second nearest descriptor (Lowe 2004)"""

Descriptors = NDArray[np.uint8]


def chosen_pairs(names: Sequence[str], how: Pairs, largest: Callable[[int], Descriptors]) -> list[tuple[int, int]]:
    """Pairs of positions in `names`, the smaller first, in order.

    Args:
        names: In the order in which they were taken.
        how: As `Matching.pairs`.
        largest: The descriptors (features, 128) of the largest features of a photograph.
    """
    n = len(names)
    if how == "exhaustive" or (how == "auto" and n <= EXHAUSTIVE):
        return [(i, j) for i in range(n) for j in range(i + 1, n)]
    found = _following(names)
    if how == "auto":
        found |= alike([largest(k) for k in range(n)])
    return sorted(found)


def _following(names: Sequence[str]) -> set[tuple[int, int]]:
    """Neighbours in the sequence of each folder, and photographs of one name in several folders."""
    folders: dict[str, list[int]] = {}
    named: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        path = PurePosixPath(name)
        folders.setdefault(str(path.parent), []).append(k)
        named.setdefault(path.name, []).append(k)
    found = {(a, b) for row in folders.values() for step in _FOLLOWING for a, b in zip(row, row[step:], strict=False)}
    return found | {(a, b) for row in named.values() for a in row for b in row if a < b}


def alike(descriptors: Sequence[Descriptors]) -> set[tuple[int, int]]:
    """Preemptive matching: pairs whose largest features match, for each photograph the best.

    C. Wu, Towards linear-time incremental structure from motion, 3DV 2013: features of large scale cover most of what
    matching all would find, for a thousandth of its time.
    """
    unit = [_unit(one) for one in descriptors]
    counts = np.zeros((len(unit), len(unit)), dtype=np.int64)
    for i, a in enumerate(unit):
        for j in range(i + 1, len(unit)):
            counts[i, j] = counts[j, i] = _matches(a @ unit[j].T)
    best = np.argsort(-counts, axis=1, kind="stable")[:, :PARTNERS]
    return {(min(i, j), max(i, j)) for i, row in enumerate(best.tolist()) for j in row if counts[i, j] >= _ALIKE}


def _unit(descriptors: Descriptors) -> NDArray[np.float32]:
    values = descriptors.astype(np.float32)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1.0)


def _matches(cosine: NDArray[np.float32]) -> int:
    """Mutual nearest neighbours that pass the ratio test."""
    if min(cosine.shape) < 2:
        return 0
    nearest = cosine.argmax(axis=1)
    second, first = np.partition(cosine, -2, axis=1)[:, -2:].T
    clear = np.arccos(np.minimum(first, 1.0)) < _RATIO * np.arccos(np.minimum(second, 1.0))
    mutual = cosine.argmax(axis=0)[nearest] == np.arange(len(cosine))
    return int(np.count_nonzero(clear & mutual))
