"""Offsets in time between the cameras of an array, from the speed of a moving light.

A camera with the offset s shows in frame f where the light was at f + s. With the path X of the light from the other cameras
alone and its velocity V, the residuals of the camera are

    r = J_pose δ + A R V s,   A = dr/dx.

Least squares (Cauchy at 4 px) over its pose and s estimate s and its standard deviation: hundredths of a frame where the
light is fast. A camera that fits nothing, or was rejected, is first resected for every quarter of a frame up to ten
frames. Intrinsics that were refined with this camera can absorb part of an offset below half a frame, which is then too
small.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pycolmap

from initfree.arrays.camera_reports import CameraReport, all_detections
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.engine.losses import Cauchy
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.stages.euclidean.residuals import INLIER_PIXELS
from initfree.stages.euclidean.triangulation import Status, triangulate

FARTHEST = 10
"""largest offset that is tried, in frames"""
LEAST = 20
"""detections of a moving light for an estimate"""
_DEVIATIONS = 5.0
"""standard deviations by which an offset must differ from zero to be reported"""
_LEAST_PIXELS = 0.3
"""median displacement of the detections below which an offset is not reported"""
_SUSPECT = 0.3
"""share of wrong detections from which offsets are tried"""
_TRIED = 0.25
"""step between tried offsets, in frames"""
_NEAR_PIXELS = 12.0
"""error up to which a detection fits a tried offset: an eighth of a frame of a fast light"""
_MORE = 1.5
"""factor by which more detections must fit with an offset than without"""
_STEPS = 6
_ROUNDS = 4
"""one more than the cameras that may be out of step"""


@dataclass(frozen=True)
class Offset:
    """Offset in time of one camera against the others.

    Attributes:
        frames: The camera shows in each frame what the others show so many frames later.
        deviation: Standard deviation of `frames`.
        pixels: Median distance that the light moves in the camera's image in that time.
    """

    frames: float
    deviation: float
    pixels: float

    def __str__(self) -> str:
        when = "later" if self.frames > 0.0 else "earlier"
        return f"shows in each frame what the others show {abs(self.frames):.2f} frames {when} (± {self.deviation:.2g})"

    @property
    def significant(self) -> bool:
        """Whether it differs from zero significantly and visibly."""
        return abs(self.frames) > _DEVIATIONS * self.deviation and self.pixels > _LEAST_PIXELS


@dataclass(frozen=True)
class _Path:
    """Moving points: position and velocity (per frame) of each landmark, and its landmark some frames later."""

    xyz: Array
    velocity: Array
    """NaN if the frame before or after is missing"""
    later: dict[int, Index]
    """by whole offset: the landmark of the same point so many frames later, or -1"""

    def moved(self, frames: float) -> tuple[Array, Array]:
        """Position and velocity `frames` later; NaN if unknown."""
        whole = int(np.floor(frames))
        share = frames - whole
        x, v = self._at(whole)
        if share == 0.0:
            return x, v
        y, u = self._at(whole + 1)
        return (1.0 - share) * x + share * y, (1.0 - share) * v + share * u

    def _at(self, frames: int) -> tuple[Array, Array]:
        there = self.later[frames]
        unknown = (there < 0)[:, None]
        return np.where(unknown, np.nan, self.xyz[there]), np.where(unknown, np.nan, self.velocity[there])


def later_landmarks(moments: dict[int, tuple[str, str]], ids: Index) -> dict[int, Index] | None:
    """For every whole offset, the landmark of the same point so many frames later; None if frames are not numbers."""
    try:
        frame = np.array([int(moments[int(k)][0]) for k in ids], dtype=np.int64)
    except ValueError:
        return None
    if len(frame) < 2:
        return None
    steps = np.diff(np.unique(frame))
    step = int(np.median(steps))
    number = {(int(f), moments[int(k)][1]): j for j, (f, k) in enumerate(zip(frame, ids, strict=True))}
    return {
        s: np.array([number.get((int(f) + s * step, moments[int(k)][1]), -1) for f, k in zip(frame, ids, strict=True)])
        for s in range(-FARTHEST - 1, FARTHEST + 2)
    }


def offsets(problem: Problem, reconstruction: Reconstruction, reports: Sequence[CameraReport]) -> dict[str, Offset]:
    """Offsets of the cameras of an array, solved or rejected, by name, where the data determine them."""
    if problem.observations.moments is None:
        return {}
    problem, reconstruction = all_detections(problem, reconstruction)
    wrong = {report.name: report.wrong_share for report in reports}
    o = problem.observations
    later = None if o.moments is None else later_landmarks(o.moments, problem.landmark_ids)
    if later is None:
        return {}
    found: dict[str, Offset] = {}
    t, trusted = problem.tracks, np.ones(problem.tracks.observations)
    for _ in range(_ROUNDS):
        found = _of_solved(problem, reconstruction, later, trusted, wrong)
        late = [k for k, name in enumerate(problem.names) if name in found and found[name].significant]
        late = [k for k in late if trusted[t.seen_by(k)].any()]
        if not late:
            break
        # The adjustment spreads the offset of one camera over all: estimate again without the worst.
        trusted[t.seen_by(max(late, key=lambda k: found[problem.names[k]].pixels))] = 0.0
        limits = AdjustConfig(free=FreeIntrinsics.of(problem), scales=(INLIER_PIXELS,), tolerance=1e-6)
        reconstruction, _ = adjust(problem, reconstruction, limits, weight=trusted)
    left_out = [n for n in range(len(o.images)) if n not in set(problem.images.tolist())]
    if left_out:
        path = _path(problem, reconstruction, later, trusted)
        place = {int(k): j for j, k in enumerate(problem.landmark_ids)}
        for n in left_out:
            rows = np.flatnonzero(o.image == n)
            landmark = np.array([place.get(int(k), -1) for k in o.landmark_id[rows]], dtype=np.int64)
            rows, landmark = rows[landmark >= 0], landmark[landmark >= 0]
            unit = np.tile(o.image_unit[n], (len(rows), 1))
            camera = _Camera(o.normalised[rows], unit, landmark, 1.0, np.zeros(2))
            if (one := camera.offset(path, None, suspect=True)) is not None:
                found[o.images[n].name] = one
    return found


def _of_solved(
    problem: Problem, reconstruction: Reconstruction, later: dict[int, Index], trusted: Array, wrong: dict[str, float]
) -> dict[str, Offset]:
    t, found = problem.tracks, {}
    for k, name in enumerate(problem.names):
        rows = t.seen_by(k)
        path = _path(problem, reconstruction, later, np.where(t.cam == k, 0.0, trusted))
        lens = reconstruction.focal[k], reconstruction.radial[k]
        camera = _Camera(problem.m[rows], problem.unit[rows], t.landmark[rows], *lens)
        pose = reconstruction.R[k], reconstruction.t[k]
        if (one := camera.offset(path, pose, suspect=wrong[name] > _SUSPECT)) is not None:
            found[name] = one
    return found


def _path(problem: Problem, reconstruction: Reconstruction, later: dict[int, Index], weight: Array) -> _Path:
    xyz, status = triangulate(problem, reconstruction, reconstruction.xyz, weight=weight)
    xyz[status != Status.FOUND] = np.nan
    before, after = (np.where((later[s] >= 0)[:, None], xyz[later[s]], np.nan) for s in (-1, 1))
    return _Path(xyz, (after - before) / 2.0, later)


@dataclass(frozen=True)
class _Camera:
    """The detections of a camera and its lens."""

    m: Array
    unit: Array
    landmark: Index
    focal: float
    radial: Array

    def offset(self, path: _Path, pose: tuple[Array, Array] | None, *, suspect: bool) -> Offset | None:
        """The offset from the given pose; if that pose is suspect, from the pose of the best tried offset."""
        whole = 0.0
        if suspect:
            every = np.arange(-FARTHEST, FARTHEST + _TRIED, _TRIED).tolist()
            tried = {s: self._resected(path.moved(s)[0]) for s in every}
            count = {s: -1 if one is None else one[2] for s, one in tried.items()}
            best = max(count, key=lambda s: (count[s], -abs(s)))
            if count[best] <= _MORE * max(count[0.0], 0):
                best = 0.0
            one = tried[best]
            if one is None or one[2] < max(LEAST, 0.5 * len(self.m)):
                return None
            whole, pose = best, (one[0], one[1])
        if pose is None:
            return None
        xyz, velocity = path.moved(whole)
        found = self._fitted(xyz[self.landmark], velocity[self.landmark], *pose)
        if found is None:
            return None
        rest, deviation, speed = found
        return Offset(whole + rest, deviation, speed * abs(whole + rest))

    def _resected(self, xyz: Array) -> tuple[Array, Array, int] | None:
        X = xyz[self.landmark]
        there = np.isfinite(X).all(axis=1)
        if np.count_nonzero(there) < LEAST:
            return None
        unit = float(self.unit.mean())
        camera = pycolmap.Camera(model="RADIAL", width=1, height=1, params=[unit * self.focal, 0.0, 0.0, *self.radial])
        options = pycolmap.AbsolutePoseEstimationOptions()
        options.ransac.max_error = _NEAR_PIXELS
        options.ransac.random_seed = 0
        options.ransac.max_num_trials = 300
        pose = pycolmap.estimate_and_refine_absolute_pose(unit * self.m[there], X[there], camera, options)
        if pose is None:
            return None
        matrix = pose["cam_from_world"].matrix()
        return matrix[:, :3], matrix[:, 3], int(pose["num_inliers"])

    def _fitted(self, X: Array, V: Array, R: Array, t: Array) -> tuple[float, float, float] | None:
        """The offset in addition to that of X, its standard deviation, and the median speed in the image in pixels a
        frame."""
        there = np.isfinite(X).all(axis=1) & np.isfinite(V).all(axis=1)
        if np.count_nonzero(there) < LEAST:
            return None
        m, unit = self.m[there], self.unit[there]
        x, v = X[there] @ R.T + t, V[there] @ R.T
        late, J, r, weight = 0.0, np.empty((0, 7)), np.empty(0), np.empty(0)
        for _ in range(_STEPS):
            now = x + late * v
            if not (now[:, 2] > 0.0).all():
                front = now[:, 2] > 0.0
                if np.count_nonzero(front) < LEAST:
                    return None
                m, unit, x, v, now = m[front], unit[front], x[front], v[front], now[front]
            p = now[:, :2] / now[:, 2:]
            n = np.sum(p**2, axis=1)
            gain = self.focal * (1.0 + self.radial[0] * n + self.radial[1] * n**2)
            error = unit * (gain[:, None] * p - m)
            slope = 2.0 * self.focal * (self.radial[0] + 2.0 * self.radial[1] * n)
            D = gain[:, None, None] * np.eye(2) + slope[:, None, None] * p[:, :, None] * p[:, None, :]
            A = unit[:, :, None] * (D @ np.concatenate([np.tile(np.eye(2), (len(p), 1, 1)), -p[:, :, None]], axis=2))
            A /= now[:, 2, None, None]
            turn = np.cross(now[:, None, :], A)
            J = np.concatenate([turn, A, (A @ v[:, :, None])], axis=2).reshape(-1, 7)
            r = error.reshape(-1)
            weight = np.repeat(Cauchy(INLIER_PIXELS).weights(np.sum(error**2, axis=1)), 2)
            H = J.T @ (weight[:, None] * J)
            if np.linalg.cond(H / np.sqrt(np.outer(np.diag(H), np.diag(H)) + 1e-300)) > 1e12:
                return None
            step = -np.linalg.solve(H, J.T @ (weight * r))
            spin = pycolmap.Rotation3d(step[:3]).matrix()
            x, v = x @ spin.T + step[3:6], v @ spin.T
            late += float(step[6])
        fits = weight > 0.5
        if np.count_nonzero(fits) < 2 * LEAST:
            return None
        variance = float(np.sum(weight * r**2) / max(np.sum(weight) - 7, 1.0))
        covariance = np.linalg.inv(J.T @ (weight[:, None] * J))
        speed = float(np.median(np.linalg.norm(J[:, 6].reshape(-1, 2), axis=1)))
        return late, float(np.sqrt(variance * covariance[6, 6])), speed
