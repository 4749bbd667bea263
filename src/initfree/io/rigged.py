"""A written model with the rigs and frames of its input, where they hold.

Poses of a model with rigs are exactly sensor_from_rig · rig_from_world. Those of a solve are independent, so COLMAP's
bundle adjustment adjusts the estimated rigs (`rigs.estimate_rigs`) under that constraint, with fixed intrinsics. If the
images then fit as well, the rigs are written; else each image has a rig and a frame of its own.
"""

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pycolmap

from initfree.arrays.rigs import Mounts, Rig, estimate_rigs
from initfree.data.tracks import Array
from initfree.io.points import MIN_ANGLE
from initfree.io.quiet import quiet
from initfree.stages.euclidean.residuals import INLIER_PIXELS

WORSE, ROUNDING = 1.1, 0.02
"""factor of the mean error of independent images, and pixels, up to which a rig is kept: fewer parameters always fit a
little worse, and sensors that are not triggered together much worse"""
EXTENT = 10.0
"""units over which the cameras of a written model extend (`world.upright`)"""
_STEPS = 50


@dataclass(frozen=True)
class Rigged:
    """The result for an input's rigs."""

    model: pycolmap.Reconstruction
    """with the rigs if they fit, else unchanged"""
    rigs: tuple[Rig, ...]
    """as estimated from independent images, in the unit of the model"""
    holds: bool
    apart: float
    """pixels: mean reprojection error of independent images"""
    together: float | None
    """the same with rigs; None where no two sensors of one are in one frame"""

    def figures(self) -> dict[str, Any]:
        """For run.json."""
        return {
            "written": self.holds,
            "mean_reprojection_error": {"images_by_themselves": self.apart, "as_rigs": self.together},
            "rigs": {str(rig.rig): _figures(rig) for rig in self.rigs},
        }

    def notes(self) -> tuple[str, ...]:
        """A sentence for each rig, and what was written."""
        sentences = tuple(_sentence(rig) for rig in self.rigs)
        if self.together is None:
            return sentences
        errors = f"a mean error of {self.together:.3g} px with them, {self.apart:.3g} px with each image by itself"
        if self.holds:
            return (*sentences, f"rigs and frames were written as in the input: {errors}")
        return (*sentences, f"the rigs do not hold and were not written, each image has its own frame: {errors}")


def _figures(rig: Rig) -> dict[str, Any]:
    return {
        "reference": rig.reference,
        "frames": len(rig.frames),
        "unrelated_cameras": list(rig.lost),
        "sensor_from_rig": {
            str(camera): {
                "rotation_wxyz": pycolmap.Rotation3d(sensor.R).quat[[3, 0, 1, 2]].tolist(),
                "translation": sensor.t.tolist(),
                "frames": sensor.frames,
                "spread_degrees": {"median": sensor.degrees, "largest": sensor.worst_degrees},
                "spread_share_of_extent": {"median": sensor.distance / EXTENT, "largest": sensor.worst_distance / EXTENT},
            }
            for camera, sensor in sorted(rig.sensors.items())
        },
    }


def _sentence(rig: Rig) -> str:
    others = [sensor for camera, sensor in rig.sensors.items() if camera != rig.reference]
    lost = f"; no frame relates cameras {', '.join(map(str, rig.lost))} to the others" if rig.lost else ""
    if not others:
        return f"rig {rig.rig}: no two of its cameras are in one frame"
    degrees, share = max(s.degrees for s in others), max(s.distance for s in others) / EXTENT
    worst = max(s.worst_degrees for s in others), max(s.worst_distance for s in others) / EXTENT
    return (
        f"rig {rig.rig}: {len(rig.sensors)} cameras in {len(rig.frames)} frames stand to each other within {degrees:.2g} "
        f"degrees and {share:.2g} of the cameras' extent in the median frame, {worst[0]:.2g} and {worst[1]:.2g} in the worst"
        f"{lost}"
    )


