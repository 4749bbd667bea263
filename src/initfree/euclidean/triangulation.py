"""All landmarks anew, for fixed metric cameras, robustly: the best of several starts for each."""

from enum import IntEnum

import numpy as np

from initfree.engine import threads
from initfree.engine.kernels import damp, kernel, unwhitened, whitened, whitening
from initfree.euclidean.kernels import PARAMETERS, WORST, accumulate, in_camera, linearise, residual
from initfree.tracks import Array, Index, Tracks

MAX_PAIRS = 15
"""Pairs of rays tried for a landmark: all of them up to six observations."""
_REFINED = 3
"""Best starts that are refined."""
_STEPS, _LAST_STEPS = np.int64(6), np.int64(20)
_ZERO, _ONE = np.int64(0), np.int64(1)
"""NumPy's numbers and not Python's, which Numba takes for literals: it would compile a callee once for each value"""
_TOLERANCE = 1e-10
_PARALLEL = 1e-14
"""Damping of the point closest to rays, so that parallel ones have a far point and not a division by zero."""
_CLOSE, _NARROW = 1.0, 10.0
"""pixels: the error whose cost a current position that fits has at most in the mean of its observations, and the widest loss
that may say so"""
_FAR = (20.0, 1000.0)
"""Far starts, in units of the widest baseline of the track."""


class Status(IntEnum):
    """What became of a landmark."""

    FOUND = 0
    """in front of all its cameras"""
    BEHIND = 1
    """no start had a lower cost in front of all its cameras: a wrong match, or a wrong camera"""
    UNSEEN = 2
    """fewer than two observations; left where it was"""


def triangulate(
    tracks: Tracks,
    m: Array,
    unit: Array,
    R: Array,
    t: Array,
    focal: Array,
    radial: Array,
    xyz: Array | None = None,
    *,
    weight: Array | None = None,
    scale: float = 4.0,
    cheirality: bool = True,
) -> tuple[Array, Index]:
    """Landmarks (landmarks, 3) that minimise sum ρ(w |r|²), ρ the Cauchy loss of `scale` pixels, and the `Status` of each.

    Starts: the current position `xyz`; the point closest to all rays; the points closest to two rays (each ray with the
    one at the widest angle to it; all pairs in short tracks), which one wrong match cannot all spoil; two far points on
    the mean ray. The three of lowest cost, and the current position, are refined by damped Gauss-Newton steps. Where the
    current position, refined, fits, in front of all its cameras, it is the only start: no other has a basin of its own that
    is lower.
    An observation behind its camera has the worst error there is, so positive depths win where they can; without
    `cheirality` it projects like any other.
    """
    weight = np.ones(tracks.observations) if weight is None else np.asarray(weight, dtype=np.float64)
    current = np.full((tracks.landmarks, 3), np.nan) if xyz is None else xyz
    rays = np.empty((tracks.observations, 3))
    threads.run(_rays, tracks.observations, tracks.cam, m, R, focal, radial, rays)
    centres = -(R.transpose(0, 2, 1) @ t[:, :, None])[:, :, 0]
    result = np.array(current, dtype=np.float64, order="C")
    status = np.empty(tracks.landmarks, dtype=np.int64)
    cameras, image = (R, t, focal, radial), (m, unit, cheirality)
    arguments = (tracks.ptr, tracks.cam, cameras, image, weight, scale, rays, centres, result, status)
    threads.run(_triangulate, tracks.ptr, *arguments)
    return result, status


@kernel()
def _rays(begin, end, cam, m, R, focal, radial, rays):
    """Unit vectors in the world: undistort by Newton on the radius, ρ (1 + k1 ρ² + k2 ρ⁴) = |m|/f, and rotate."""
    for a in range(begin, end):
        k = cam[a]
        x, y = m[a, 0] / focal[k], m[a, 1] / focal[k]
        distorted = np.sqrt(x * x + y * y)
        rho = distorted
        k1, k2 = radial[k, 0], radial[k, 1]
        if k1 != 0.0 or k2 != 0.0:
            for _ in range(10):
                n = rho * rho
                slope = 1.0 + n * (3.0 * k1 + n * 5.0 * k2)
                # Beyond the fold of the polynomial there is no ray; its edge is the closest.
                if slope < 0.1:
                    rho *= 0.9
                    continue
                rho = max(rho - (rho * (1.0 + n * (k1 + n * k2)) - distorted) / slope, 0.0)
            if distorted > 0.0:
                x *= rho / distorted
                y *= rho / distorted
        norm = 1.0 / np.sqrt(x * x + y * y + 1.0)
        for e in range(3):
            rays[a, e] = (R[k, 0, e] * x + R[k, 1, e] * y + R[k, 2, e]) * norm


