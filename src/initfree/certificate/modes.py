"""Determination: the distance of other reconstructions that fit as well, and the images that would move.

Two groups of cameras joined by landmarks at one spot or along a pole fit at any angle about it, with residuals of a right
reconstruction. The covariance (`uncertainty`) shows this. Reconstructions drawn from it are as likely under the noise; their
distance from this one, by the paper's metrics, predicts its own distance from the truth.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.transform import Rotation

from initfree.certificate.closeness import closeness
from initfree.certificate.uncertainty import DENSE, CameraSystem, Uncertainty
from initfree.data.tracks import Array

KEYPOINT_NOISE = 0.3
"""pixels: least noise of a keypoint, however well it fits"""
DRAWN = 24
DRAWN_LARGE = 6
"""reconstructions drawn for large problems; each costs a pass over all observations"""
_RIGID = 0.6
"""share of a mode that two rigid groups explain; less is called bending"""
_NOTABLE_TURN, _NOTABLE = 0.5, 0.01
"""degrees, shares: smaller motions are not reported"""
_ROUNDS = 10
_SPOT, _THIN = 0.1, 0.2
"""largest deviation of landmarks at a spot, in extents; second over first of landmarks along a line"""


@dataclass(frozen=True)
class WeakestMode:
    """The direction in which the cameras are least certain: one group of images against the others, at one deviation."""

    smaller: NDArray[np.bool_]
    """(cameras,): the smaller group"""
    turn: float
    """degrees by which the groups turn against each other"""
    shift: float
    """share of the extent by which they move against each other, root mean square over the smaller group's centres"""
    stretch: float
    """share by which one grows against the other"""
    rigid: float
    """share of the mode that is two groups moving as rigid things"""
    joining: int
    """landmarks that both groups see and that fit"""
    shape: str
    """their shape: "at a spot", "along a line", or empty"""

    def sentence(self, names: tuple[str, ...]) -> str:
        """The mode in words."""
        few, many = (_listed(names, group) for group in (self.smaller, ~self.smaller))
        held = f"{self.joining} landmarks {self.shape}".rstrip()
        ways = [
            f"turn against each other by {self.turn:.2g} degrees" if self.turn >= _NOTABLE_TURN else "",
            f"move against each other by {self.shift:.0%} of the scene's extent" if self.shift >= _NOTABLE else "",
            f"differ in scale by {self.stretch:.0%}" if self.stretch >= _NOTABLE else "",
        ]
        how = ", ".join(way for way in ways if way) or f"move against each other by {self.shift:.2g} of the scene's extent"
        bent = "" if self.rigid >= _RIGID else ", both bent"
        return f"{few} and {many} are joined by {held}; they can {how}{bent} (one standard deviation)"


@dataclass(frozen=True)
class Determination:
    """Closeness of reconstructions drawn from the covariance: all but a few are at least as close."""

    rotation_auc20: float
    translation_auc20: float
    drift: float
    """share of the extent: root mean square over cameras by which centres move"""
    system: CameraSystem
    noise: float

    @cached_property
    def deviations(self) -> Uncertainty:
        """Deviations of every camera, for at least the least noise."""
        return self.system.uncertainty(self.noise)

    @cached_property
    def weakest(self) -> WeakestMode:
        return weakest_mode(self.system, self.noise)


def determination(system: CameraSystem, least_noise: float = KEYPOINT_NOISE) -> Determination:
    """Draw reconstructions from the covariance and compare each with this one; the second worst of each figure counts."""
    noise = max(system.noise, least_noise)
    if not system.solvable:
        return Determination(0.0, 0.0, np.inf, system, noise)
    steps = _steps(system, noise)
    R, centres = system.cameras[0], system.centres
    figures = []
    for step in steps:
        shift = -np.einsum("nji,nj->ni", R, step[:, 3:6])
        turned = Rotation.from_rotvec(step[:, :3]).as_matrix() @ R
        figures.append(closeness(R, centres, turned, centres + shift, 20.0))
    rotation, translation = np.sort(figures, axis=0)[1]
    return Determination(float(rotation), float(translation), _drift(steps), system, noise)


def drift(system: CameraSystem, least_noise: float = KEYPOINT_NOISE) -> float:
    """`Determination.drift` alone."""
    return _drift(_steps(system, max(system.noise, least_noise))) if system.solvable else np.inf


def _steps(system: CameraSystem, noise: float) -> Array:
    """(drawn, cameras, slots): of cameras to reconstructions drawn from the covariance."""
    return np.moveaxis(noise * _drawn(system, np.random.default_rng(0))[system.parameters.column], 2, 0)


def _drift(steps: Array) -> float:
    """The second largest of the root mean squares over cameras by which steps move the centres."""
    return float(np.sort(np.sqrt(np.mean(np.sum(steps[:, :, 3:6] ** 2, axis=2), axis=1)))[-2])


