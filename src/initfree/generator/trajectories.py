"""Trajectories: where the cameras are and how they are turned."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.streams import stream

Floats = NDArray[np.float64]

GROUP_SEEDS = 1009
"""More than there are groups: each has its own jitter."""


@dataclass(frozen=True)
class Poses:
    """World to camera: x_cam = rotations[i] x + translations[i]; y points down and z forward (COLMAP)."""

    rotations: Floats
    translations: Floats

    @property
    def centres(self) -> Floats:
        """Camera centres -R' t."""
        return -np.einsum("nji,nj->ni", self.rotations, self.translations)

    def __len__(self) -> int:
        return len(self.rotations)

    def __getitem__(self, rows: object) -> "Poses":
        return Poses(self.rotations[rows], self.translations[rows])  # type: ignore[index]


def poses(trajectory: config.Trajectory, scene: config.Scene, centre: Floats, seed: int) -> Poses:
    """The poses along a trajectory in a scene with this centre, jitter included."""
    if isinstance(trajectory, config.PoseFile):
        from initfree.generator.pose_files import read_poses

        return read_poses(trajectory.path)
    if isinstance(trajectory, config.Groups):
        parts = [poses(group, scene, centre, GROUP_SEEDS * seed + k) for k, group in enumerate(trajectory.groups)]
        return Poses(np.concatenate([p.rotations for p in parts]), np.concatenate([p.translations for p in parts]))
    if isinstance(trajectory, config.BlenderPath):
        from initfree.generator.blender.scene import path_of

        found = path_of(scene, trajectory)
        if isinstance(found, Poses):
            return found
        centres, tangents = found
    else:
        centres, tangents = positions(trajectory)
    centres = centres + trajectory.jitter * stream(seed, "position jitter").standard_normal(centres.shape)
    wobble = trajectory.look_at.jitter * stream(seed, "target jitter").standard_normal(centres.shape)
    return looking(centres, directions(trajectory.look_at, centres, tangents, centre, wobble))


def groups(trajectory: config.Trajectory, cameras: int) -> NDArray[np.int64]:
    """(cameras,): which of several trajectories each is on."""
    if not isinstance(trajectory, config.Groups):
        return np.zeros(cameras, dtype=np.int64)
    return np.repeat(np.arange(len(trajectory.groups)), [group.cameras for group in trajectory.groups])


def positions(trajectory: config.Trajectory) -> tuple[Floats, Floats]:
    """Camera centres and directions of travel, without jitter."""
    match trajectory:
        case config.Rings():
            counts = [len(part) for part in np.array_split(np.arange(trajectory.cameras), len(trajectory.rings))]
            parts = [_ring(ring, count) for ring, count in zip(trajectory.rings, counts, strict=True)]
            centres, tangents = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            return centres + trajectory.centre, tangents
        case config.Lateral():
            start, end = np.array(trajectory.start), np.array(trajectory.end)
            share = np.linspace(0, 1, trajectory.cameras)[:, None]
            return start + share * (end - start), np.broadcast_to(end - start, (trajectory.cameras, 3))
        case config.Orbit():
            centres, tangents = _ring(config.Ring(trajectory.radius, 0.0), trajectory.cameras)
            low, high = trajectory.heights
            angle = 2 * np.pi * trajectory.waves * np.arange(trajectory.cameras) / trajectory.cameras
            centres[:, 2] = (low + high) / 2 + (high - low) / 2 * np.sin(angle)
            return centres, tangents
        case config.Grid():
            return _grid(trajectory)
        case config.Curve():
            return _curve(trajectory)
    raise InputError(f"trajectory kind {trajectory.kind} has no positions of its own")


def directions(look_at: config.LookAt, centres: Floats, tangents: Floats, scene_centre: Floats, wobble: Floats) -> Floats:
    """Viewing directions, not normalised."""
    target = scene_centre if look_at.point is None else np.array(look_at.point)
    match look_at.kind:
        case "centre":
            return scene_centre + wobble - centres
        case "point":
            if look_at.point is None:
                raise InputError("look_at.kind = point needs look_at.point = [x, y, z]")
            return target + wobble - centres
        case "away":
            return centres - (target + wobble)
        case "path":
            return tangents / np.linalg.norm(tangents, axis=1, keepdims=True) + wobble
        case _:
            return np.broadcast_to(np.array(look_at.direction), centres.shape) + wobble


