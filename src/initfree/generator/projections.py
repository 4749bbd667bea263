"""Observations as flat arrays: row k says that image[k] sees landmark[k] at pixel[k]."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


@dataclass(frozen=True)
class Projections:
    """Rows sorted by landmark, then image; degraded observations keep the rows of the true ones."""

    image: NDArray[np.int32]
    landmark: NDArray[np.int32]
    pixel: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.image)

    def __getitem__(self, rows: object) -> "Projections":
        return Projections(self.image[rows], self.landmark[rows], self.pixel[rows])  # type: ignore[index]

    def sorted(self) -> "Projections":
        """The same rows in canonical order."""
        return self[np.lexsort((self.image, self.landmark))]

    def by_landmark(self) -> "Projections":
        """Rows that come image by image, in canonical order: a landmark's stay in the order of their images."""
        return self[np.argsort(self.landmark, kind="stable")]

    def track_lengths(self, landmarks: int) -> NDArray[np.int64]:
        """Number of observations of each landmark."""
        return np.bincount(self.landmark, minlength=landmarks)

    def per_image(self, images: int) -> NDArray[np.int64]:
        """Number of observations in each image."""
        return np.bincount(self.image, minlength=images)

    def keypoint(self, images: int) -> NDArray[np.int64]:
        """Each row's index among the rows of its image: COLMAP's point2D index."""
        order = np.argsort(self.image, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.per_image(images))])
        index = np.empty(len(self), np.int64)
        index[order] = np.arange(len(self)) - starts[self.image[order]]
        return index

    def covisibility(self, images: int, landmarks: int) -> csr_array:
        """C[k, l]: landmarks seen by both images k and l; the diagonal counts those of one image."""
        incidence = csr_array((np.ones(len(self), np.int32), (self.image, self.landmark)), shape=(images, landmarks))
        return csr_array(incidence @ incidence.T)
