"""Rooms with cameras on their walls and a light that moves through them: arrays with exact truth.

What a user has of such an array is a calibration of some other day: focal lengths a few percent off, principal points tens
of pixels, distortion of another lens of the kind, or none.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pycolmap
from scipy.ndimage import gaussian_filter1d

from initfree.auto.intrinsics import refine_intrinsics
from initfree.data.observations import Intrinsics
from initfree.data.problem import Problem, build_problem
from initfree.data.recalibration import with_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.io.rows import observations_of_array

SIZE = np.array([8.0, 6.0, 3.2])
"""metres: the room; the light stays in the middle of it"""
KINDS = ("walls", "level", "two kinds", "all different", "narrow", "ring", "one side")


@dataclass(frozen=True)
class Room:
    """An array and what it recorded."""

    cameras: tuple[pycolmap.Camera, ...]
    """as they are"""
    given: tuple[pycolmap.Camera, ...]
    """as they are said to be"""
    R: Array
    centres: Array
    light: Array
    """(frames, 3)"""
    cam: Index
    frame: Index
    xy: Array
    wrong: Index
    """rows of detections that are of something else"""

    @property
    def names(self) -> list[str]:
        return [f"cam{k:02d}" for k in range(len(self.cameras))]

    def problem(self, intrinsics: Intrinsics = "refine") -> Problem:
        """With the given cameras."""
        # A reader makes cameras; ids are set in place.
        cameras = [pycolmap.Camera(camera.todict()) for camera in self.given]
        moments = {k: (str(k), "") for k in range(len(self.light))}
        rows = (self.cam, self.frame, self.xy)
        return build_problem(observations_of_array("a room", self.names, cameras, *rows, intrinsics, moments))

    def write_table(self, path: Path) -> Path:
        """As CSV, without intrinsics."""
        lines = ["camera,frame,x,y,width,height"]
        for k, f, (x, y) in zip(self.cam.tolist(), self.frame.tolist(), self.xy.tolist(), strict=True):
            camera = self.cameras[k]
            lines.append(f"{self.names[k]},{f},{x:.4f},{y:.4f},{camera.width},{camera.height}")
        path.write_text("\n".join(lines) + "\n")
        return path

    def truth(self) -> pycolmap.Reconstruction:
        model = pycolmap.Reconstruction()
        for k, name in enumerate(self.names):
            camera = pycolmap.Camera(self.cameras[k].todict())
            camera.camera_id = k + 1
            model.add_camera_with_trivial_rig(camera)
            pose = pycolmap.Rigid3d(pycolmap.Rotation3d(self.R[k]), -self.R[k] @ self.centres[k])
            model.add_image_with_trivial_frame(pycolmap.Image(name=name, camera_id=k + 1, image_id=k + 1), pose)
        return model

    def seen_by(self, camera: int) -> Index:
        return np.flatnonzero(self.cam == camera)

    def out_of_step(self, camera: int, frames: float, noise: float = 0.2) -> "Room":
        """The camera shows each frame's light where it was `frames` later."""
        time = np.arange(len(self.light)) + frames
        late = np.stack([np.interp(time, np.arange(len(self.light)), axis) for axis in self.light.T], axis=1)
        return self._seen_anew(camera, late, self.R[camera], self.centres[camera], 0, noise)

    def touched(self, camera: int, at: int, degrees: float, noise: float = 0.2) -> "Room":
        """The camera is turned from frame `at` on."""
        turn = pycolmap.Rotation3d(np.radians(degrees) * np.array([0.3, 0.9, 0.3])).matrix()
        return self._seen_anew(camera, self.light, turn @ self.R[camera], self.centres[camera], at, noise)

    def _seen_anew(self, camera: int, light: Array, R: Array, centre: Array, first: int, noise: float) -> "Room":
        rows = self.seen_by(camera)
        rows = rows[(self.frame[rows] >= first) & ~np.isin(rows, self.wrong)]
        xy = self.xy.copy()
        x = (light[self.frame[rows]] - centre) @ R.T
        rng = np.random.default_rng(camera)
        xy[rows] = np.asarray(self.cameras[camera].img_from_cam(x)) + noise * rng.normal(size=(len(rows), 2))
        return replace(self, xy=xy)


def room(
    kind: str = "walls",
    seed: int = 0,
    *,
    cameras: int = 20,
    frames: int = 1000,
    noise: float = 0.2,
    wrong: float = 0.02,
    missed: float = 0.15,
    focal_off: float = 0.04,
    principal_point_off: float = 40.0,
    distortion_given: str = "other",
    speed: float = 1.0,
) -> Room:
    """`focal_off`: about how much the given focal lengths are off; all too long or all too short, each by its own amount.

    `distortion_given`: that of another lens of the kind ("other"), "none" or "true". `speed` of the light: how much of the
    room it crosses in 100 frames.
    """
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    R, centres = _poses(kind, cameras, rng)
    real = _lenses(kind, cameras, rng)
    given = _given(real, rng, focal_off, principal_point_off, distortion_given)
    light = _path(frames, speed, rng)
    rows: list[tuple[Index, Array]] = []
    for k in range(cameras):
        x = (light - centres[k]) @ R[k].T
        # A light is a lamp with a stand: a camera that is behind it does not see it, nor one of a ring across the room.
        far = 4.8 if kind == "ring" else 9.0
        seen = (x[:, 2] > 0.3) & (np.linalg.norm(x, axis=1) < far) & (rng.random(frames) > missed)
        xy = np.full((frames, 2), np.nan)
        xy[seen] = real[k].img_from_cam(x[seen])
        inside = seen & np.isfinite(xy).all(axis=1) & (np.abs(xy - _half(real[k])) < _half(real[k])).all(axis=1)
        # Strong distortion folds the far outside of an image back into it.
        back = np.full((frames, 2), np.nan)
        back[inside] = real[k].cam_from_img(xy[inside])
        inside &= np.linalg.norm(back - x[:, :2] / x[:, 2:], axis=1) < 1e-3
        rows.append((np.flatnonzero(inside), xy[inside]))
    cam = np.repeat(np.arange(cameras), [len(frame) for frame, _ in rows])
    frame = np.concatenate([frame for frame, _ in rows])
    xy = np.concatenate([xy for _, xy in rows]) + noise * rng.normal(size=(len(cam), 2))
    bad = np.flatnonzero(rng.random(len(cam)) < wrong)
    for row in bad.tolist():
        xy[row] = rng.uniform(0.0, 2.0, 2) * _half(real[cam[row]])
    return Room(tuple(real), tuple(given), R, centres, light, cam, frame, xy, bad)


