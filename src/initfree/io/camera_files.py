"""Cameras of a model as other programs read them: TOML, JSON, MultiCamSelfCal's files, DLT coefficients, transforms.json.

Pixels are those of the input's observations. A camera is written with OpenCV's distortion if COLMAP's model has that
form; thin prisms and fields of view are refused.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

from initfree.data.names import relative
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.io.quiet import quiet


@dataclass(frozen=True)
class Placed:
    """A registered image: its camera as OpenCV has it, and its pose x = R X + t."""

    name: str
    width: int
    height: int
    K: Array
    distortion: Array
    """k1 k2 p1 p2 k3 k4 k5 k6, or k1 k2 k3 k4 of a fisheye"""
    fisheye: bool
    R: Array
    t: Array

    @property
    def projection(self) -> Array:
        """K [R | t], (3, 4)"""
        return self.K @ np.column_stack([self.R, self.t])


def placed(model: pycolmap.Reconstruction) -> list[Placed]:
    """The registered images in the order of their ids."""
    result = []
    for _, image in sorted(model.images.items()):
        if image.has_pose:
            camera, pose = model.cameras[image.camera_id], image.cam_from_world()
            K, distortion, fisheye = _opencv(camera)
            rotation, translation = pose.rotation.matrix(), np.asarray(pose.translation)
            result.append(Placed(image.name, camera.width, camera.height, K, distortion, fisheye, rotation, translation))
    if not result:
        raise InputError("the model has no image with a pose; nothing can be written")
    return result


def _opencv(camera: pycolmap.Camera) -> tuple[Array, Array, bool]:
    name = camera.model.name
    extra = list(camera.params)[len(camera.params) - _EXTRA[name] :] if name in _EXTRA else None
    if extra is None:
        raise InputError(
            f"camera {camera.camera_id} is of model {name}, which has no form in OpenCV; expected {', '.join(_EXTRA)}"
        )
    fisheye = "FISHEYE" in name
    if name in ("SIMPLE_RADIAL", "RADIAL", "SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE"):
        extra = [*extra, *[0.0] * (2 - len(extra))]
    length = 4 if fisheye else 8
    K = np.array(
        [
            [camera.focal_length_x, 0.0, camera.principal_point_x],
            [0.0, camera.focal_length_y, camera.principal_point_y],
            [0, 0, 1.0],
        ]
    )
    return K, np.array([*extra, *[0.0] * (length - len(extra))]), fisheye


_EXTRA = {
    "SIMPLE_PINHOLE": 0, "PINHOLE": 0, "SIMPLE_RADIAL": 1, "RADIAL": 2, "OPENCV": 4, "FULL_OPENCV": 8,
    "SIMPLE_RADIAL_FISHEYE": 1, "RADIAL_FISHEYE": 2, "OPENCV_FISHEYE": 4,
}  # fmt: skip
"""distortion parameters of COLMAP's models that OpenCV has too, in the same order"""


def write_anipose(model: pycolmap.Reconstruction, path: Path) -> None:
    """TOML of anipose and Pose2Sim: [cam_N] with name, size, matrix, distortions, rotation (Rodrigues), translation."""
    lines = []
    for k, one in enumerate(placed(model)):
        lines += [
            f"[cam_{k}]",
            f"name = {json.dumps(one.name, ensure_ascii=False)}",
            f"size = [{one.width}.0, {one.height}.0]",
            *_intrinsics(one),
        ]
        lines += [f"rotation = {Rotation.from_matrix(one.R).as_rotvec().tolist()}", f"translation = {one.t.tolist()}"]
        lines += [f"fisheye = {str(one.fisheye).lower()}", ""]
    path.write_text("\n".join([*lines, "[metadata]", "adjusted = true", "error = 0.0", ""]), encoding="utf-8")