@kernel(strict=True)
def _cost(start, stop, cam, cameras, image, weight, scale, X, n):
    """1/2 c² sum log(1 + w |r|²/c²) of one landmark at X[n], and how many of its observations have the worst error."""
    R, t, focal, radial = cameras
    m, unit, cheirality = image
    total = 0.0
    worst = 0
    c2 = scale * scale
    for a in range(start, stop):
        if weight[a] == 0.0:
            continue
        k = cam[a]
        x, y, z = in_camera(R, t, k, X[n, 0], X[n, 1], X[n, 2])
        p0, p1 = unit[a, 0], unit[a, 1]
        valid, r0, r1 = residual(x, y, z, focal[k], radial[k, 0], radial[k, 1], m[a, 0], m[a, 1], p0, p1, cheirality)
        squared = r0 * r0 + r1 * r1
        if not valid:
            squared = 0.5 * WORST * WORST * (p0 * p0 + p1 * p1)
            worst += 1
        total += np.log1p(weight[a] * squared / c2)
    return 0.5 * c2 * total, worst


@kernel(strict=True)
def _closest(rays, centres, cam, first, last, stride, weight, V, M, h, X, n):
    """The point with the least sum of squared distances to the rays first, first + stride, ... last."""
    V[:, :] = 0.0
    h[:] = 0.0
    for a in range(first, last + 1, stride):
        if weight[a] == 0.0:
            continue
        k = cam[a]
        along = rays[a, 0] * centres[k, 0] + rays[a, 1] * centres[k, 1] + rays[a, 2] * centres[k, 2]
        for e in range(3):
            h[e] += centres[k, e] - along * rays[a, e]
            V[e, e] += 1.0
            for f in range(e + 1):
                V[e, f] -= rays[a, e] * rays[a, f]
    damp(V, _PARALLEL)
    whitening(V, M)
    u0, u1, u2 = whitened(M, h[0], h[1], h[2])
    X[n, 0], X[n, 1], X[n, 2] = unwhitened(M, u0, u1, u2)


@kernel(strict=True)
def _gauss_newton(start, stop, cam, cameras, image, weight, scale, steps, cost, scratch, X, n):
    """Damped Gauss-Newton steps on landmark X[n] with Cauchy weights; returns its cost."""
    V, M, J, B, r, h, Y = scratch
    damping = 1e-6
    c2 = scale * scale
    for _ in range(steps):
        V[:, :] = 0.0
        h[:] = 0.0
        for a in range(start, stop):
            if weight[a] == 0.0:
                continue
            linearise(a, cam[a], n, cameras, X, image, np.sqrt(weight[a]), 0, J, B, r)
            root = np.sqrt(1.0 / (1.0 + (r[0, 0] * r[0, 0] + r[0, 1] * r[0, 1]) / c2))
            for row in range(2):
                r[0, row] *= root
                for e in range(3):
                    B[0, row, e] *= root
            accumulate(B, r, 0, V, h)
        damp(V, damping)
        whitening(V, M)
        u0, u1, u2 = whitened(M, h[0], h[1], h[2])
        d0, d1, d2 = unwhitened(M, u0, u1, u2)
        Y[0, 0], Y[0, 1], Y[0, 2] = X[n, 0] - d0, X[n, 1] - d1, X[n, 2] - d2
        trial, _ = _cost(start, stop, cam, cameras, image, weight, scale, Y, _ZERO)
        if trial < cost:
            gained = cost - trial
            for e in range(3):
                X[n, e] = Y[0, e]
            cost = trial
            damping *= 0.1
            if gained <= _TOLERANCE * cost:
                break
        else:
            damping *= 100.0
            if damping > 1.0:
                break
    return cost


