"""Conversion from any readable to any writable format."""

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap

from initfree.data.observations import Observations
from initfree.data.reconstruction import Reconstruction
from initfree.errors import InputError
from initfree.io import bal, camera_files
from initfree.io.alignment import MOMENTS, Alignment, align, read_moments
from initfree.io.colmap_files import check_model
from initfree.io.formats import Asked, format_of
from initfree.io.load import check_poses, load_colmap
from initfree.io.picture import write_picture
from initfree.io.quiet import quiet
from initfree.io.staged import staged_directory, staged_file
from initfree.io.trajectories import POINTS as POINTS_FILE
from initfree.io.trajectories import noise_of, write_points
from initfree.io.undistorted import write_undistorted


@dataclass(frozen=True)
class Target:
    """A kind of output."""

    name: str
    looks: str
    """what is written"""
    write: Callable[[pycolmap.Reconstruction, Path], None]
    folder: bool = False
    suits: Callable[[Path], bool] = lambda path: False
    """whether a path implies this kind"""


def _write_ply(model: pycolmap.Reconstruction, path: Path) -> None:
    with quiet():
        model.export_PLY(str(path))


def _write_colmap(model: pycolmap.Reconstruction, path: Path) -> None:
    model.write(str(path))


def _named(name: str) -> Callable[[Path], bool]:
    return lambda path: path.name == name


def _ending(suffix: str) -> Callable[[Path], bool]:
    return lambda path: path.suffix.lower() == suffix


_SELFCAL = "camera matrices (.Pmat.cal), .rad, Ce.dat, Re.dat in a directory"
TARGETS = (
    Target("colmap", "a COLMAP model (binary) in a directory", _write_colmap, True, _ending("")),
    Target("ply", "points with their colours", _write_ply, False, _ending(".ply")),
    Target("picture", "cameras and points as a PNG (needs matplotlib)", write_picture, False, _ending(".png")),
    Target("nerfstudio", "transforms.json", camera_files.write_transforms, False, _named("transforms.json")),
    Target("json", "cameras as JSON", camera_files.write_json, False, _ending(".json")),
    Target("caliscope", "camera_array.toml", camera_files.write_caliscope, False, _named("camera_array.toml")),
    Target("anipose", "TOML of anipose and Pose2Sim", camera_files.write_anipose, False, _ending(".toml")),
    Target("multicamselfcal", _SELFCAL, camera_files.write_multicamselfcal, True),
    Target("dlt", "DLT coefficients as CSV, a column for each camera", camera_files.write_dlt),
)
COMMAND = "convert"
TABLE = "table"
"""of observations: needs no poses"""
POINTS = "points"
"""of arrays: where the points were in each frame"""
SPLATS = "splats"
"""needs the images too"""
OTHERS = {
    SPLATS: "images/ without distortion and sparse/0 with PINHOLE cameras (with --images)",
    TABLE: "observations as CSV, also of inputs without poses",
    POINTS: "points.csv of a solved array: frame, point, x, y, z, sigma",
}
NAMES = (*(target.name for target in TARGETS), *OTHERS)


def convert(
    source: Path,
    output: Path,
    to: str | None = None,
    alignment: Alignment | None = None,
    images: Path | None = None,
    *,
    overwrite: bool = False,
) -> str:
    """Write what is at `source` to `output`, and say as what: `to`, or what the output's name means.

    The world is as in the source, or `alignment`'s. `images`: the directory of the images, which `splats` undistorts.
    What no conversion wrote at `output` is replaced only with `overwrite`.
    """
    name = to or (_meant(output) if images is None else SPLATS)
    if os.path.realpath(output) == os.path.realpath(source):
        raise InputError(f"output {output} is the input; expected another path")
    target = next((one for one in TARGETS if one.name == name), None)
    if target is None and name not in NAMES:
        raise InputError(f"--to is {name!r}; expected one of {', '.join(NAMES)}")
    if (name == SPLATS) != (images is not None):
        raise InputError(
            f"--to is {name!r} and --images is {images}; expected splats with --images, and nothing else with it"
        )
    aligned = alignment is not None and alignment.asked
    if name == TABLE and aligned:
        raise InputError("a table of observations has no scale and no axes; expected cameras to be written")
    if name == SPLATS or (target is not None and target.folder):
        staged = staged_directory(output, COMMAND, ["."], overwrite=overwrite)
    else:
        staged = staged_file(output, COMMAND, overwrite=overwrite)
    with staged as path:
        if name == TABLE:
            _write_table(format_of(source).read(source, Asked("unknown")), path)
            return name
        model = model_of(source)
        if alignment is not None and aligned:
            align(model, alignment, read_moments(source))
        if name == POINTS:
            _write_points(model, source, path)
        elif target is not None:
            try:
                target.write(model, path)
            except InputError as error:
                raise InputError(f"{source}: {error}") from error
        elif images is not None:
            write_undistorted(model, images, path)
    return name


