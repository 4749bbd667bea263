"""From cameras and a surface to observations: who sees what."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.cameras import fold_radius, project, view_radius
from initfree.generator.culling import Cells, in_view
from initfree.generator.projections import Projections
from initfree.generator.scenes import Candidates, Surface
from initfree.generator.trajectories import Poses
from initfree.generator.visibility import RayCaster

MAX_CANDIDATES = 40
"""Give up when this many candidates for every landmark asked for were not enough."""
AT_ONCE = 400_000
"""Candidates that are looked at together: what is dropped again takes no memory beside all others."""
AT_ONCE_A_CAMERA = 200
"""For thousands of cameras more, so that each has something to look at."""


def observe(
    surface: Surface,
    caster: RayCaster,
    poses: Poses,
    cameras: list[pycolmap.Camera],
    limits: config.Visibility,
    wanted: int,
    min_observations: int,
    rng: np.random.Generator,
) -> tuple[Candidates, Projections]:
    """`wanted` landmarks on the surface that are seen often enough, and all their observations."""
    pool = surface.sample(rng, len(surface.fixed)) if surface.fixed is not None else None
    found: list[Candidates] = []
    rows: list[Projections] = []
    have = tried = 0
    batch = int(1.5 * wanted) + 100
    at_once = max(AT_ONCE, AT_ONCE_A_CAMERA * len(poses))
    while have < wanted:
        candidates = pool[tried : tried + batch] if pool is not None else surface.sample(rng, batch)
        if not len(candidates):
            break
        tried += len(candidates)
        for first in range(0, len(candidates), at_once):
            some = candidates[first : first + at_once]
            seen = visible(surface, caster, poses, cameras, limits, some)
            often = seen.track_lengths(len(some)) >= min_observations
            kept, kept_rows = select_landmarks(some, seen, np.flatnonzero(often)[: wanted - have])
            found.append(kept)
            rows.append(Projections(kept_rows.image, kept_rows.landmark + np.int32(have), kept_rows.pixel))
            have += len(kept)
            if have == wanted:
                break
        if pool is None and tried >= MAX_CANDIDATES * wanted + 20_000 and have < wanted:
            break
        batch = int(min(max(1.2 * (wanted - have) * tried / max(have, 1), 1000), 4 * wanted + 20_000))
    if have == 0:
        raise InputError(
            f"no landmark is seen {min_observations} times by the {len(poses)} cameras (of {tried} places "
            "tried on the scene's surface); expected cameras that look at the same parts of the scene"
        )
    if have < wanted and pool is None:
        raise InputError(
            f"only {have} of {wanted} landmarks are seen {min_observations} times (of {tried} places tried); "
            "expected a smaller number of landmarks or cameras that overlap more"
        )
    joined = Candidates(*(np.concatenate([getattr(part, name) for part in found]) for name in _FIELDS))
    return joined, Projections(
        *(np.concatenate([getattr(part, name) for part in rows]) for name in ("image", "landmark", "pixel"))
    )


_FIELDS = ("positions", "normals", "colors")


def visible(
    surface: Surface,
    caster: RayCaster,
    poses: Poses,
    cameras: list[pycolmap.Camera],
    limits: config.Visibility,
    candidates: Candidates,
) -> Projections:
    """Every (camera, candidate) with the candidate in the image, facing the camera, in range and unhidden."""
    radii = [min(view_radius(camera), fold_radius(camera)) for camera in cameras]
    centres = np.ascontiguousarray(poses.centres)
    frustum = limits.kind == "frustum"
    steepest = -2.0 if frustum else np.cos(np.radians(limits.max_angle))
    cells = Cells.of(candidates.positions, candidates.normals)

    def of_image(number: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        camera = cameras[number if len(cameras) > 1 else 0]
        radius = radii[number if len(cameras) > 1 else 0]
        view = poses.rotations[number], centres[number], limits.near, limits.far, radius
        places = cells.ptr, cells.positions, cells.normals
        rows = in_view(cells.near_cone(*view), *places, *view, steepest, surface.two_sided)
        local = cells.positions[rows] @ poses.rotations[number].T + poses.translations[number]
        pixels, inside = project(camera, local)
        rows, pixels = rows[inside], pixels[inside]
        if limits.occlusion and not frustum:
            free = ~caster.hidden(centres[number], cells.positions[rows], surface.margin)
            rows, pixels = rows[free], pixels[free]
        return cells.rows[rows], pixels

    # Embree and the large NumPy calls let go of the interpreter lock.
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        parts = list(workers.map(of_image, range(len(poses))))
    image = np.repeat(np.arange(len(poses), dtype=np.int32), [len(rows) for rows, _ in parts])
    landmark = np.concatenate([rows for rows, _ in parts]).astype(np.int32)
    return Projections(image, landmark, np.concatenate([pixels for _, pixels in parts])).by_landmark()


def select_landmarks(
    landmarks: Candidates, observations: Projections, kept: NDArray[np.int64]
) -> tuple[Candidates, Projections]:
    """Only these landmarks, renumbered in the order given (ascending), and their observations."""
    new = np.full(len(landmarks), -1, np.int32)
    new[kept] = np.arange(len(kept), dtype=np.int32)
    rows = observations[new[observations.landmark] >= 0]
    return landmarks[kept], Projections(rows.image, new[rows.landmark], rows.pixel)
