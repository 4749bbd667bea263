"""How well a reconstruction fits its observations."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.engine import threads
from initfree.engine.losses import Cauchy
from initfree.stages.euclidean import kernels

INLIER_PIXELS = 4.0
"""scale of the Cauchy loss at the end of every adjustment, and the error within which an observation is said to fit"""

NEAREST = 1e-4
"""of the median depth of a camera: a landmark that is nearer lies in the camera's centre"""


@dataclass(frozen=True)
class Residuals:
    """Reprojection residuals in pixels. An observation at or behind its camera's plane, or further off than twice the
    normalised unit, has that error: large, and finite."""

    vectors: Array
    """(observations, 2)"""
    depth: Array
    """(observations,)"""
    cam: Index

    @cached_property
    def error(self) -> Array:
        """Length of every residual."""
        return np.linalg.norm(self.vectors, axis=1)

    @cached_property
    def in_front(self) -> NDArray[np.bool_]:
        """Observations in front of their camera, and not in its very centre: a landmark there fits any pixel, and its
        derivatives are out of all proportion. Compared by camera, because parts of a scene may differ in scale by any factor
        if only a spot joins them."""
        front = (self.depth > 0.0) & np.isfinite(self.depth)
        if front.any():
            near = front & (self.depth < NEAREST * float(np.median(self.depth[front])))
            for k in np.unique(self.cam[near]):
                mine = front & (self.cam == k)
                front[mine] = self.depth[mine] > NEAREST * float(np.median(self.depth[mine]))
        return front

    def within(self, pixels: float) -> NDArray[np.bool_]:
        """Observations in front of their camera with at most this error."""
        return (self.error <= pixels) & self.in_front


def residuals(problem: Problem, reconstruction: Reconstruction) -> Residuals:
    """Of every observation of the problem."""
    t = problem.tracks
    vectors, depth = np.empty((t.observations, 2)), np.empty(t.observations)
    image = problem.m, problem.unit, True
    cameras, xyz = reconstruction.cameras, reconstruction.xyz
    threads.run(kernels.residual_vectors, t.ptr, t.ptr, t.cam, cameras, xyz, image, vectors, depth)
    return Residuals(vectors, depth, t.cam)


def robust_cost(problem: Problem, reconstruction: Reconstruction) -> float:
    """1/2 sum ρ(|r|²) over all observations, Cauchy at 4 px: what starts are compared by, wherever they come from."""
    t, squared = problem.tracks, np.empty(problem.tracks.observations)
    image = problem.m, problem.unit, True
    cameras, xyz = reconstruction.cameras, reconstruction.xyz
    threads.run(kernels.squared_residuals, t.ptr, t.ptr, t.cam, cameras, xyz, image, squared)
    return Cauchy(INLIER_PIXELS).total(squared)


def consensus(problem: Problem, reconstruction: Reconstruction, least: int = 3) -> NDArray[np.bool_]:
    """Observations within 4 px, in front, of landmarks that at least `least` such observations agree on."""
    fits = residuals(problem, reconstruction).within(INLIER_PIXELS)
    return fits & (np.bincount(problem.tracks.landmark, weights=fits) >= least)[problem.tracks.landmark]