def _write_points(model: pycolmap.Reconstruction, source: Path, path: Path) -> None:
    moments = read_moments(source)
    if not moments:
        raise InputError(f"{source} has no frames and points ({MOMENTS} of a solved array); expected the output of a solve")
    write_points(path, model, moments, noise_of(source))


def _meant(output: Path) -> str:
    if output.name == POINTS_FILE:
        return POINTS
    if output.suffix.lower() == ".csv":
        return TABLE
    found = next((one for one in TARGETS if one.suits(output)), None)
    if found is None:
        raise InputError(f"what to write to {output} is not clear; say it with --to, one of {', '.join(NAMES)}")
    return found.name


def model_of(source: Path) -> pycolmap.Reconstruction:
    """The reconstruction at a path as a COLMAP model, with its observations."""
    model = load_colmap(source)
    if model is not None:
        return model
    found = format_of(source)
    if found.model is None:
        raise InputError(
            f"{source} is a {found.name}, which has observations but no poses; solve it first, or convert to a table"
        )
    observations = found.read(source, Asked("unknown"))
    if bal.is_bal(source) and found.name == "BAL":
        # Its intrinsics are not looked at by the solver, and so not in its observations.
        for k, (f, k1, k2) in enumerate(bal.read_bal(source).parameters[:, 6:], 1):
            old = observations.cameras[k]
            middle = (old.width / 2.0, old.height / 2.0)
            observations.cameras[k] = pycolmap.Camera(
                camera_id=k, model="RADIAL", width=old.width, height=old.height, params=[f, *middle, k1, k2]
            )
    reconstruction = found.model(source)
    check_poses(source, reconstruction)
    model = assembled(observations, reconstruction)
    check_model(model, str(source))
    return model


def assembled(o: Observations, reconstruction: Reconstruction) -> pycolmap.Reconstruction:
    model = pycolmap.Reconstruction()
    for camera_id in sorted({image.camera_id for image in o.images}):
        model.add_camera_with_trivial_rig(o.cameras[camera_id])
    number = {name: k for k, name in enumerate(reconstruction.names)}
    placed = np.array([image.name in number for image in o.images])
    for image in o.images:
        if image.name in number:
            k = number[image.name]
            model.add_image_with_trivial_frame(
                pycolmap.Image(
                    name=image.name, keypoints=image.keypoints, camera_id=image.camera_id, image_id=image.image_id
                ),
                pycolmap.Rigid3d(pycolmap.Rotation3d(reconstruction.R[k]), reconstruction.t[k]),
            )
    order = np.argsort(o.landmark_id, kind="stable")
    order = order[placed[o.image[order]]]
    image_ids = np.array([image.image_id for image in o.images])[o.image[order]].tolist()
    keypoints = o.keypoint[order].tolist()
    first, last = (np.searchsorted(o.landmark_id[order], reconstruction.ids, side).tolist() for side in ("left", "right"))
    for j, landmark_id in enumerate(reconstruction.ids.tolist()):
        elements = [pycolmap.TrackElement(image_ids[a], keypoints[a]) for a in range(first[j], last[j])]
        point = pycolmap.Point3D(xyz=reconstruction.xyz[j], track=pycolmap.Track(elements))
        model.add_point3D_with_id(landmark_id, point)
    model.update_point_3d_errors()
    return model


def _write_table(o: Observations, path: Path) -> None:
    """image, point, x, y, width, height of every observation, as `table` reads them."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["image", "point", "x", "y", "width", "height"])
        counts = [len(image.keypoints) for image in o.images]
        start = np.concatenate([[0], np.cumsum(counts)])
        xy = np.concatenate([np.empty((0, 2)), *(image.keypoints for image in o.images)])[start[o.image] + o.keypoint]
        shapes = [(o.cameras[image.camera_id].width, o.cameras[image.camera_id].height) for image in o.images]
        rows = zip(o.image.tolist(), o.landmark_id.tolist(), xy[:, 0].tolist(), xy[:, 1].tolist(), strict=True)
        writer.writerows((o.images[k].name, landmark, x, y, *shapes[k]) for k, landmark, x, y in rows)
