"""The array type of annotations, and the layout that observations have everywhere."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True)
class Tracks:
    """Which camera sees which landmark. Observations are sorted by landmark, then by camera."""

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
    def covisibility(self) -> NDArray[np.int64]:
        """C[k, l]: landmarks that cameras k and l share; the diagonal counts a camera's observations."""
        return self.shared_by(np.ones(self.observations, dtype=np.int64))

    def shared_by(self, weight: NDArray[Number]) -> NDArray[Number]:
        """The same, each landmark with the product of its two observations' weights."""
        from scipy.sparse import csr_array

        seen = csr_array((weight, self.cam, self.ptr), shape=(self.landmarks, self.cameras))
        return (seen.T @ seen).toarray()
