"""Uncertainty: the covariance of cameras and landmarks at the optimum, free of the gauge.

Near the optimum the errors of an adjustment are normal, with the inverse of its normal equations times the noise's variance
as covariance (Triggs and others 2000, section 9). With the landmarks eliminated, the cameras' part of it is the inverse of
the reduced camera system, whose block (i, k) is

    S_ik = Σ_j ( δ_ik J_i'J_i - J_i'B_i V_j^-1 B_k'J_k ),      V_j = Σ_i B_i'B_i.

S is singular along the seven similarities of the world, which no image determines. The pseudo-inverse excludes just these
(inner constraints): deviations are relative to the reconstruction as a whole, and no other gauge has a smaller trace.

The parameters of a camera are (ω, γ, log f, k1, k2): ω rotates it about its centre and γ moves the centre, in its own
frame and in units of the scene's extent, so that all are radians or shares.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

from initfree.data.tracks import Array, Index, Tracks
from initfree.engine.band_cholesky import add_blocks
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.sparse_cholesky import SparseFactorisation
from initfree.stages.euclidean import kernels
from initfree.stages.euclidean.parameters import POSES_ONLY, FreeIntrinsics, Parameters
from initfree.stages.euclidean.system import Cameras, MetricSystem, squared_residuals

GAUGE = 7
DENSE = 3000
"""unknowns of the cameras (500 poses) up to which their system is inverted as a dense matrix"""
_LEAST_STIFFNESS = 1e-13
"""share of a diagonal entry that keeps the system definite in undetermined directions"""
_STIFFER = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
"""the same, tried in turn"""
_COLUMNS = 120
"""right-hand sides of a sparse factorisation at a time"""
_potrf, _potri, _potrs = get_lapack_funcs(("potrf", "potri", "potrs"), dtype=np.float64)


@dataclass(frozen=True)
class Uncertainty:
    """Standard deviations (one sigma) of every camera, relative to the whole reconstruction.

    Attributes:
        rotation: Degrees, (cameras,): root of the trace of the rotation vector's covariance.
        centre: Shares of the scene's extent, (cameras,): the same of the centre.
        focal: Shares of the focal length, (cameras,); zero where that is known.
        noise: Standard deviation in pixels of a coordinate of an observation, from the residuals.
        extent: Extent of the scene, see `scene_extent`.
    """

    rotation: Array
    centre: Array
    focal: Array
    noise: float
    extent: float


def scene_extent(xyz: Array, centres: Array) -> tuple[Array, float]:
    """The centre of the landmarks, and the median distance of landmarks or of cameras from theirs, whichever is larger.

    Medians ignore the farthest; a small object in a large ring of cameras has the extent of the ring.
    """
    middles = [np.median(points, axis=0) for points in (xyz, centres)]
    spreads = [np.median(np.linalg.norm(p - q, axis=1)) for p, q in zip((xyz, centres), middles, strict=True)]
    return middles[0], max(float(max(spreads)), 1e-300)


@dataclass(frozen=True)
class CameraSystem:
    """S at the optimum, over the agreeing observations, and its inverse."""

    tracks: Tracks
    weight: Array
    """(observations,): one if an observation counts, else zero"""
    cameras: Cameras
    """in a frame with the scene's centre as origin and its extent as unit"""
    xyz: Array
    image: tuple[Array, Array, bool]
    """m, unit and cheirality of `euclidean.kernels`"""
    parameters: Parameters
    pairs: CameraPairs
    """cameras that share landmarks"""
    blocks: Array
    """(pairs, slots, slots)"""
    gradient: Array
    """(cameras, slots), reduced; zero at the optimum of these observations alone"""
    noise: float
    """pixels: (Σ |r|² / redundancy)^½"""
    redundancy: int
    """equations beyond the unknowns"""
    extent: float

    def __getstate__(self) -> dict[str, object]:
        """Without computed values, because results are sent between processes."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def size(self) -> int:
        return self.parameters.size

    @property
    def centres(self) -> Array:
        """(cameras, 3), in units of the extent."""
        R, t, _, _ = self.cameras
        return -np.einsum("nji,nj->ni", R, t)

    @cached_property
    def gauge(self) -> Array:
        """(unknowns, 7), orthonormal: motions of the cameras with the world.

        X -> X + q × X + d + s X takes a centre c to c + q × c + d + s c, and turns the camera by ω = -R q; γ = -R δc.
        """
        R, t, _, _ = self.cameras
        centres = self.centres
        basis = np.zeros((self.size, GAUGE))
        turn, move = self.parameters.column[:, :3], self.parameters.column[:, 3:6]
        for axis in range(3):
            basis[turn, axis] = -R[:, :, axis]
            basis[move, axis] = -np.einsum("nij,nj->ni", R, np.cross(np.eye(3)[axis], centres))
            basis[move, 3 + axis] = -R[:, :, axis]
        basis[move, 6] = t
        return np.linalg.qr(basis)[0]

    @cached_property
    def dense(self) -> Array:
        """S with priors and a small diagonal that keeps it definite, except along the gauge."""
        S = np.zeros((self.size, self.size))
        add_blocks(self.pairs.row, self.pairs.column, self.parameters.column, self.blocks, self.size, S.reshape(-1))
        S += np.triu(S, 1).T
        S.flat[:: self.size + 1] += self._stiffened(np.diagonal(S))
        return S

    def _stiffened(self, diagonal: Array) -> Array:
        """Priors, and a small diagonal for undetermined directions."""
        return self.parameters.prior + _LEAST_STIFFNESS * np.where(diagonal > 0.0, diagonal, self._level)

    @cached_property
    def _level(self) -> float:
        """A middling diagonal entry of S."""
        own = np.einsum("nss->ns", self.blocks[self.pairs.diagonal])
        return max(float(np.median(own[:, :6])), 1e-300)

    @cached_property
    def factor(self) -> Array:
        """Cholesky factor of S + level GG', whose inverse is S⁺ + GG'/level.

        If rounding makes the matrix indefinite, some direction is undetermined, and a little more stiffness makes its
        deviation large and finite.
        """
        held = self.dense + self._level * (self.gauge @ self.gauge.T)
        diagonal = np.diagonal(held).copy()
        for stiffness in _STIFFER:
            held.flat[:: self.size + 1] = diagonal * (1.0 + stiffness)
            factor, info = _potrf(held.T, lower=1, clean=0)
            if info == 0:
                break
        else:
            raise np.linalg.LinAlgError("the reduced camera system has negative or undefined stiffness")
        return factor

    @cached_property
    def inverse(self) -> Array:
        """S⁺, dense."""
        lower, _ = _potri(self.factor, lower=1)
        lower = np.tril(lower)
        return lower + np.tril(lower, -1).T - self.gauge @ self.gauge.T / self._level

    @cached_property
    def solve(self) -> Callable[[Array], Array]:
        """b -> S⁺ b for columns b, by a dense or a sparse factorisation.

        With any E of rank seven that holds the gauge, (S + E) x = b has E x = 0, hence S x = b, for every b with no part
        along the gauge; the part of x along it is then taken away. Dense: E = GG'. Sparse: the first camera's pose is held,
        and the one number that changes most where the world grows about it (`pinned`).
        """

        def free(b: Array) -> Array:
            return b - self.gauge @ (self.gauge.T @ b)

        if self.size <= DENSE:
            return lambda b: free(_potrs(self.factor, free(b), lower=1)[0])
        return lambda b: free(self.pinned.solve(free(b)))

    @cached_property
    def pinned(self) -> SparseFactorisation:
        """The sparse factorisation of S + E, a little stiffer where rounding leaves no definite matrix (`factor`)."""
        held = self.parameters.column[0, :6]
        growing = self.gauge @ np.linalg.svd(self.gauge[held])[2][6]
        pins = np.zeros(self.size)
        pins[[*held, int(np.argmax(np.abs(growing)))]] = self._level
        diagonal = self.parameters.fold(np.einsum("nss->ns", self.blocks[self.pairs.diagonal]))
        stiffened = self._stiffened(diagonal) + pins
        result = SparseFactorisation(self.pairs, self.parameters.column, self.size)
        for stiffness in _STIFFER:
            if result.factorise(self.blocks, stiffened + stiffness * np.maximum(diagonal, self._level)):
                return result
        raise np.linalg.LinAlgError("the reduced camera system has negative or undefined stiffness")

    def response(self, noise: Array) -> Array:
        """Motion of the cameras' optimum if observations move by `noise` pixels, (observations, 2): -S⁺ gradient."""
        m, unit, cheirality = self.image
        moved = MetricSystem(self.tracks, self.parameters.slots)
        moved.assemble(self.cameras, self.xyz, (m + noise / unit, unit, cheirality), self.weight)
        return self.solve(self.parameters.fold(self.gradient - moved.gradient))

    def covariances(self) -> Array:
        """(cameras, slots, slots): the cameras' own blocks of S⁺ σ²."""
        return self.noise**2 * self._own_blocks

    @cached_property
    def _own_blocks(self) -> Array:
        column = self.parameters.column
        if self.size <= DENSE:
            return self.inverse[column[:, :, None], column[:, None, :]]
        # S⁺ = F (S + E)^-1 F with F = 1 - GG': beside the blocks of the inverse itself, seven columns give them.
        solved = self.pinned.solve(self.gauge)
        G, Y = self.gauge[column], solved[column]
        across = np.einsum("nsg,ntg->nst", G, Y)
        along = G @ (self.gauge.T @ solved) @ G.transpose(0, 2, 1)
        return self.pinned.inverse_blocks() - across - across.transpose(0, 2, 1) + along

    @cached_property
    def solvable(self) -> bool:
        """Whether enough observations fit, with finite values, to compute deviations."""
        if self.redundancy < 1 or not np.isfinite(self.blocks).all():
            return False
        try:
            if self.size > DENSE:
                return bool(np.isfinite(self.pinned.solve(np.ones(self.size))).all())
            return bool(np.isfinite(self.factor).all())
        except np.linalg.LinAlgError:
            return False

    def uncertainty(self, noise: float | None = None) -> Uncertainty:
        """Deviations of every camera, for the noise of the residuals or another; infinite if too few observations fit."""
        noise = self.noise if noise is None else noise
        if not self.solvable:
            nothing = np.full(self.tracks.cameras, np.inf)
            return Uncertainty(nothing, nothing, nothing, np.inf, self.extent)
        variance = noise**2 * np.maximum(np.einsum("nss->ns", self._own_blocks), 0.0)
        slots = self.parameters.slots
        focal = variance[:, slots.index(6)] if 6 in slots else np.zeros(len(variance))
        rotation, centre = variance[:, :3].sum(axis=1) ** 0.5, variance[:, 3:6].sum(axis=1) ** 0.5
        return Uncertainty(np.degrees(rotation), centre, focal**0.5, noise, self.extent)

    def landmark_covariances(self, which: Index) -> Array:
        """(which, 3, 3) in shares of the extent squared, for landmarks with at least two observations that count.

        A landmark follows its cameras by -V^-1 W'δ, W_i = J_i'B_i, and has its own V^-1: σ² (V^-1 + V^-1 W' S⁺ W V^-1).
        """
        own, followed = self._of_landmarks(which)
        return self.noise**2 * (own + followed)

    def landmark_drifts(self, which: Index, noise: float) -> Array:
        """(which,) deviations in shares of the extent by which landmarks follow uncertain cameras and intrinsics: what no
        further observation of the landmark would mend."""
        _, followed = self._of_landmarks(which)
        return noise * np.sqrt(np.maximum(np.trace(followed, axis1=1, axis2=2), 0.0))

    def _of_landmarks(self, which: Index) -> tuple[Array, Array]:
        """V^-1 and V^-1 W' S⁺ W V^-1, (which, 3, 3) each."""
        t = self.tracks
        J, B, r = (np.empty((t.observations, 2, k)) for k in (kernels.PARAMETERS, 3, 1))
        kernels.jacobians(t.ptr, t.cam, self.cameras, self.xyz, self.image, self.weight, J, B, r[:, :, 0])
        own, followed = np.empty((2, len(which), 3, 3))
        for some in np.array_split(np.arange(len(which)), -(-3 * len(which) // _COLUMNS)):
            follows = np.zeros((self.size, len(some), 3))
            for place, j in enumerate(which[some]):
                rows = slice(t.ptr[j], t.ptr[j + 1])
                V = np.linalg.pinv(np.einsum("nra,nrb->ab", B[rows], B[rows]), hermitian=True)
                W = np.einsum("nrs,nrb->nsb", J[rows][:, :, list(self.parameters.slots)], B[rows])
                np.add.at(follows[:, place], self.parameters.column[t.cam[rows]], W @ V)
                own[some[place]] = V
            moved = self.solve(follows.reshape(self.size, -1)).reshape(follows.shape)
            followed[some] = np.einsum("kja,kjb->jab", follows, moved)
        return own, followed


def camera_system(
    tracks: Tracks,
    m: Array,
    unit: Array,
    cameras: Cameras,
    xyz: Array,
    counts: NDArray[np.bool_],
    *,
    free: FreeIntrinsics = POSES_ONLY,
    groups: Index | None = None,
) -> CameraSystem:
    """The reduced camera system over the observations `counts` of landmarks with two or more of them.

    `m` (observations, 2) normalised, `unit` (observations, 2) pixels per normalised unit; `free` and `groups` say which
    intrinsics were free, and which cameras share them, as in the adjustment.
    """
    seen = np.bincount(tracks.landmark[counts], minlength=tracks.landmarks)
    weight = (counts & (seen >= 2)[tracks.landmark]).astype(np.float64)
    used = np.flatnonzero(seen >= 2)
    # Infinite values of a failed start do not count.
    R, t, focal, radial = (np.nan_to_num(part, posinf=0.0, neginf=0.0) for part in cameras)
    xyz = np.nan_to_num(xyz, posinf=0.0, neginf=0.0)
    middle, extent = scene_extent(xyz[used], -np.einsum("nji,nj->ni", R, t)) if len(used) else (np.zeros(3), 1.0)
    cameras = R, (t + R @ middle) / extent, focal, radial
    xyz = (xyz - middle) / extent
    parameters = Parameters(free, np.arange(tracks.cameras) if groups is None else groups)
    image = m, unit, True
    system = MetricSystem(tracks, free.slots)
    system.assemble(cameras, xyz, image, weight)
    squared = squared_residuals(tracks, cameras, xyz, image)
    redundancy = 2 * int(weight.sum()) - 3 * len(used) - parameters.size + GAUGE
    noise = (float(squared[weight > 0.0].sum()) / max(redundancy, 1)) ** 0.5
    return CameraSystem(
        tracks, weight, cameras, xyz, image, parameters, system.pairs, system.blocks, system.gradient,
        noise, redundancy, extent,
    )  # fmt: skip
