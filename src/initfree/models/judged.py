"""A COLMAP model as problems that a certificate judges: of its own observations, and of those that it was made from.

A mapper deletes what misses: the observations that are left fit by construction. Verified matches of a database (or of any
other input with the same images) also hold those that it deleted.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import pycolmap

from initfree.certificate.checks import listed
from initfree.data.observations import Intrinsics, Observations, observe
from initfree.data.problem import Problem, build_problem
from initfree.data.reconstruction import Reconstruction
from initfree.errors import InputError
from initfree.io import colmap
from initfree.stages.euclidean import triangulate

LEAST_OBSERVATIONS = 3
"""of a landmark that is judged"""


def own_problem(
    model: pycolmap.Reconstruction, intrinsics: Intrinsics | str = "known", source: str = "the model"
) -> tuple[Problem, Reconstruction]:
    """The problem of a model's own observations with its intrinsics, and its cameras and landmarks in the problem's order.

    `intrinsics` "found": as uncertain as the cameras, because the model's maker estimated them from these observations.
    """
    return placed(build_problem(_registered(model, source), LEAST_OBSERVATIONS), model, intrinsics)


def all_observations(
    model: pycolmap.Reconstruction, observations: Observations, intrinsics: Intrinsics | str = "known"
) -> tuple[Problem, Reconstruction]:
    """The problem of `observations` in the model's images with the model's cameras, nothing adjusted.

    Landmarks are those that the cameras triangulate anew.
    """
    registered = {image.name: image for image in model.images.values() if image.has_pose}
    number = _numbers(tuple(registered), tuple(image.name for image in observations.images))
    missing = sorted(set(registered) - set(number))
    if missing:
        raise InputError(
            f"{observations.source} lacks {len(missing)} images of the model ({listed(tuple(missing))}); expected all of "
            "them under the same names"
        )
    images, cameras = [], {int(k): camera for k, camera in model.cameras.items()}
    kept = np.full(len(observations.images), -1, dtype=np.int64)
    for name in sorted(registered):
        theirs = observations.images[number[name]]
        camera_id = int(registered[name].camera_id)
        _check_size(observations, theirs.camera_id, cameras[camera_id], name)
        kept[number[name]] = len(images)
        images.append(replace(theirs, name=name, camera_id=camera_id))
    chosen = kept[observations.image] >= 0
    found = observe(
        observations.source, images, cameras, kept[observations.image[chosen]], observations.landmark_id[chosen],
        observations.keypoint[chosen], intrinsics="known", pairs=None,
    )  # fmt: skip
    problem, reconstruction = placed(build_problem(found, LEAST_OBSERVATIONS), model, intrinsics)
    xyz, _ = triangulate(problem, reconstruction)
    return problem, replace(reconstruction, xyz=xyz)


def _numbers(names: tuple[str, ...], theirs: tuple[str, ...]) -> dict[str, int]:
    """Which of their images each name means: the same name, else the same without folders, else without its ending too.

    One rule for all names, the first that finds one image for each.
    """
    rules: tuple[Callable[[str], str], ...] = (str, lambda n: PurePosixPath(n).name, lambda n: PurePosixPath(n).stem)
    for rule in rules:
        found: dict[str, list[int]] = {}
        for k, name in enumerate(theirs):
            found.setdefault(rule(name), []).append(k)
        if len({rule(name) for name in names}) == len(names) and all(len(found.get(rule(name), [])) == 1 for name in names):
            return {name: found[rule(name)][0] for name in names}
    return {name: k for k, name in enumerate(theirs)}


def placed(problem: Problem, model: pycolmap.Reconstruction, intrinsics: Intrinsics | str) -> tuple[Problem, Reconstruction]:
    """The model's cameras and landmarks in the problem's order, by names and ids; a landmark that it lacks is NaN."""
    if intrinsics == "found":
        problem = replace(problem, intrinsics="found")
    found = colmap.reconstruction_of(model)
    place = {name: k for k, name in enumerate(found.names)}
    cameras = np.array([place[name] for name in problem.names])
    xyz = np.full((problem.tracks.landmarks, 3), np.nan)
    _, mine, theirs = np.intersect1d(problem.landmark_ids, found.ids, return_indices=True)
    xyz[mine] = found.xyz[theirs]
    n = len(cameras)
    poses = found.R[cameras], found.t[cameras], np.ones(n), np.zeros((n, 2))
    return problem, Reconstruction(*poses, xyz, problem.names, problem.landmark_ids)


def without_images(model: pycolmap.Reconstruction, names: set[str]) -> pycolmap.Reconstruction:
    """A copy in which these images, and others of their frames, have no pose."""
    result = pycolmap.Reconstruction(model)
    for frame_id in {int(image.frame_id) for image in model.images.values() if image.name in names and image.has_pose}:
        result.deregister_frame(frame_id)
    return result


def _registered(model: pycolmap.Reconstruction, source: str) -> Observations:
    """The model's observations in images that have a pose."""
    o = colmap.observations_of(model, source, "known")
    posed = {image.name for image in model.images.values() if image.has_pose}
    if len(posed) == len(o.images):
        return o
    stays = np.array([image.name in posed for image in o.images])
    number, kept = np.cumsum(stays) - 1, stays[o.image]
    return replace(
        o, images=tuple(image for image, stay in zip(o.images, stays, strict=True) if stay), image=number[o.image[kept]],
        landmark_id=o.landmark_id[kept], keypoint=o.keypoint[kept], normalised=o.normalised[kept],
        image_unit=o.image_unit[stays], colour=None if o.colour is None else o.colour[kept],
    )  # fmt: skip


def _check_size(observations: Observations, camera_id: int, camera: pycolmap.Camera, name: str) -> None:
    theirs = observations.cameras[camera_id]
    if (theirs.width, theirs.height) != (camera.width, camera.height):
        raise InputError(
            f"image {name!r} has {theirs.width} x {theirs.height} pixels in {observations.source} and {camera.width} x "
            f"{camera.height} in the model; expected the same"
        )
