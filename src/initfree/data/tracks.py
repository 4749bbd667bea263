"""The array type of annotations, and the layout that observations have everywhere."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True, eq=False)
class Tracks:
    """Camera and landmark of every observation, sorted by landmark, then by camera. Compared by identity, so that derived
    values can be cached."""

    cam: Index
    """Camera of each observation, (observations,)"""
    ptr: Index
    """Observations of landmark j are ptr[j]:ptr[j + 1], (landmarks + 1,)"""
    cameras: int

    @property
    def landmarks(self) -> int:
        return len(self.ptr) - 1

    @property
    def observations(self) -> int:
        return len(self.cam)

    @cached_property
    def landmark(self) -> Index:
        """Landmark of each observation."""
        return np.repeat(np.arange(self.landmarks), np.diff(self.ptr))

    @cached_property
    def camera_ptr(self) -> Index:
        """Observations of camera k are `by_camera[camera_ptr[k]:camera_ptr[k + 1]]`, (cameras + 1,)"""
        return np.concatenate([[0], np.cumsum(np.bincount(self.cam, minlength=self.cameras))]).astype(np.int64)

    @cached_property
    def by_camera(self) -> Index:
        """Observations in the order of their cameras, and of landmarks for each."""
        return np.argsort(self.cam, kind="stable").astype(np.int64)

    def seen_by(self, camera: int) -> Index:
        """Observations of one camera."""
        return self.by_camera[self.camera_ptr[camera] : self.camera_ptr[camera + 1]]

    def matches(self, k: int, l: int) -> Index:
        """Observations in camera k and in camera l of their common landmarks, (matches, 2)."""
        in_k, in_l = self.seen_by(k), self.seen_by(l)
        _, a, b = np.intersect1d(self.landmark[in_k], self.landmark[in_l], return_indices=True, assume_unique=True)
        return np.stack([in_k[a], in_l[b]], axis=1)

    @cached_property
    def covisible(self) -> "csr_array":
        """C[k, l], sparse: number of landmarks that cameras k and l share; the diagonal counts a camera's observations."""
        return self.sharing(np.ones(self.observations, dtype=np.int64))

    def sharing(self, weight: NDArray[Number]) -> "csr_array":
        """The same, with each landmark weighted by the product of its two observations' weights."""
        from scipy.sparse import csr_array

        seen = csr_array((weight, self.cam, self.ptr), shape=(self.landmarks, self.cameras))
        return csr_array(seen.T @ seen)

    @cached_property
    def covisibility(self) -> NDArray[np.int64]:
        """`covisible` as a dense matrix."""
        return self.covisible.toarray()

    def __repr__(self) -> str:
        return f"Tracks({self.cameras} cameras, {self.landmarks} landmarks, {self.observations} observations)"


def evenly(rows: Index, most: int) -> Index:
    """At most so many of the rows, evenly spaced."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def rows_of_each(number: Index, count: int) -> list[Index]:
    """For each number below `count`, the ascending rows that have it; one sort serves all."""
    order = np.argsort(number, kind="stable")
    return np.split(order, np.searchsorted(number[order], np.arange(1, count))) if count else []