def _drawn(system: CameraSystem, rng: np.random.Generator) -> Array:
    """(unknowns, drawn) with covariance S⁺: from the Cholesky factor, S = LL', by L'^-1 z; else by moving the observations.

    Observations moved by unit noise change the reduced gradient by a vector of covariance S, the solution by S⁺ times that.
    """
    if system.size <= DENSE:
        x = solve_triangular(system.factor, rng.standard_normal((system.size, DRAWN)), lower=True, trans=1)
        return x - system.gauge @ (system.gauge.T @ x)
    moved = [system.response(rng.standard_normal(system.image[0].shape)) for _ in range(DRAWN_LARGE)]
    return np.column_stack(moved)


def weakest_modes(system: CameraSystem, count: int) -> tuple[Array, Array]:
    """Deviations at unit noise (count,) and directions (count, cameras, 6), each of length one, in which the poses are least
    certain, the weakest first: eigenvectors of their covariance."""
    poses = system.parameters.column[:, :6].ravel()

    def covariance(x: Array) -> Array:
        b = np.zeros(system.size)
        b[poses] = x.ravel()
        return system.solve(b)[poses]

    operator = LinearOperator((len(poses), len(poses)), matvec=covariance, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    start = np.random.default_rng(0).standard_normal(len(poses))
    values, vectors = eigsh(operator, k=count, v0=start, tol=1e-3)  # pyright: ignore[reportArgumentType]
    return np.sqrt(np.maximum(values[::-1], 0.0)), vectors[:, ::-1].T.reshape(count, -1, 6)


def weakest_mode(system: CameraSystem, noise: float) -> WeakestMode:
    """The largest eigenvector of the poses' covariance, read as two groups of cameras that move against each other."""
    deviations, directions = weakest_modes(system, 1)
    step = noise * deviations[0] * directions[0]
    R, centres = system.cameras[0], system.centres
    # A camera that rotates with the world by q has ω = -R q, one that moves with it by d has γ = -R d.
    field = np.column_stack([-np.einsum("nji,nj->ni", R, part) for part in (step[:, :3], step[:, 3:])])
    second, motions = _two_groups(field, centres)
    left = np.where(second[:, None], *(field - _rigid_field(motion, centres) for motion in motions[::-1]))
    smaller = second if 2 * np.count_nonzero(second) <= len(second) else ~second
    relative = motions[1] - motions[0]
    moved = _rigid_field(relative, centres[smaller])[:, 3:]
    joining, shape = _joint(system, smaller)
    return WeakestMode(
        smaller,
        turn=float(np.degrees(np.linalg.norm(relative[:3]))),
        shift=float(np.sqrt(np.mean(np.sum(moved**2, axis=1)))),
        stretch=abs(float(relative[6])),
        rigid=1.0 - float(np.sum(left**2) / max(np.sum(field**2), 1e-300)),
        joining=joining,
        shape=shape,
    )


def _rigid_field(motion: Array, centres: Array) -> Array:
    """(cameras, 6): rotation and translation of the cameras under a motion (q, d, s) of the world, X -> X + q × X + d + s
    X."""
    q, d, s = motion[:3], motion[3:6], motion[6]
    return np.column_stack([np.broadcast_to(q, centres.shape), np.cross(q, centres) + d + s * centres])


def _motion(field: Array, centres: Array) -> Array:
    """The motion (q, d, s) of the world that explains a field best, by least squares."""
    columns = [_rigid_field(unit, centres).ravel() for unit in np.eye(7)]
    return np.asarray(np.linalg.lstsq(np.column_stack(columns), field.ravel(), rcond=None)[0], dtype=np.float64)


def _two_groups(field: Array, centres: Array) -> tuple[NDArray[np.bool_], list[Array]]:
    """Two groups of cameras, each moving as rigidly as possible, and their motions.

    The signs along the field's principal direction are the first groups; cameras then join the motion that explains them
    better.
    """
    centred = field - field.mean(axis=0)
    second = centred @ np.linalg.svd(centred, full_matrices=False)[2][0] > 0.0
    motions = [_motion(field[group], centres[group]) for group in (~second, second)]
    for _ in range(_ROUNDS):
        first, other = (np.sum((field - _rigid_field(motion, centres)) ** 2, axis=1) for motion in motions)
        better = other < first
        if better.all() or not better.any() or np.array_equal(better, second):
            break
        second = better
        motions = [_motion(field[group], centres[group]) for group in (~second, second)]
    return second, motions


def _joint(system: CameraSystem, group: NDArray[np.bool_]) -> tuple[int, str]:
    """Number of landmarks that fit in both groups, and their shape."""
    t, counted = system.tracks, system.weight > 0.0
    inside, outside = (
        np.bincount(t.landmark[counted & chosen[t.cam]], minlength=t.landmarks) > 0 for chosen in (group, ~group)
    )
    shared = system.xyz[inside & outside]
    if len(shared) < 3:
        return len(shared), ""
    deviations = np.linalg.svd(shared - np.median(shared, axis=0), compute_uv=False) / len(shared) ** 0.5
    if deviations[0] < _SPOT:
        return len(shared), "at a spot"
    return len(shared), "along a line" if deviations[1] < _THIN * deviations[0] else ""


def _listed(names: tuple[str, ...], group: NDArray[np.bool_]) -> str:
    chosen = [names[k] for k in np.flatnonzero(group)]
    return f"image {chosen[0]}" if len(chosen) == 1 else f"{len(chosen)} images ({chosen[0]} ... {chosen[-1]})"