def adjusted_from_truth(array: Room) -> Reconstruction:
    """What the recording allows at all: the adjustment with free intrinsics that begins at the truth."""
    problem = array.problem("known")
    place = [array.names.index(name) for name in problem.names]
    found = with_cameras(problem, {int(k): array.cameras[n] for k, n in zip(problem.camera_ids, place, strict=True)})
    assert found is not None
    R, t = array.R[place], -np.einsum("nij,nj->ni", array.R, array.centres)[place]
    ids = found[0].landmark_ids
    truth = Reconstruction.of_poses(tuple(problem.names), R, t, ids, array.light[ids])
    refined = refine_intrinsics(found[0], truth, principal_point=True)
    assert refined is not None
    return refined.reconstruction


def _half(camera: pycolmap.Camera) -> Array:
    return np.array([camera.width, camera.height]) / 2.0


def _poses(kind: str, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    angle = 2.0 * np.pi * (np.arange(count) + 0.3 * rng.uniform(-1.0, 1.0, count)) / count
    if kind == "one side":
        angle = rng.uniform(-0.6, 0.6, count)
    out = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if kind in ("ring", "level"):
        wall = 3.2 * out
    else:
        wall = out / np.max(np.abs(out) / (SIZE[:2] / 2.0), axis=1, keepdims=True)
    height = np.full(count, 1.5) if kind == "level" else rng.uniform(1.8, 3.0, count)
    centres = np.column_stack([wall, height])
    target = np.array([0.0, 0.0, 1.2]) + (0.0 if kind == "level" else 0.5) * rng.normal(size=(count, 3)) * (1.0, 1.0, 0.4)
    z = target - centres
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    R = np.stack([x, np.cross(z, x), z], axis=1)
    roll = 0.0 if kind == "level" else np.radians(3.0)
    turns = [pycolmap.Rotation3d(roll * a * np.array([0.0, 0.0, 1.0])).matrix() for a in rng.normal(size=count)]
    return np.array(turns) @ R, centres


def _lenses(kind: str, count: int, rng: np.random.Generator) -> list[pycolmap.Camera]:
    """Of one make unless `kind` says otherwise: a percent of difference in focal lengths, 12 px in principal points."""
    shapes = [(1920, 1080, 0.62, -0.2, 0.05)] * count
    if kind == "two kinds":
        shapes = [(1920, 1080, 0.7, -0.15, 0.03), (1280, 1024, 0.95, -0.28, 0.1)] * count
    if kind == "all different":
        sizes = [(1920, 1080), (1280, 1024), (2048, 2048), (1280, 720), (2432, 2048)]
        shapes = [
            (*sizes[k % len(sizes)], rng.uniform(0.6, 1.1), rng.uniform(-0.3, -0.1), rng.uniform(0.0, 0.1))
            for k in range(count)
        ]
    if kind == "narrow":
        shapes = [(1920, 1080, 1.6, -0.1, 0.0)] * count
    found = []
    for width, height, share, k1, k2 in shapes[:count]:
        f = width * share * (1.0 + 0.01 * rng.normal())
        middle = np.array([width, height]) / 2.0 + 12.0 * rng.normal(size=2)
        k1, k2 = k1 + 0.01 * rng.normal(), k2 + 0.01 * rng.normal()
        tangential = 3e-4 * rng.normal(size=2)
        params = [f, f, *middle, k1, k2, *tangential]
        found.append(pycolmap.Camera(model="OPENCV", width=width, height=height, params=params))
    return found


def _given(
    real: list[pycolmap.Camera], rng: np.random.Generator, focal: float, middle: float, distortion: str
) -> list[pycolmap.Camera]:
    common = focal * rng.choice([-1.0, 1.0])
    found = []
    for camera in real:
        params = np.array(camera.params)
        params[:2] *= 1.0 + common * rng.uniform(0.5, 1.5)
        angle = rng.uniform(0.0, 2.0 * np.pi)
        params[2:4] += middle * rng.uniform(0.5, 1.5) * np.array([np.cos(angle), np.sin(angle)])
        if distortion != "true":
            params[6:8] = 0.0
            params[4:6] *= 0.0 if distortion == "none" else rng.uniform(0.6, 1.4)
        found.append(pycolmap.Camera(model="OPENCV", width=camera.width, height=camera.height, params=params))
    return found


def _path(frames: int, speed: float, rng: np.random.Generator) -> Array:
    """A smooth walk that fills the middle of the room."""
    width = 100.0 / max(speed, 1e-6) / 8.0
    walk = gaussian_filter1d(rng.normal(size=(frames + int(8 * width), 3)), width, axis=0)[-frames:]
    walk /= walk.std(axis=0)
    # Gaussian to uniform, so that the corners of the volume are reached too.
    return np.tanh(walk) * (0.36, 0.36, 0.4) * SIZE + (0.0, 0.0, 1.4)
