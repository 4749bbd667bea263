"""Exact visibility: rays against the triangles, with Embree."""

import numpy as np
from embreex.mesh_construction import TriangleMesh
from embreex.rtcore_scene import EmbreeScene
from numpy.typing import NDArray

from initfree.errors import InputError
from initfree.generator.scenes import Surface
from initfree.generator.trajectories import Poses

Floats = NDArray[np.float64]

TOLERANCE = 1e-4
"""Occluders are looked for up to this share of the distance before the landmark, which lies on a surface
itself; Embree counts in single precision."""


class RayCaster:
    """Rays against a surface; coordinates are centred before they become single precision."""

    def __init__(self, surface: Surface) -> None:
        self._origin = surface.centre
        self._empty = not len(surface.faces)
        if not self._empty:
            self._scene = EmbreeScene()
            vertices = np.ascontiguousarray(surface.vertices - self._origin, np.float32)
            TriangleMesh(self._scene, vertices, np.ascontiguousarray(surface.faces, np.int32))

    def hidden(self, eye: Floats, targets: Floats, margin: float = 0.0) -> NDArray[np.bool_]:
        """Which segments from one eye to the targets meet a triangle before their end.

        A segment ends `margin`, or TOLERANCE of its length if that is more, before its target.
        """
        if self._empty or not len(targets):
            return np.zeros(len(targets), bool)
        offset = targets - eye
        share = 1.0 - np.maximum(TOLERANCE, margin / np.linalg.norm(offset, axis=1))
        origins = np.broadcast_to((eye - self._origin).astype(np.float32), offset.shape)
        return (
            self._scene.run(
                np.ascontiguousarray(origins),
                np.ascontiguousarray(offset, np.float32),
                dists=np.maximum(share, 0).astype(np.float32),
                query="OCCLUDED",
            )
            == 0
        )

    def crossed(self, origins: Floats, offset: Floats) -> NDArray[np.bool_]:
        """Which segments from the origins, all by the same offset, meet a triangle."""
        if self._empty or not len(origins):
            return np.zeros(len(origins), bool)
        return (
            self._scene.run(
                np.ascontiguousarray(origins - self._origin, np.float32),
                np.ascontiguousarray(np.broadcast_to(offset.astype(np.float32), origins.shape)),
                dists=np.ones(len(origins), np.float32),
                query="OCCLUDED",
            )
            == 0
        )

    def first(self, eye: Floats, directions: Floats) -> tuple[NDArray[np.int64], Floats]:
        """The first triangle along each direction (-1: none) and its barycentric coordinates u, v."""
        if self._empty:
            return np.full(len(directions), -1), np.zeros((len(directions), 2))
        origins = np.broadcast_to((eye - self._origin).astype(np.float32), directions.shape)
        hit = self._scene.run(np.ascontiguousarray(origins), np.ascontiguousarray(directions, np.float32), output=True)
        return hit["primID"].astype(np.int64), np.stack([hit["u"], hit["v"]], axis=1).astype(float)


def check_cameras_outside(caster: RayCaster, surface: Surface, poses: Poses) -> None:
    """Refuse cameras inside a solid: those that meet the back of a triangle first in most directions."""
    if surface.two_sided or not len(surface.faces):
        return
    # Fibonacci lattice: evenly spread directions.
    k = np.arange(128) + 0.5
    height, angle = 1 - 2 * k / 128, np.pi * (1 + np.sqrt(5)) * k
    flat = np.sqrt(1 - height**2)
    around = np.stack([flat * np.cos(angle), flat * np.sin(angle), height], axis=1)
    normals = surface.normals
    for number, centre in enumerate(poses.centres):
        face, _ = caster.first(centre, around)
        backs = (face >= 0) & (np.einsum("nd,nd->n", normals[face], around) > 0)
        if backs.mean() > 0.5:
            place = ", ".join(f"{value:.2f}" for value in centre)
            raise InputError(
                f"camera {number} at ({place}) is inside a wall; expected cameras in free space "
                "(change the trajectory, or lower its jitter)"
            )
