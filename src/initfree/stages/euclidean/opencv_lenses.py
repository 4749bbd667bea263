"""COLMAP's models of OpenCV's family in closed form, all observations at once.

With u = x/z, v = y/z, n = u² + v² and the gain g = (1 + k1 n + k2 n² + k3 n³)/(1 + k4 n + k5 n² + k6 n³),

    û = g u + 2 p1 u v + p2 (n + 2 u²),   v̂ = g v + 2 p2 u v + p1 (n + 2 v²),   pixel (fx û + cx, fy v̂ + cy).

Every model of the family is one of twelve numbers (fx fy cx cy k1 k2 p1 p2 k3 k4 k5 k6), those that it lacks zero, or with
one focal length for both. Other models go through pycolmap and differences (`lenses.Projection`).
"""

import numpy as np

from initfree.data.tracks import Array, Index
from initfree.engine import threads
from initfree.engine.kernels import kernel
from initfree.engine.vectors import room
from initfree.stages.euclidean.lenses import WORST, Lenses, Projection

_NUMBERS = 12
_BOTH = _NUMBERS
"""a focal length that is both fx and fy"""
PLACES: dict[str, tuple[int, ...]] = {
    "SIMPLE_PINHOLE": (_BOTH, 2, 3),
    "PINHOLE": (0, 1, 2, 3),
    "SIMPLE_RADIAL": (_BOTH, 2, 3, 4),
    "RADIAL": (_BOTH, 2, 3, 4, 5),
    "OPENCV": (0, 1, 2, 3, 4, 5, 6, 7),
    "FULL_OPENCV": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
}
"""which of the twelve each parameter of a model is"""


@kernel(inline="always")
def _projected(a, x, theta, g):
    """Pixel of observation a, or NaN at or behind the camera's plane; and what its derivatives need."""
    z = x[a, 2]
    if not z > 0.0:
        return np.nan, np.nan, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    u, v = x[a, 0] / z, x[a, 1] / z
    n = u * u + v * v
    over = 1.0 / (1.0 + n * (theta[g, 9] + n * (theta[g, 10] + n * theta[g, 11])))
    gain = (1.0 + n * (theta[g, 4] + n * (theta[g, 5] + n * theta[g, 8]))) * over
    p1, p2 = theta[g, 6], theta[g, 7]
    du = gain * u + 2.0 * p1 * u * v + p2 * (n + 2.0 * u * u)
    dv = gain * v + 2.0 * p2 * u * v + p1 * (n + 2.0 * v * v)
    return theta[g, 0] * du + theta[g, 2], theta[g, 1] * dv + theta[g, 3], u, v, n, over, gain, du, dv, z


@kernel()
def squared_residuals(begin, end, x, lens, theta, keypoints, worst, squared):
    """|r|² of observations begin ... end; the worst error there is where a projection has none or a larger one."""
    for a in range(begin, end):
        px, py, _, _, _, _, _, _, _, _ = _projected(a, x, theta, lens[a])
        r0, r1 = px - keypoints[a, 0], py - keypoints[a, 1]
        value = r0 * r0 + r1 * r1
        squared[a] = value if value < worst[a] * worst[a] else worst[a] * worst[a]


