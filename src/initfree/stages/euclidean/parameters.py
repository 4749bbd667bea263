"""What the Euclidean stage may move, and where each number stands in its reduced system."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from initfree.data.observations import heavy_tailed
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.errors import InputError

_POSE = (0, 1, 2, 3, 4, 5)
_FOCAL = 6
_RADIAL = (7, 8)
_SEVERAL = 3
"""images of a camera of photographs, on average, that determine two radial coefficients: one photograph trades the second
for its focal length and place"""


def retracted(cameras: Reconstruction, step: Array) -> Reconstruction:
    """R <- exp([ω]×) R, t <- exp([ω]×) t + τ, log f and k1, k2 by addition; step (cameras, 9)."""
    turn = Rotation.from_rotvec(step[:, :3]).as_matrix()
    return replace(
        cameras,
        R=turn @ cameras.R,
        t=(turn @ cameras.t[:, :, None])[:, :, 0] + step[:, 3:6],
        focal=cameras.focal * np.exp(np.clip(step[:, 6], -2.0, 2.0)),
        radial=cameras.radial + step[:, 7:9],
    )


@dataclass(frozen=True)
class FreeIntrinsics:
    """Which intrinsics move beside rotation and translation, and how weakly they are held where nothing else does.

    The priors are residuals in pixels like the observations': (log f - log f0)/σ and k/σ.
    """

    focal: bool = False
    radial: int = 0
    """number of free radial coefficients: 0, 1 (k1) or 2 (k1, k2)"""
    focal_sigma: float | Array = 1.0
    """prior of log f, of all cameras or (cameras,)"""
    focal_about: Array | None = None
    """(cameras,) what it is about; None: its value at the start"""
    focal_range: tuple[Array, Array] | None = None
    """(cameras,) least and most"""
    radial_sigma: float = 0.5
    """prior of k1 and k2, about zero"""

    def __post_init__(self) -> None:
        if self.radial not in (0, 1, 2):
            raise InputError(f"the number of free radial coefficients is {self.radial}; expected 0, 1 or 2")
        if not (np.min(self.focal_sigma) > 0.0 and self.radial_sigma > 0.0):
            raise InputError(
                f"the priors' deviations are {self.focal_sigma} (focal) and {self.radial_sigma} (radial); "
                "expected positive numbers"
            )

    @classmethod
    def unless(cls, calibrated: bool) -> "FreeIntrinsics":
        """Focal length, k1 and k2 where they are unknown."""
        return cls() if calibrated else cls(focal=True, radial=2)

    @classmethod
    def of(cls, problem: Problem, *, known: bool | None = None) -> "FreeIntrinsics":
        """The same of a problem, with its bounds and with what its input says of focal lengths; `known`: by default whether
        the problem is calibrated."""
        if problem.calibrated if known is None else known:
            return cls()
        free, priors = cls(focal=True, radial=2, focal_range=problem.focal_range), problem.focal_priors
        if priors is None:
            return free
        if len(np.unique(problem.camera_ids)) * _SEVERAL > len(problem.camera_ids):
            free = replace(free, radial=1)
        unit = problem.observations.image_unit[problem.images].mean(axis=1)
        about = np.array([prior.pixels for prior in priors]) / unit
        return replace(free, focal_sigma=np.array([prior.deviation for prior in priors]), focal_about=about)

    def at(self, focal: Array) -> "FreeIntrinsics":
        """With priors that have the slope there which heavy tails have."""
        if self.focal_about is None:
            return self
        return replace(self, focal_sigma=heavy_tailed(self.focal_sigma, np.log(focal / self.focal_about)))

    def bounded(self, focal: Array) -> Array:
        """Focal lengths as far as they can be ones."""
        return focal if self.focal_range is None else np.clip(focal, *self.focal_range)

    @property
    def slots(self) -> tuple[int, ...]:
        """The free parameters of a camera, of (ω, τ, log f, k1, k2)."""
        return _POSE + ((_FOCAL,) if self.focal else ()) + _RADIAL[: self.radial]


POSES_ONLY = FreeIntrinsics()


class Parameters:
    """Where each camera's free numbers stand in the reduced system: 6 a camera, then the intrinsics of each group."""

    def __init__(self, free: FreeIntrinsics, groups: Index) -> None:
        self.slots = free.slots
        cameras, intrinsics = len(groups), len(self.slots) - len(_POSE)
        _, group = np.unique(groups, return_inverse=True)
        self.size = 6 * cameras + intrinsics * (int(group.max(initial=-1)) + 1)
        self.column = np.empty((cameras, len(self.slots)), dtype=np.int64)
        self.column[:, :6] = 6 * np.arange(cameras)[:, None] + np.arange(6)
        self.column[:, 6:] = 6 * cameras + intrinsics * group[:, None] + np.arange(intrinsics)
        sigma: dict[int, float | Array] = {_FOCAL: free.focal_sigma, **dict.fromkeys(_RADIAL, free.radial_sigma)}
        self._intrinsic_slots = list(self.slots[6:])
        self.prior = np.zeros(self.size)
        """1/σ² of every number; zero for poses"""
        for place, slot in enumerate(self._intrinsic_slots, start=6):
            self.prior[self.column[:, place]] = sigma[slot] ** -2.0

    def intrinsics(self, state: Reconstruction, reference: Reconstruction) -> Array:
        """(log f/f0, k1, k2) of the free ones, at their places in the reduced system; zero elsewhere."""
        values = np.column_stack([np.log(state.focal / reference.focal), state.radial])
        result = np.zeros(self.size)
        result[self.column[:, 6:]] = values[:, [slot - _FOCAL for slot in self._intrinsic_slots]]
        return result

    def fold(self, by_camera: Array) -> Array:
        """Sum of (cameras, slots) over the cameras that share a number."""
        result = np.zeros(self.size)
        np.add.at(result, self.column, by_camera)
        return result

    def unfold(self, step: Array) -> Array:
        """(cameras, slots) of a step of the reduced system."""
        return step[self.column]

    def complete(self, by_slot: Array) -> Array:
        """(cameras, 9) with zeros for what does not move."""
        result = np.zeros((len(by_slot), 9))
        result[:, list(self.slots)] = by_slot
        return result