def write_caliscope(model: pycolmap.Reconstruction, path: Path) -> None:
    """caliscope's camera_array.toml: [cameras.N] with the rotation as a matrix."""
    lines = []
    for k, one in enumerate(placed(model)):
        number = one.name.removeprefix("cam_")
        number = int(number) if number.isdecimal() else k
        lines += [f"[cameras.{number}]", f"cam_id = {number}", f"size = [{one.width}, {one.height}]", "rotation_count = 0"]
        lines += ["ignore = false", f"fisheye = {str(one.fisheye).lower()}", *_intrinsics(one)]
        lines += [f"translation = {one.t.tolist()}", f"rotation = {one.R.tolist()}", ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def _intrinsics(one: Placed) -> list[str]:
    # The usual five; more only where there are more.
    distortion = one.distortion if one.fisheye or one.distortion[5:].any() else one.distortion[:5]
    return [f"matrix = {one.K.tolist()}", f"distortions = {distortion.tolist()}"]


def write_json(model: pycolmap.Reconstruction, path: Path) -> None:
    """Everything about the cameras, by image name."""
    cameras = {
        one.name: {
            "width": one.width, "height": one.height, "K": one.K.tolist(), "fisheye": one.fisheye,
            "distortion": one.distortion.tolist(), "R": one.R.tolist(), "t": one.t.tolist(),
            "centre": (-one.R.T @ one.t).tolist(),
        }
        for one in placed(model)
    }  # fmt: skip
    what = "x = R X + t, world to camera; distortion as in OpenCV: k1 k2 p1 p2 k3 k4 k5 k6, fisheye k1 k2 k3 k4"
    path.write_text(json.dumps({"convention": what, "cameras": cameras}, indent=1) + "\n", encoding="utf-8")


POINTS = "sparse_pc.ply"
"""beside transforms.json, where splatfacto begins; the name is that of ns-process-data"""


def write_transforms(model: pycolmap.Reconstruction, path: Path) -> None:
    """nerfstudio's transforms.json: camera to world, axes as in OpenGL (y up, z backwards), images in images/; and the
    points, in the same world."""
    cameras = placed(model)
    kinds = {one.fisheye for one in cameras}
    if len(kinds) > 1:
        raise InputError("fisheye and other cameras in one model; nerfstudio's transforms.json holds one kind only")
    fisheye = kinds.pop()
    frames: list[dict[str, Any]] = []
    for one in cameras:
        to_world = np.eye(4)
        to_world[:3, :3], to_world[:3, 3] = one.R.T * (1.0, -1.0, -1.0), -one.R.T @ one.t
        names = ("k1", "k2", "k3", "k4") if fisheye else ("k1", "k2", "p1", "p2", "k3")
        if not fisheye and one.distortion[5:].any():
            raise InputError(f"image {one.name!r} has rational distortion (k4, k5, k6), which transforms.json has not")
        frames.append(
            {
                "file_path": f"images/{relative(one.name, 'transforms.json')}", "w": one.width, "h": one.height,
                "fl_x": one.K[0, 0], "fl_y": one.K[1, 1], "cx": one.K[0, 2], "cy": one.K[1, 2],
                **dict(zip(names, one.distortion.tolist(), strict=False)),
                "transform_matrix": to_world.tolist(),
            }
        )  # fmt: skip
    table: dict[str, Any] = {"camera_model": "OPENCV_FISHEYE" if fisheye else "OPENCV", "frames": frames}
    if model.num_points3D():
        table["ply_file_path"] = POINTS
        with quiet():
            model.export_PLY(str(path.with_name(POINTS)))
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def write_dlt(model: pycolmap.Reconstruction, path: Path) -> None:
    """DLT coefficients, a column for each camera: u = (L1 X + L2 Y + L3 Z + L4)/(L9 X + L10 Y + L11 Z + 1), and v likewise.

    For pixels without distortion, which DLT does not have.
    """
    columns = []
    for one in placed(model):
        P = one.projection
        if abs(P[2, 3]) < 1e-9 * np.abs(P[2]).max():
            raise InputError(
                f"the world's origin lies in the plane of image {one.name!r}, which DLT cannot express; move it"
            )
        columns.append((P / P[2, 3]).reshape(-1)[:11])
    np.savetxt(path, np.array(columns).T, delimiter=",", fmt="%.17g")


def write_multicamselfcal(model: pycolmap.Reconstruction, path: Path) -> None:
    """cameraN.Pmat.cal (3x4), basenameN.rad, and Ce.dat, Re.dat of all cameras, as MultiCamSelfCal writes them."""
    cameras = placed(model)
    if any(one.fisheye or one.distortion[4:].any() for one in cameras):
        raise InputError("a camera has more distortion than MultiCamSelfCal's four coefficients (k1, k2, p1, p2)")
    path.mkdir(parents=True, exist_ok=True)
    for k, one in enumerate(cameras, 1):
        np.savetxt(path / f"camera{k}.Pmat.cal", one.projection, fmt="%.17g")
        lines = [f"K{i + 1}{j + 1} = {one.K[i, j]:.17g}" for i in range(3) for j in range(3)]
        lines += ["", *(f"kc{i + 1} = {value:.17g}" for i, value in enumerate(one.distortion[:4])), ""]
        (path / f"basename{k}.rad").write_text("\n".join(lines))
    np.savetxt(path / "Ce.dat", np.column_stack([-one.R.T @ one.t for one in cameras]), fmt="%.17g")
    np.savetxt(path / "Re.dat", np.vstack([one.R for one in cameras]), fmt="%.17g")
    np.savetxt(path / "Res.dat", [(one.width, one.height) for one in cameras], fmt="%d")
    (path / "camera_order.txt").write_text("".join(f"{one.name}\n" for one in cameras), encoding="utf-8")