@kernel()
def linearised(begin, end, x, lens, theta, free, keypoints, worst, residual, A, T):
    """r, dr/dx and dr/dθ; all zero where the projection is not valid, so that such an observation does not pull."""
    by = room((2, 13))
    for a in range(begin, end):
        g = lens[a]
        px, py, u, v, n, over, gain, du, dv, z = _projected(a, x, theta, g)
        r0, r1 = px - keypoints[a, 0], py - keypoints[a, 1]
        if not r0 * r0 + r1 * r1 < worst[a] * worst[a]:
            residual[a] = 0.0
            A[a] = 0.0
            T[a] = 0.0
            continue
        residual[a, 0], residual[a, 1] = r0, r1
        fx, fy, p1, p2 = theta[g, 0], theta[g, 1], theta[g, 6], theta[g, 7]
        above = theta[g, 4] + n * (2.0 * theta[g, 5] + 3.0 * n * theta[g, 8])
        below = theta[g, 9] + n * (2.0 * theta[g, 10] + 3.0 * n * theta[g, 11])
        slope = 2.0 * (above - gain * below) * over  # dg/du = slope u
        uu = fx * (gain + slope * u * u + 2.0 * p1 * v + 6.0 * p2 * u)
        uv = slope * u * v + 2.0 * p1 * u + 2.0 * p2 * v
        vv = fy * (gain + slope * v * v + 2.0 * p2 * u + 6.0 * p1 * v)
        A[a, 0, 0], A[a, 0, 1], A[a, 0, 2] = uu / z, fx * uv / z, -(uu * u + fx * uv * v) / z
        A[a, 1, 0], A[a, 1, 1], A[a, 1, 2] = fy * uv / z, vv / z, -(fy * uv * u + vv * v) / z
        by[:, :] = 0.0
        by[0, 0], by[1, 1], by[0, 2], by[1, 3], by[0, 12], by[1, 12] = du, dv, 1.0, 1.0, du, dv
        power = n * over
        for k in (4, 5, 8):
            by[0, k], by[1, k] = fx * u * power, fy * v * power
            by[0, k + (5 if k < 8 else 3)], by[1, k + (5 if k < 8 else 3)] = -gain * by[0, k], -gain * by[1, k]
            power *= n
        by[0, 6], by[1, 6] = fx * 2.0 * u * v, fy * (n + 2.0 * v * v)
        by[0, 7], by[1, 7] = fx * (n + 2.0 * u * u), fy * 2.0 * u * v
        for m in range(T.shape[2]):
            k = free[g, m]
            T[a, 0, m] = by[0, k] if k >= 0 else 0.0
            T[a, 1, m] = by[1, k] if k >= 0 else 0.0


class OpenCVProjection:
    """`lenses.Projection` for lenses of the family."""

    def __init__(self, lenses: Lenses, cam: Index, keypoints: Array) -> None:
        """`cam` (observations,) is the image of each, `keypoints` (observations, 2) what it shows in pixels."""
        self._lens, self._keypoints = lenses.lens[cam], np.ascontiguousarray(keypoints, dtype=np.float64)
        self._worst = WORST * np.array([camera.mean_focal_length() for camera in lenses.cameras])[self._lens]

    def squared_residuals(self, lenses: Lenses, x: Array) -> Array:
        """|r|² of every observation in pixels²; x (observations, 3) in the camera's frame."""
        squared = np.empty(len(x))
        model = x, self._lens, _twelve(lenses), self._keypoints, self._worst
        threads.run(squared_residuals, len(x), *model, squared)
        return squared

    def linearised(self, lenses: Lenses, x: Array) -> tuple[Array, Array, Array]:
        """Residuals r (n, 2), dr/dx (n, 2, 3) and dr/dθ (n, 2, most numbers of a lens); no derivative where not valid."""
        most = max(int(lenses.numbers.max(initial=0)), 1)
        free = np.full((len(lenses.cameras), most), -1, dtype=np.int64)
        for g, (camera, own) in enumerate(zip(lenses.cameras, lenses.free, strict=True)):
            free[g, : len(own)] = [PLACES[camera.model_name][k] for k in own]
        found = np.empty((len(x), 2)), np.empty((len(x), 2, 3)), np.empty((len(x), 2, most))
        model = x, self._lens, _twelve(lenses), free, self._keypoints, self._worst
        threads.run(linearised, len(x), *model, *found)
        return found


def _twelve(lenses: Lenses) -> Array:
    rows = [[0.0] * _NUMBERS for _ in lenses.cameras]  # lists: an array takes longer to fill number by number
    for row, camera in zip(rows, lenses.cameras, strict=True):
        for value, place in zip(camera.params.tolist(), PLACES[camera.model_name], strict=True):
            for k in (0, 1) if place == _BOTH else (place,):
                row[k] = value
    return np.array(rows)


def projection(lenses: Lenses, cam: Index, keypoints: Array) -> OpenCVProjection | Projection:
    """In closed form where every lens has one."""
    closed = all(camera.model_name in PLACES for camera in lenses.cameras)
    return (OpenCVProjection if closed else Projection)(lenses, cam, keypoints)
