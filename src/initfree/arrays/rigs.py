"""Rigs of cameras: images taken together, and the poses of the sensors relative to each other.

The solver places every image by itself. The pose of a sensor in its rig is then an average over frames. Since the solver
does not use the rig, the deviation of single frames from the average tests the poses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from initfree.data.tracks import Array, Index

_ROUNDS = 30
"""of the reweighting for a median of rotations or positions"""
_NEAR = 1e-9
"""share of the spread below which weights no longer grow"""


@dataclass(frozen=True)
class Mount:
    """The sensor of a rig and the frame of an image."""

    rig: int
    frame: int
    sensor: int
    """id of the camera, as the input has it"""


Mounts = Mapping[int, Mount]
"""by image id"""


@dataclass(frozen=True)
class Sensor:
    """Pose of a sensor in its rig: x_sensor = R x_rig + t, in the unit of the reconstruction."""

    R: Array
    t: Array
    frames: int
    """that determine it"""
    degrees: float
    """median angle between it and the relative rotation of a single frame"""
    distance: float
    """the same of the position"""
    worst_degrees: float
    worst_distance: float


@dataclass(frozen=True)
class Rig:
    """A rig as estimated from its images."""

    rig: int
    reference: int
    """sensor whose frame is that of the rig"""
    sensors: dict[int, Sensor]
    frames: dict[int, tuple[Array, Array]]
    """by frame id: R, t of x_rig = R X + t"""
    lost: tuple[int, ...]
    """sensors that no frame relates to the reference"""


def check_mounts(mounts: Mounts) -> str | None:
    """Refuse two images of one sensor in one frame."""
    seen: dict[tuple[int, int], int] = {}
    for image, mount in sorted(mounts.items()):
        other = seen.setdefault((mount.frame, mount.sensor), image)
        if other != image:
            return f"frame {mount.frame} has two images of camera {mount.sensor}, {other} and {image}"
    return None


def of_several(mounts: Mounts) -> Mounts | None:
    """The mounts if a rig has two sensors or more, else None: a single camera is no rig."""
    sensors: dict[int, set[int]] = {}
    for mount in mounts.values():
        sensors.setdefault(mount.rig, set()).add(mount.sensor)
    return mounts if any(len(found) > 1 for found in sensors.values()) else None


def estimate_rigs(images: Sequence[int], mounts: Mounts, R: Array, t: Array) -> tuple[Rig, ...]:
    """Estimate every rig with images of two or more sensors; image k has the id images[k] and the pose R[k], t[k]."""
    members: dict[int, dict[tuple[int, int], int]] = {}
    for k, image in enumerate(images):
        mount = mounts.get(int(image))
        if mount is not None:
            members.setdefault(mount.rig, {})[mount.frame, mount.sensor] = k
    several = {rig: at for rig, at in sorted(members.items()) if len({sensor for _, sensor in at}) > 1}
    return tuple(_estimate(rig, at, R, t) for rig, at in several.items())


def _estimate(rig: int, at: dict[tuple[int, int], int], R: Array, t: Array) -> Rig:
    """Sensors in turn, each relative to the one that it shares most frames with; then the frames."""
    frames_of: dict[int, set[int]] = {}
    for frame, sensor in at:
        frames_of.setdefault(sensor, set()).add(frame)
    reference = max(sorted(frames_of), key=lambda sensor: len(frames_of[sensor]))
    found = {reference: Sensor(np.eye(3), np.zeros(3), len(frames_of[reference]), 0.0, 0.0, 0.0, 0.0)}
    while True:
        edges = [(len(frames_of[a] & frames_of[b]), -b, -a) for a in found for b in frames_of if b not in found]
        shared, b, a = max(edges, default=(0, 0, 0))
        if not shared:
            break
        b, a = -b, -a
        pairs = [(at[frame, a], at[frame, b]) for frame in sorted(frames_of[a] & frames_of[b])]
        found[b] = _next_to(found[a], np.array(pairs, dtype=np.int64), R, t)
    frames = {}
    for frame in sorted({frame for frame, sensor in at if sensor in found}):
        mine = [(found[sensor], at[frame, sensor]) for sensor in sorted(found) if (frame, sensor) in at]
        turn = np.array([sensor.R.T @ R[k] for sensor, k in mine])
        place = np.array([sensor.R.T @ (t[k] - sensor.t) for sensor, k in mine])
        middle = median_rotation(turn)
        # The centre, not t: t = -R C would carry the difference of the rotations over the distance to the origin.
        centre = median_place(-np.einsum("nji,nj->ni", turn, place))
        frames[frame] = middle, -middle @ centre
    return Rig(rig, reference, found, frames, tuple(sorted(set(frames_of) - set(found))))


def _next_to(first: Sensor, pairs: Index, R: Array, t: Array) -> Sensor:
    """The sensor of the second images of (n, 2) pairs, each with one of the sensor `first` in the same frame."""
    one, two = pairs.T
    turn = R[two] @ R[one].transpose(0, 2, 1)
    place = t[two] - np.einsum("nij,nj->ni", turn, t[one])
    R21, t21 = median_rotation(turn), median_place(place)
    degrees = np.degrees(Rotation.from_matrix(turn @ R21.T).magnitude())
    # Centres of the second camera in the first: a difference of rotations does not move them.
    centre = -np.einsum("nji,nj->ni", turn, place)
    distance = np.linalg.norm(centre + R21.T @ t21, axis=1)
    return Sensor(
        R21 @ first.R, R21 @ first.t + t21, len(one),
        float(np.median(degrees)), float(np.median(distance)), float(degrees.max()), float(distance.max()),
    )  # fmt: skip


def median_rotation(R: Array) -> Array:
    """The rotation with the least sum of angles to all of (n, 3, 3) (Weiszfeld's reweighting on the tangent space)."""
    all_of_them = Rotation.from_matrix(R)
    middle = all_of_them.mean()
    for _ in range(_ROUNDS):
        away = (all_of_them * middle.inv()).as_rotvec()
        middle = Rotation.from_rotvec(_weighted_mean(away)) * middle
    return middle.as_matrix()


def median_place(x: Array) -> Array:
    """The point with the least sum of distances to all of (n, 3)."""
    middle = np.median(x, axis=0)
    for _ in range(_ROUNDS):
        middle = middle + _weighted_mean(x - middle)
    return middle


def _weighted_mean(away: Array) -> Array:
    length = np.linalg.norm(away, axis=1)
    weight = 1.0 / np.maximum(length, max(_NEAR * float(length.max()), 1e-300))
    return (weight[:, None] * away).sum(axis=0) / weight.sum()
