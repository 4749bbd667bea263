"""Images and depth maps by ray casting: the same rays, cameras and triangles that decide visibility."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.errors import InputError
from initfree.generator.cameras import directions_of, fold_radius, pixels_of
from initfree.generator.scenes import Surface
from initfree.generator.trajectories import Poses
from initfree.generator.visibility import RayCaster

Floats = NDArray[np.float64]

SUN = np.array([-0.45, -0.7, 0.9]) / np.linalg.norm([-0.45, -0.7, 0.9])
SKY = np.array([[196.0, 214.0, 232.0], [104.0, 150.0, 206.0]])


@dataclass(frozen=True)
class Rendering:
    """An RGB image and the depth along the optical axis (0 where nothing is hit) at every pixel's centre."""

    image: NDArray[np.uint8]
    depth: NDArray[np.float32]


def render(surface: Surface, caster: RayCaster, camera: pycolmap.Camera, poses: Poses, number: int) -> Rendering:
    """What image `number` shows: sunlit stone with cast shadows under a plain sky."""
    rotation, eye = poses.rotations[number], poses.centres[number]
    rays, usable = pixel_rays(camera)
    world = rays @ rotation
    face, _ = caster.first(eye, world)
    face[~usable] = -1
    hit = np.flatnonzero(face >= 0)
    depth, weights = intersect(surface, face[hit], eye, world[hit])
    points = eye + depth[:, None] * world[hit]
    normals = surface.normals[face[hit]]
    facing = np.sign(-np.einsum("nd,nd->n", normals, world[hit]))[:, None]
    normals = normals * np.where(facing == 0, 1, facing)
    lit = np.maximum(normals @ SUN, 0.0)
    sunny = np.flatnonzero(lit > 0)
    # A shadow ray starts a little off its own surface.
    lifted = points[sunny] + 1e-3 * (1 + surface.margin) * normals[sunny]
    reach = float(np.linalg.norm(np.ptp(surface.bounds, axis=0)))
    lit[sunny[caster.crossed(lifted, SUN * reach)]] = 0.0
    brightness = 0.55 + 0.12 * normals[:, 2] + 0.52 * lit
    up = world[:, 2] / np.linalg.norm(world, axis=1)
    image = SKY[0] + np.clip(up, 0, 1)[:, None] ** 0.5 * (SKY[1] - SKY[0])
    image[hit] = brightness[:, None] * surface.color_at(points, face[hit], weights)
    depths = np.zeros(len(rays), np.float32)
    depths[hit] = depth
    shape = (camera.height, camera.width)
    return Rendering(np.clip(image + 0.5, 0, 255).astype(np.uint8).reshape(*shape, 3), depths.reshape(shape))


def pixel_rays(camera: pycolmap.Camera) -> tuple[Floats, NDArray[np.bool_]]:
    """Directions (x, y, 1) of all pixel centres, row by row, and which of them exist (no fold-over)."""
    across, down = np.meshgrid(np.arange(camera.width) + 0.5, np.arange(camera.height) + 0.5)
    pixels = np.stack([across.ravel(), down.ravel()], axis=1, dtype=np.float64)
    directions = directions_of(camera, pixels)
    usable = np.isfinite(directions).all(axis=1)
    ahead = np.column_stack([np.where(usable[:, None], directions, 0.0), np.ones(len(pixels))])
    # Where no direction has this pixel, undistortion ends somewhere else.
    back = pixels_of(camera, ahead)
    with np.errstate(invalid="ignore"):
        usable &= np.linalg.norm(back - pixels, axis=1) < 1e-3
    usable &= np.linalg.norm(ahead[:, :2], axis=1) < fold_radius(camera)
    rays = np.ones((len(directions), 3))
    rays[:, :2] = np.where(usable[:, None], directions, 0.0)
    return rays, usable


def intersect(surface: Surface, face: NDArray[np.int64], eye: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """Ray parameter and barycentric weights on given triangles, in double precision (Moller-Trumbore)."""
    a, b, c = np.moveaxis(surface.vertices[surface.faces[face]], 1, 0)
    first, second = b - a, c - a
    across = np.cross(directions, second)
    determinant = np.einsum("nd,nd->n", first, across)
    determinant = np.where(determinant == 0, 1e-300, determinant)
    offset = eye - a
    u = np.einsum("nd,nd->n", offset, across) / determinant
    turned = np.cross(offset, first)
    v = np.einsum("nd,nd->n", directions, turned) / determinant
    return np.einsum("nd,nd->n", second, turned) / determinant, np.stack([1 - u - v, u, v], axis=1)


def save(rendering: Rendering, image: Path, depth: Path) -> None:
    """PNG for the image; for the depth single-precision EXR (.exr) or 16-bit PNG in centimetres (.png)."""
    from PIL import Image

    image.parent.mkdir(parents=True, exist_ok=True)
    depth.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rendering.image).save(image)
    if depth.suffix == ".exr":
        import OpenEXR

        header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
        OpenEXR.File(header, {"Z": np.ascontiguousarray(rendering.depth)}).write(str(depth))
        return
    hundredths = np.round(rendering.depth.astype(float) * 100)
    if hundredths.max(initial=0) > 65535:
        raise InputError(
            f"a depth of {rendering.depth.max():.1f} is beyond what a 16-bit PNG in hundredths holds "
            "(655.35); expected depth = exr"
        )
    Image.fromarray(hundredths.astype(np.uint16)).save(depth)