@kernel()
def _triangulate(begin, end, ptr, cam, cameras, image, weight, scale, rays, centres, xyz, status):
    V = np.empty((3, 3))
    M = np.empty((3, 3))
    h = np.empty(3)
    scratch = (V, M, np.empty((1, 2, PARAMETERS)), np.empty((1, 2, 3)), np.empty((1, 2)), h, np.empty((1, 3)))
    starts = np.empty((MAX_PAIRS + 4, 3))
    costs = np.empty(MAX_PAIRS + 4)
    closely = 0.5 * scale * scale * np.log1p((_CLOSE / scale) ** 2) if scale <= _NARROW else -1.0
    for j in range(begin, end):
        start, stop = ptr[j], ptr[j + 1]
        count = _ZERO
        for a in range(start, stop):
            count += weight[a] > 0.0
        if count < 2:
            status[j] = 2
            continue
        for e in range(3):
            starts[0, e] = xyz[j, e]
        best = _ZERO
        lowest = np.inf
        fits = False
        if np.isfinite(starts[0, 0] + starts[0, 1] + starts[0, 2]):
            cost, _ = _cost(start, stop, cam, cameras, image, weight, scale, starts, _ZERO)
            lowest = _gauss_newton(start, stop, cam, cameras, image, weight, scale, _STEPS, cost, scratch, starts, _ZERO)
            if image[2] and lowest <= closely * count:
                _, behind = _cost(start, stop, cam, cameras, image, weight, scale, starts, _ZERO)
                fits = behind == 0
        found = 1
        if not fits:
            _closest(rays, centres, cam, start, stop - 1, _ONE, weight, V, M, h, starts, _ONE)
            _far_points(start, stop, cam, rays, centres, weight, h, starts)
            found = 4 + _pairs(start, stop, cam, rays, centres, weight, count, V, M, h, starts)
        for n in range(1, found):
            costs[n], _ = _cost(start, stop, cam, cameras, image, weight, scale, starts, n)
            if not np.isfinite(starts[n, 0] + starts[n, 1] + starts[n, 2]):
                costs[n] = np.inf
        for _ in range(min(_REFINED, found - 1)):
            n = _ONE
            for other in range(2, found):
                n = other if costs[other] < costs[n] else n
            if costs[n] == np.inf:
                break
            cost = _gauss_newton(start, stop, cam, cameras, image, weight, scale, _STEPS, costs[n], scratch, starts, n)
            costs[n] = np.inf
            if cost < lowest:
                lowest = cost
                best = n
        if lowest < np.inf:
            _gauss_newton(start, stop, cam, cameras, image, weight, scale, _LAST_STEPS, lowest, scratch, starts, best)
            for e in range(3):
                xyz[j, e] = starts[best, e]
        _, worst = _cost(start, stop, cam, cameras, image, weight, scale, xyz, j)
        status[j] = 1 if worst > 0 else 0


@kernel(strict=True)
def _far_points(start, stop, cam, rays, centres, weight, mean, starts):
    """starts[2], starts[3]: far along the mean ray, from the mean centre."""
    starts[2:4] = 0.0
    mean[:] = 0.0
    total = 0.0
    widest = 0.0
    first = -1
    for a in range(start, stop):
        if weight[a] == 0.0:
            continue
        first = a if first < 0 else first
        total += 1.0
        distance = 0.0
        for e in range(3):
            mean[e] += rays[a, e]
            starts[2, e] += centres[cam[a], e]
            distance += (centres[cam[a], e] - centres[cam[first], e]) ** 2
        widest = max(widest, np.sqrt(distance))
    for e in range(3):
        starts[2, e] /= total
        starts[3, e] = starts[2, e] + _FAR[1] * widest * mean[e] / total
        starts[2, e] += _FAR[0] * widest * mean[e] / total


@kernel(strict=True)
def _pairs(start, stop, cam, rays, centres, weight, count, V, M, h, starts):
    """starts[4:]: the points closest to two rays; returns their number."""
    found = 0
    everything = count * (count - 1) // 2 <= MAX_PAIRS
    stride = max(1, (stop - start) // MAX_PAIRS)
    for a in range(start, stop, 1 if everything else stride):
        if weight[a] == 0.0:
            continue
        partner = -1
        widest = 2.0
        for b in range(start, stop):
            if weight[b] == 0.0 or b == a:
                continue
            if everything:
                if b > a:
                    _closest(rays, centres, cam, a, b, b - a, weight, V, M, h, starts, 4 + found)
                    found += 1
                continue
            cosine = rays[a, 0] * rays[b, 0] + rays[a, 1] * rays[b, 1] + rays[a, 2] * rays[b, 2]
            if cosine < widest:
                widest = cosine
                partner = b
        if not everything and partner >= 0 and found < MAX_PAIRS:
            first, last = min(a, partner), max(a, partner)
            _closest(rays, centres, cam, first, last, last - first, weight, V, M, h, starts, 4 + found)
            found += 1
    return found