def looking(centres: Floats, forward: Floats) -> Poses:
    """Cameras at `centres` looking along `forward`, upright (for vertical views, the image's top is +y)."""
    lengths = np.linalg.norm(forward, axis=1, keepdims=True)
    if (lengths < 1e-9).any():
        raise InputError(f"camera {int(lengths.argmin())} is at the point it should look at")
    z = forward / lengths
    up = np.where(np.abs(z[:, 2:]) < 0.999, [[0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0]])
    x = np.cross(z, up)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    rotations = np.stack([x, np.cross(z, x), z], axis=1)
    return Poses(rotations, -np.einsum("nij,nj->ni", rotations, centres))


def _ring(ring: config.Ring, count: int) -> tuple[Floats, Floats]:
    # A full circle must not repeat its first camera; an arc ends on its last.
    angles = np.radians(ring.start + np.linspace(0, ring.arc, count, endpoint=ring.arc < 360))
    cosine, sine, zero = np.cos(angles), np.sin(angles), np.zeros(count)
    centres = np.stack([ring.radius * cosine, ring.radius * sine, zero + ring.height], axis=1)
    return centres, np.stack([-sine, cosine, zero], axis=1)


def _grid(grid: config.Grid) -> tuple[Floats, Floats]:
    """Rows along x, every other one backwards; the spacing is as square as the number allows."""
    width, depth = grid.size
    rows = max(1, round(float(np.sqrt(grid.cameras * depth / width))))
    centres, tangents = [], []
    for row, cameras in enumerate(np.array_split(np.arange(grid.cameras), rows)):
        y = depth * ((row + 0.5) / rows - 0.5)
        x = width * ((np.arange(len(cameras)) + 0.5) / max(len(cameras), 1) - 0.5)
        sense = 1.0 if row % 2 == 0 else -1.0
        centres += [(sense * value, y, grid.altitude) for value in x]
        tangents += [(sense, 0.0, 0.0)] * len(x)
    return np.array(centres), np.array(tangents)


def _curve(curve: config.Curve) -> tuple[Floats, Floats]:
    points = np.array(curve.points)
    if curve.interpolation == "bezier":
        if curve.closed:
            points = np.concatenate([points, points[:1]])
        if len(points) < 4 or len(points) % 3 != 1:
            raise InputError(
                f"a bezier curve of {len(curve.points)} points; expected point, handle, handle, point, ... "
                f"(4, 7, 10 points, or 3, 6, 9 when closed)"
            )
        pieces = np.stack([points[k::3][: (len(points) - 1) // 3] for k in range(4)], axis=1)
    else:
        ends = [points[-1:], points, points[:2]] if curve.closed else [points[:1], points, points[-1:]]
        padded = np.concatenate(ends)
        before, start, end, after = (padded[k : len(padded) - 3 + k] for k in range(4))
        # The cubic Bezier form of a Catmull-Rom piece: handles a sixth of the neighbours' chord away.
        pieces = np.stack([start, start + (end - before) / 6, end - (after - start) / 6, end], axis=1)
    return resample(_bezier(pieces), curve.cameras, curve.closed)


def _bezier(pieces: Floats) -> Floats:
    """A fine polyline along cubic pieces (n, 4, 3)."""
    t = np.linspace(0, 1, 256, endpoint=False)
    basis = np.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3], axis=1)
    return np.concatenate([np.einsum("tk,nkd->ntd", basis, pieces).reshape(-1, 3), pieces[-1:, 3]])


def resample(line: Floats, count: int, closed: bool) -> tuple[Floats, Floats]:
    """`count` points evenly spaced by length along a polyline, and the direction of travel there."""
    lengths = np.linalg.norm(np.diff(line, axis=0), axis=1)
    line = line[np.concatenate([[True], lengths > 0])]
    along = np.concatenate([[0.0], np.cumsum(lengths[lengths > 0])])
    if along[-1] <= 0:
        raise InputError("the trajectory's curve has no length: all its control points coincide")
    wanted = np.linspace(0, along[-1], count, endpoint=not closed)
    tangents = np.diff(line, axis=0)[np.clip(np.searchsorted(along, wanted, side="right") - 1, 0, len(line) - 2)]
    return np.stack([np.interp(wanted, along, line[:, k]) for k in range(3)], axis=1), tangents
