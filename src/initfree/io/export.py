"""A metric reconstruction as a COLMAP model."""

from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.data.image_sizes import check_image
from initfree.data.names import inside, without_form_as_text
from initfree.data.observations import Image, Observations
from initfree.data.problem import Problem
from initfree.data.recalibration import found_camera
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.errors import InputError
from initfree.io.points import Points, points_to_write
from initfree.io.quiet import quiet
from initfree.io.rigged import Rigged, rigged
from initfree.io.world import upright

UNKNOWN_COLOUR = (128, 128, 128)
"""of a point without a colour in the input or the images; black would be invisible"""


@dataclass(frozen=True)
class Exported:
    """A model and its contents."""

    model: pycolmap.Reconstruction
    points: Points
    rigs: Rigged | None = None
    """the result for the input's rigs, if it has any"""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the model, a sentence each."""
        found = () if self.rigs is None else self.rigs.notes()
        cut = without_form_as_text(image.name for image in self.model.images.values())
        if cut:
            names = f"{cut[0]!r}" + (f" and {len(cut) - 1} more have" if len(cut) > 1 else " has")
            found = (
                *found,
                f"{names} a blank in the name, where COLMAP's text format would end it: keep the model as it is",
            )
        return found

    def figures(self) -> dict[str, Any]:
        """For run.json."""
        return {
            "images": self.model.num_reg_images(),
            "points": self.model.num_points3D(),
            "observations": self.model.compute_num_observations(),
            "mean_reprojection_error": self.model.compute_mean_reprojection_error(),
            "outlier_observations_left_out": self.points.outliers,
            "points_left_out": self.points.left_out,
            "points_of_two_observations_brought_back": self.points.brought_back,
            "rigs": None if self.rigs is None else self.rigs.figures(),
            "unit": "arbitrary: observations do not determine the scale; the cameras extend over 10 units, y points down",
        }


def to_colmap(problem: Problem, reconstruction: Reconstruction, images: Path | None = None) -> pycolmap.Reconstruction:
    """See `export`."""
    return export(problem, reconstruction, images).model


def export(problem: Problem, reconstruction: Reconstruction, images: Path | None = None) -> Exported:
    """Solved images with all their keypoints, landmarks with the observations that fit, ids as in the input.

    Where intrinsics were unknown, cameras are COLMAP's RADIAL with the focal length and distortion found, the median over
    their images, and the principal point in the middle. Colours are the input's, or those of the images in the directory
    `images`. Axes and scale are those of `world.upright`. Rigs and frames are the input's where they hold (`rigged`).
    """
    o = problem.observations
    model = pycolmap.Reconstruction()
    solved = [o.images[k] for k in problem.images]
    # Images that were found to share a camera may be of different sensors of a rig, which only their cameras distinguish.
    written = {image.image_id: image.camera_id for image in solved} | _sensors(o, solved)
    for image in solved:
        camera_id = written[image.image_id]
        if model.exists_camera(camera_id):
            continue
        camera = (
            copy(o.cameras[image.camera_id])
            if problem.calibrated
            else found_camera(problem, reconstruction.focal, reconstruction.radial, image.camera_id)
        )
        camera.camera_id = camera_id
        model.add_camera_with_trivial_rig(camera)
    for k, image in enumerate(solved):
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(reconstruction.R[k]), reconstruction.t[k])
        camera_id = written[image.image_id]
        model.add_image_with_trivial_frame(
            pycolmap.Image(name=image.name, keypoints=image.keypoints, camera_id=camera_id, image_id=image.image_id), pose
        )
    points = points_to_write(problem, reconstruction)
    image_ids = np.array([image.image_id for image in solved])[points.camera].tolist()
    keypoints, ptr, colours = points.keypoint.tolist(), points.ptr.tolist(), _colours(o, points.ids)
    for j, landmark_id in enumerate(points.ids.tolist()):
        elements = [pycolmap.TrackElement(image_ids[a], keypoints[a]) for a in range(ptr[j], ptr[j + 1])]
        point = pycolmap.Point3D(xyz=points.xyz[j], track=pycolmap.Track(elements), color=colours[j])
        model.add_point3D_with_id(landmark_id, point)
    upright(model)
    model.update_point_3d_errors()
    rigs = None if o.mounts is None else rigged(model, o.mounts)
    if rigs is not None:
        model = rigs.model
    if images is not None:
        check_images(problem, images)
        with quiet():
            model.extract_colors_for_all_images(str(images))
    return Exported(model, points, rigs)


def check_images(problem: Problem, images: Path) -> None:
    """Check, before a solve, that the directory has some of the images."""
    if not images.is_dir():
        raise InputError(f"images {images} is no directory; expected one with the images that the input names")
    paths = [path for path in (inside(images, name) for name in problem.names) if path.is_file()]
    for path in paths:
        check_image(path)
    if not paths:
        raise InputError(f"images {images} has none of the input's images; expected {problem.names[0]!r} and so on in it")


def _sensors(o: Observations, images: list[Image]) -> dict[int, int]:
    """By image id: the camera that it has in a rig of the input."""
    return {} if o.mounts is None else {k.image_id: o.mounts[k.image_id].sensor for k in images if k.image_id in o.mounts}


def _colours(o: Observations, ids: Index) -> NDArray[np.uint8]:
    """The input's colour of each landmark."""
    colours = np.full((len(ids), 3), UNKNOWN_COLOUR, dtype=np.uint8)
    if o.colour is not None and len(ids):
        known, first = np.unique(o.landmark_id, return_index=True)
        colours[:] = o.colour[first[np.searchsorted(known, ids)]]
    return colours