def rigged(model: pycolmap.Reconstruction, mounts: Mounts) -> Rigged:
    """The model with rigs and frames of the input, or unchanged if they do not fit."""
    ids = sorted(int(image.image_id) for image in model.images.values() if image.has_pose)
    poses = [model.images[k].cam_from_world() for k in ids]
    R, t = np.array([pose.rotation.matrix() for pose in poses]), np.array([pose.translation for pose in poses])
    rigs = estimate_rigs(ids, mounts, R, t)
    apart = model.compute_mean_reprojection_error()
    if not any(len(rig.sensors) > 1 for rig in rigs):
        return Rigged(model, rigs, False, apart, None)
    together = pycolmap.Reconstruction(model)
    together.set_rigs_and_frames(*_rigs_and_frames(together, dict(zip(ids, poses, strict=True)), mounts, rigs))
    with quiet():
        pycolmap.bundle_adjustment(together, _options())
    together.update_point_3d_errors()
    error = together.compute_mean_reprojection_error()
    if not error <= WORSE * apart + ROUNDING:
        return Rigged(model, rigs, False, apart, error)
    pycolmap.ObservationManager(together).filter_all_points3D(INLIER_PIXELS, MIN_ANGLE)
    together.update_point_3d_errors()
    return Rigged(together, rigs, True, apart, error)


def _rigs_and_frames(
    model: pycolmap.Reconstruction, poses: dict[int, pycolmap.Rigid3d], mounts: Mounts, estimated: tuple[Rig, ...]
) -> tuple[list[pycolmap.Rig], list[pycolmap.Frame]]:
    """Those of the input where they were estimated; else a rig for each camera and a frame for each image."""
    rig_of = {sensor: rig for rig in estimated for sensor in rig.sensors}
    new_rig = count(1 + max(mount.rig for mount in mounts.values()))
    new_frame = count(1 + max(mount.frame for mount in mounts.values()))
    rigs = {rig.rig: _rig(rig.rig, rig.reference, rig) for rig in estimated}
    frames: dict[int, pycolmap.Frame] = {}
    alone: dict[int, int] = {}
    for image_id, pose in poses.items():
        image, mount = model.images[image_id], mounts.get(image_id)
        camera = int(image.camera_id)
        rig = rig_of.get(camera)
        if rig is None and camera not in alone:
            alone[camera] = next(new_rig)
            rigs[alone[camera]] = _rig(alone[camera], camera)
        if rig is not None and mount is not None:
            frame_id, rig_from_world = mount.frame, _rigid(*rig.frames[mount.frame])
        elif rig is not None:
            frame_id, rig_from_world = next(new_frame), _rigid(rig.sensors[camera].R, rig.sensors[camera].t).inverse() * pose
        else:
            frame_id, rig_from_world = next(new_frame), pose
        if frame_id not in frames:
            rig_id = alone[camera] if rig is None else rig.rig
            frames[frame_id] = pycolmap.Frame(frame_id=frame_id, rig_id=rig_id, rig_from_world=rig_from_world)
        frames[frame_id].add_data_id(image.data_id)
    return list(rigs.values()), list(frames.values())


def _rig(rig_id: int, reference: int, estimated: Rig | None = None) -> pycolmap.Rig:
    rig = pycolmap.Rig(rig_id=rig_id)
    rig.add_ref_sensor(_camera(reference))
    for camera, sensor in ({} if estimated is None else estimated.sensors).items():
        if camera != reference:
            rig.add_sensor(_camera(camera), _rigid(sensor.R, sensor.t))
    return rig


def _camera(camera_id: int) -> pycolmap.sensor_t:
    return pycolmap.sensor_t(type=pycolmap.SensorType.CAMERA, id=camera_id)


def _rigid(R: Array, t: Array) -> pycolmap.Rigid3d:
    return pycolmap.Rigid3d(pycolmap.Rotation3d(R), t)


def _options() -> pycolmap.BundleAdjustmentOptions:
    """Poses and points, under the loss that all matches were adjusted with (`auto.all_matches`)."""
    options = pycolmap.BundleAdjustmentOptions()
    options.refine_focal_length = options.refine_extra_params = options.refine_principal_point = False
    options.print_summary = False
    options.ceres.loss_function_type, options.ceres.loss_function_scale = pycolmap.LossFunctionType.CAUCHY, 1.0
    options.ceres.solver_options.max_num_iterations, options.ceres.solver_options.function_tolerance = _STEPS, 1e-6
    return options
