"""The one metric reconstruction: what the stages from the upgrade on move, what is returned, and what a truth is."""

from dataclasses import dataclass, field, replace

import numpy as np

from initfree.data.tracks import Array, Index, Tracks


def _no_ids() -> Index:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Metric up to a similarity: cameras x = R X + t, seen at f π(x)(1 + k1 n + k2 n²) with n = |π(x)|², and landmarks X.

    Inside the solver cameras and landmarks are numbers; `names` and `ids` label them where one reconstruction is compared
    with another.
    """

    R: Array
    """(cameras, 3, 3), world to camera"""
    t: Array
    """(cameras, 3)"""
    focal: Array
    """(cameras,) in normalised units; all 1 where the intrinsics are known and used"""
    radial: Array
    """(cameras, 2): k1, k2; zero until an adjustment frees them"""
    xyz: Array
    """(landmarks, 3)"""
    names: tuple[str, ...] = ()
    """image of each camera"""
    ids: Index = field(default_factory=_no_ids)
    """(landmarks,)"""

    @classmethod
    def of_poses(cls, names: tuple[str, ...], R: Array, t: Array, ids: Index, xyz: Array) -> "Reconstruction":
        """Labelled poses and landmarks of which nothing else is known: all that an evaluation looks at."""
        return cls(R, t, np.ones(len(R)), np.zeros((len(R), 2)), xyz, names, ids)

    @property
    def centres(self) -> Array:
        """Camera centres -R't, (cameras, 3)."""
        return -(self.R.transpose(0, 2, 1) @ self.t[:, :, None])[:, :, 0]

    @property
    def cameras(self) -> tuple[Array, Array, Array, Array]:
        """R, t, focal, radial: the cameras as the kernels take them."""
        return self.R, self.t, self.focal, self.radial

    def subset(self, cameras: Index | slice, landmarks: Index | slice) -> "Reconstruction":
        """Some of the cameras and landmarks."""
        return replace(
            self,
            R=self.R[cameras],
            t=self.t[cameras],
            focal=self.focal[cameras],
            radial=self.radial[cameras],
            xyz=self.xyz[landmarks],
            names=tuple(np.array(self.names, dtype=object)[cameras]) if self.names else (),
            ids=self.ids[landmarks] if len(self.ids) else self.ids,
        )

    def contiguous(self) -> "Reconstruction":
        """The same numbers in arrays of its own, laid out as the kernels want them."""
        arrays = {name: np.array(getattr(self, name), dtype=np.float64, order="C") for name in _ARRAYS}
        return replace(self, **arrays)

    def depths(self, tracks: Tracks) -> Array:
        """Depth of every observation."""
        return np.einsum("nk,nk->n", self.R[tracks.cam, 2], self.xyz[tracks.landmark]) + self.t[tracks.cam, 2]

    def positive_depths(self, tracks: Tracks) -> float:
        """Share of the observations whose landmark is in front of the camera."""
        return float(np.mean(self.depths(tracks) > 0.0))

    def __repr__(self) -> str:
        return f"Reconstruction({len(self.R)} cameras, {len(self.xyz)} landmarks)"


_ARRAYS = ("R", "t", "focal", "radial", "xyz")


def nearest_rotation(M: Array) -> Array:
    """The rotation closest to M in the Frobenius norm; works on stacks (..., 3, 3)."""
    U, _, Vt = np.linalg.svd(M)
    sign = np.sign(np.linalg.det(U @ Vt))
    U = U.copy()
    U[..., :, 2] *= np.where(sign == 0.0, 1.0, sign)[..., None]
    return U @ Vt
