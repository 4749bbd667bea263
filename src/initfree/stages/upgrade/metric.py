"""From a projective frame and a homography to metric cameras, with cheirality."""

from dataclasses import dataclass, replace

import numpy as np

from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction, nearest_rotation
from initfree.data.tracks import Array, Tracks
from initfree.stages.upgrade.dual_quadric import homography


@dataclass(frozen=True)
class Projective:
    """What a metric upgrade works on."""

    tracks: Tracks
    P: Array
    """(cameras, 3, 4) in normalised image coordinates, principal point at the origin"""
    X: Array
    """(landmarks, 4)"""
    calibrated: bool
    """whether the coordinates are calibrated rays (every focal length is 1)"""
    pixels: Array | None = None
    """pixels per unit of the coordinates, (cameras,); None: the coordinates are pixels"""
    sizes: Array | None = None
    """width + height of the images in pixels, (cameras,)"""

    @classmethod
    def of(cls, problem: Problem, P: Array, X: Array) -> "Projective":
        """Cameras and landmarks of a problem, with its images' sizes."""
        o = problem.observations
        cameras = [o.cameras[k] for k in problem.camera_ids.tolist()]
        sizes = np.array([float(camera.width + camera.height) for camera in cameras])
        return cls(problem.tracks, P, X, problem.calibrated, o.image_unit[problem.images].mean(axis=1), sizes)

    @property
    def unit_pixels(self) -> Array:
        return np.ones(len(self.P)) if self.pixels is None else self.pixels


@dataclass(frozen=True)
class Upgraded:
    """A metric reconstruction with the figures that its upgrade is judged by."""

    reconstruction: Reconstruction
    positive_depths: float
    """share of observations with the landmark in front of the camera"""
    singular_values: tuple[float, ...] = ()
    """of the linear system for Ω*, descending; empty where none was solved"""
    quadric_residual: float = float("nan")
    """median over cameras of |ω_i/|ω_i| - K_i K_i'/|K_i K_i'|| with the K_i found"""
    anisotropy: float = float("nan")
    """largest ratio of first to third singular value of a camera's K_i^-1 P_i H, left 3x3: 1 for a true rotation"""

    @property
    def conditioning(self) -> float:
        """σ9/σ10 of the linear system: how far the solution stands out from the next best."""
        if len(self.singular_values) < 10:
            return float("nan")
        return self.singular_values[8] / max(self.singular_values[9], 1e-300)


def metric_from_quadric(scene: Projective, Q: Array, focal: Array | None, singular_values: Array | None = None) -> Upgraded:
    """Upgrade by H = [Q, n] with Ω* = QQ'; `focal` None reads the focal lengths off ω_i."""
    H = homography(Q)
    X: Array = np.linalg.solve(H, scene.X.T).T.astype(np.float64)
    return metric_from_frame(scene, scene.P @ H, X, focal, singular_values)


def no_upgrade(scene: Projective) -> Upgraded:
    """What a method leaves that found no real transform: nothing but NaN, which counts as a failure."""
    nowhere = np.full((len(scene.P), 3, 3), np.nan)
    t, xyz = nowhere[:, 0], np.full((len(scene.X), 3), np.nan)
    return Upgraded(Reconstruction(nowhere, t, nowhere[:, 0, 0], nowhere[:, 0, :2], xyz), 0.0)


def metric_from_frame(
    scene: Projective, P: Array, X: Array, focal: Array | None, singular_values: Array | None = None
) -> Upgraded:
    """Read P_i ~ K_i [R_i | t_i] off cameras that are metric up to noise.

    Each camera's scale and sign make its left 3x3 have determinant 1; the one sign that is left, the mirror image of the
    world, is that which puts most observations in front of their cameras.
    """
    M = P[:, :, :3]
    omega = M @ M.transpose(0, 2, 1)
    if focal is None:
        ratio = 0.5 * (omega[:, 0, 0] + omega[:, 1, 1]) / np.maximum(omega[:, 2, 2], 1e-300)
        focal = np.sqrt(np.clip(ratio, 1e-6, 1e6))
    K = np.zeros((len(P), 3, 3))
    K[:, 0, 0] = K[:, 1, 1] = focal
    K[:, 2, 2] = 1.0
    calibrated = P / np.stack([focal, focal, np.ones_like(focal)], axis=1)[:, :, None]
    determinant = np.linalg.det(calibrated[:, :, :3])
    scale = np.copysign(np.maximum(np.abs(np.cbrt(determinant)), 1e-300), determinant)
    M = calibrated[:, :, :3] / scale[:, None, None]
    R = nearest_rotation(M)
    # A landmark exactly at infinity keeps its direction, far away.
    w = np.where(np.abs(X[:, 3]) < 1e-15, np.copysign(1e-15, X[:, 3]), X[:, 3])
    xyz = X[:, :3] / w[:, None]
    # M X + p = R X + t cannot hold for all X where M is no rotation; let it hold in the middle of what the camera sees.
    # Keeping t = p would let it hold at the world's origin, which the projective frame has put anywhere.
    middle = _median_seen(scene.tracks, xyz)
    t = calibrated[:, :, 3] / scale[:, None] + np.einsum("nij,nj->ni", M - R, middle)
    found = Reconstruction(R, t, focal, np.zeros((len(P), 2)), xyz)
    depth = found.depths(scene.tracks)
    positive, negative = float(np.mean(depth > 0.0)), float(np.mean(depth < 0.0))
    if negative > positive:
        found, positive = replace(found, t=-t, xyz=-xyz), negative
    stretch = np.linalg.svd(calibrated[:, :, :3], compute_uv=False)
    return Upgraded(
        found,
        positive,
        () if singular_values is None else tuple(float(s) for s in singular_values),
        float(np.median(quadric_residuals(omega, K))),
        float(np.max(stretch[:, 0] / np.maximum(stretch[:, 2], 1e-300))),
    )


def _median_seen(tracks: Tracks, xyz: Array) -> Array:
    """Per camera, the median of each coordinate over the landmarks that it sees; (cameras, 3)."""
    seen = np.split(xyz[tracks.landmark[tracks.by_camera]], tracks.camera_ptr[1:-1])
    return np.array([np.median(points, axis=0) for points in seen])


def quadric_residuals(omega: Array, K: Array) -> Array:
    """|ω_i/|ω_i| - K_i K_i'/|K_i K_i'||_F for every camera (Pollefeys 1999, nonlinear criterion); both (..., 3, 3)."""
    KK = K @ K.swapaxes(-1, -2)
    norm = np.maximum(np.linalg.norm(omega, axis=(-2, -1), keepdims=True), 1e-300)
    return np.linalg.norm(omega / norm - KK / np.linalg.norm(KK, axis=(-2, -1), keepdims=True), axis=(-2, -1))
