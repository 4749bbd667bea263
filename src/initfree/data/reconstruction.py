"""The metric reconstruction: moved by the stages after the upgrade, returned by a solve, read from a truth."""

from dataclasses import dataclass, field, replace

import numpy as np

from initfree.data.tracks import Array, Index, Tracks


def _no_ids() -> Index:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Cameras and landmarks, metric up to a similarity.

    A landmark X is at x = R X + t in the camera's frame and projects to f π(x)(1 + k1 n + k2 n²) with n = |π(x)|².

    Attributes:
        R: Rotations from world to camera, (cameras, 3, 3).
        t: Translations from world to camera, (cameras, 3).
        focal: Focal lengths in normalised units, (cameras,); all 1 where the intrinsics are known.
        radial: Distortion k1 and k2, (cameras, 2); zero until an adjustment estimates it.
        xyz: Landmarks, (landmarks, 3).
        names: Image of each camera. The solver itself numbers cameras and landmarks.
        ids: Id of each landmark, (landmarks,).
    """

    R: Array
    t: Array
    focal: Array
    radial: Array
    xyz: Array
    names: tuple[str, ...] = ()
    ids: Index = field(default_factory=_no_ids)

    @classmethod
    def of_poses(cls, names: tuple[str, ...], R: Array, t: Array, ids: Index, xyz: Array) -> "Reconstruction":
        """Labelled poses and landmarks without intrinsics: enough for an evaluation."""
        return cls(R, t, np.ones(len(R)), np.zeros((len(R), 2)), xyz, names, ids)

    @property
    def centres(self) -> Array:
        """Camera centres -R't, (cameras, 3)."""
        return -(self.R.transpose(0, 2, 1) @ self.t[:, :, None])[:, :, 0]

    @property
    def matrices(self) -> Array:
        """Matrices from world to camera, (cameras, 4, 4)."""
        matrices = np.tile(np.eye(4), (len(self.R), 1, 1))
        matrices[:, :3, :3], matrices[:, :3, 3] = self.R, self.t
        return matrices

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
