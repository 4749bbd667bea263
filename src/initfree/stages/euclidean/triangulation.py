"""All landmarks anew, for fixed metric cameras, robustly: the best of several starts for each."""

from enum import IntEnum

import numpy as np

from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.engine import threads
from initfree.engine.kernels import damp, kernel, unwhitened, whitened, whitening
from initfree.engine.vectors import room
from initfree.stages.euclidean.kernels import WORST, in_camera, residual

MAX_PAIRS = 15
"""Pairs of rays tried for a landmark: all of them up to six observations."""
_MOST = MAX_PAIRS + 4
"""Starts: with these the current position, the point closest to all rays, two far points."""
_REFINED = 3
"""Best starts that are refined."""
_STEPS, _LAST_STEPS = np.int64(6), np.int64(20)
_ZERO, _ONE = np.int64(0), np.int64(1)
"""NumPy's numbers and not Python's, which Numba takes for literals: it would compile a callee once for each value"""
_TOLERANCE = 1e-8
"""Share of the cost by which a step must lower it for another one."""
_UNDAMPED = 1e-12
"""Least damping of a step: rounding must not move a landmark along rays that are parallel."""
_LARGE = 1e150
"""Products of numbers are kept below, so that another factor does not overflow."""
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
    problem: Problem,
    reconstruction: Reconstruction,
    xyz: Array | None = None,
    *,
    weight: Array | None = None,
    scale: float = 4.0,
    cheirality: bool = True,
) -> tuple[Array, Index]:
    """Landmarks (landmarks, 3) under a reconstruction's cameras that minimise sum ρ(w |r|²), ρ the Cauchy loss of `scale`
    pixels, and the `Status` of each.

    Starts: the current position `xyz`; the point closest to all rays; the points closest to two rays (each ray with the
    one at the widest angle to it; all pairs in short tracks), which one wrong match cannot all spoil; two far points on
    the mean ray. The three of lowest cost, and the current position, are refined by damped Gauss-Newton steps. Where the
    current position, refined, fits, in front of all its cameras, it is the only start: no other has a basin of its own that
    is lower.
    An observation behind its camera has the worst error there is, so positive depths win where they can; without
    `cheirality` it projects like any other.
    """
    tracks, m, cameras = problem.tracks, problem.m, reconstruction.cameras
    R, _, focal, radial = cameras
    weight = np.ones(tracks.observations) if weight is None else np.asarray(weight, dtype=np.float64)
    current = np.full((tracks.landmarks, 3), np.nan) if xyz is None else xyz
    rays = np.empty((tracks.observations, 3))
    threads.run(_rays, tracks.observations, tracks.cam, m, R, focal, radial, rays)
    result = np.array(current, dtype=np.float64, order="C")
    status = np.empty(tracks.landmarks, dtype=np.int64)
    image, centres = (m, problem.unit, cheirality), reconstruction.centres
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


@kernel(inline="always")
def _add_log(total, product, value):
    """log(1 + value) more in total + log(1 + product): a multiplication and no logarithm, small values as exact as large."""
    product += value * (1.0 + product)
    if product > _LARGE:
        total += np.log1p(product)
        product = 0.0
    return total, product


@kernel(inline="always")
def _is_finite(starts, n):
    """One by one: of a sum, which may be reordered, the compiler takes it for granted."""
    return np.isfinite(starts[n, 0]) and np.isfinite(starts[n, 1]) and np.isfinite(starts[n, 2])


@kernel(strict=True)
def _cost(start, stop, cam, cameras, image, weight, scale, X):
    """1/2 c² sum log(1 + w |r|²/c²) of one landmark at X."""
    R, t, focal, radial = cameras
    m, unit, cheirality = image
    total, product = 0.0, 0.0
    c2 = scale * scale
    for a in range(start, stop):
        if weight[a] == 0.0:
            continue
        k = cam[a]
        x, y, z = in_camera(R, t, k, X[0], X[1], X[2])
        p0, p1 = unit[a, 0], unit[a, 1]
        valid, r0, r1 = residual(x, y, z, focal[k], radial[k, 0], radial[k, 1], m[a, 0], m[a, 1], p0, p1, cheirality)
        squared = r0 * r0 + r1 * r1 if valid else 0.5 * WORST * WORST * (p0 * p0 + p1 * p1)
        total, product = _add_log(total, product, weight[a] * squared / c2)
    return 0.5 * c2 * (total + np.log1p(product))


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
def _gauss_newton(start, stop, cam, cameras, image, weight, scale, steps, X, i):
    """Damped Gauss-Newton steps V δ = -h on a landmark X[i] with Cauchy weights; its cost, how many of its observations have
    the worst error, and whether more steps would change anything.

    With B = dr/dX, ρ' = 1/(1 + w |r|²/c²): V = sum w ρ' B'B, h = sum w ρ' B'r, over observations with a derivative. They are
    found with the cost of a step for the next one: one pass over the observations a step. All stays in registers.
    """
    R, t, focal, radial = cameras
    m, unit, cheirality = image
    c2 = scale * scale
    over = 1.0 / c2
    damping = 1e-6
    cost, worst, done = np.inf, 0, False
    v00 = v10 = v11 = v20 = v21 = v22 = h0 = h1 = h2 = 0.0
    X0, X1, X2 = X[i, 0], X[i, 1], X[i, 2]
    Y0, Y1, Y2 = X0, X1, X2
    for step in range(steps + 1):
        total, product, behind = 0.0, 0.0, 0
        t00 = t10 = t11 = t20 = t21 = t22 = g0 = g1 = g2 = 0.0
        for a in range(start, stop):
            w = weight[a]
            if w == 0.0:
                continue
            k = cam[a]
            x, y, z = in_camera(R, t, k, Y0, Y1, Y2)
            f, k1, k2 = focal[k], radial[k, 0], radial[k, 1]
            p0, p1 = unit[a, 0], unit[a, 1]
            valid, r0, r1 = residual(x, y, z, f, k1, k2, m[a, 0], m[a, 1], p0, p1, cheirality)
            if not valid:
                total, product = _add_log(total, product, w * over * 0.5 * WORST * WORST * (p0 * p0 + p1 * p1))
                behind += 1
                continue
            squared = w * over * (r0 * r0 + r1 * r1)
            total, product = _add_log(total, product, squared)
            inverse = 1.0 / z
            u, v = x * inverse, y * inverse
            n = u * u + v * v
            d, slope = 1.0 + n * (k1 + n * k2), 2.0 * (k1 + 2.0 * n * k2)
            # dr/dx as in `kernels.linearise`, then dr/dX = dr/dx R.
            s0, s1 = p0 * f * inverse, p1 * f * inverse
            a0, a1 = s0 * (slope * u * u + d), s0 * slope * u * v
            b0, b1 = s1 * slope * u * v, s1 * (slope * v * v + d)
            a2, b2 = -(u * a0 + v * a1), -(u * b0 + v * b1)
            c0 = a0 * R[k, 0, 0] + a1 * R[k, 1, 0] + a2 * R[k, 2, 0]
            c1 = a0 * R[k, 0, 1] + a1 * R[k, 1, 1] + a2 * R[k, 2, 1]
            c3 = a0 * R[k, 0, 2] + a1 * R[k, 1, 2] + a2 * R[k, 2, 2]
            d0 = b0 * R[k, 0, 0] + b1 * R[k, 1, 0] + b2 * R[k, 2, 0]
            d1 = b0 * R[k, 0, 1] + b1 * R[k, 1, 1] + b2 * R[k, 2, 1]
            d3 = b0 * R[k, 0, 2] + b1 * R[k, 1, 2] + b2 * R[k, 2, 2]
            w /= 1.0 + squared
            t00 += w * (c0 * c0 + d0 * d0)
            t10 += w * (c1 * c0 + d1 * d0)
            t11 += w * (c1 * c1 + d1 * d1)
            t20 += w * (c3 * c0 + d3 * d0)
            t21 += w * (c3 * c1 + d3 * d1)
            t22 += w * (c3 * c3 + d3 * d3)
            g0 += w * (c0 * r0 + d0 * r1)
            g1 += w * (c1 * r0 + d1 * r1)
            g2 += w * (c3 * r0 + d3 * r1)
        trial = 0.5 * c2 * (total + np.log1p(product))
        if step == 0 or trial < cost:
            gained = cost - trial
            cost, worst = trial, behind
            X0, X1, X2 = Y0, Y1, Y2
            v00, v10, v11, v20, v21, v22, h0, h1, h2 = t00, t10, t11, t20, t21, t22, g0, g1, g2
            if step > 0:
                damping = max(0.1 * damping, _UNDAMPED)
            done = gained <= _TOLERANCE * cost
        else:
            damping *= 100.0
            done = damping > 1.0
        if done:
            break
        # V + damping I by LDL'.
        shift = damping * (v00 + v11 + v22) / 3.0
        p00 = v00 + shift
        l10, l20 = v10 / p00, v20 / p00
        p11 = v11 + shift - l10 * v10
        w21 = v21 - l20 * v10
        l21 = w21 / p11
        p22 = v22 + shift - l20 * v20 - l21 * w21
        done = not (p00 > 0.0 and p11 > 0.0 and p22 > 0.0)
        if done:
            break
        y1 = h1 - l10 * h0
        y2 = (h2 - l20 * h0 - l21 * y1) / p22
        y1 = y1 / p11 - l21 * y2
        Y0, Y1, Y2 = X0 - (h0 / p00 - l10 * y1 - l20 * y2), X1 - y1, X2 - y2
    X[i, 0], X[i, 1], X[i, 2] = X0, X1, X2
    return cost, worst, done


@kernel()
def _triangulate(begin, end, ptr, cam, cameras, image, weight, scale, rays, centres, xyz, status):
    V, M, h = room((3, 3)), room((3, 3)), room((3,))
    starts, costs = room((_MOST, 3)), room((_MOST,))
    closely = 0.5 * scale * scale * np.log1p((_CLOSE / scale) ** 2) if scale <= _NARROW else -1.0
    for j in range(begin, end):
        start, stop = ptr[j], ptr[j + 1]
        count = _ZERO
        for a in range(start, stop):
            count += weight[a] > 0.0
        if count < 2:
            status[j] = 2
            continue
        starts[0, 0], starts[0, 1], starts[0, 2] = xyz[j, 0], xyz[j, 1], xyz[j, 2]
        best = _ZERO
        lowest = np.inf
        behind = count
        fits = done = False
        if _is_finite(starts, _ZERO):
            lowest, behind, done = _gauss_newton(start, stop, cam, cameras, image, weight, scale, _STEPS, starts, _ZERO)
            fits = image[2] and lowest <= closely * count and behind == 0
        found = 1
        if not fits:
            _closest(rays, centres, cam, start, stop - 1, _ONE, weight, V, M, h, starts, _ONE)
            _far_points(start, stop, cam, rays, centres, weight, h, starts)
            found = 4 + _pairs(start, stop, cam, rays, centres, weight, count, V, M, h, starts)
        for n in range(1, found):
            costs[n] = _cost(start, stop, cam, cameras, image, weight, scale, starts[n])
            if not _is_finite(starts, n):
                costs[n] = np.inf
        for _ in range(min(_REFINED, found - 1)):
            n = _ONE
            for other in range(2, found):
                n = other if costs[other] < costs[n] else n
            if costs[n] == np.inf:
                break
            cost, worst, ended = _gauss_newton(start, stop, cam, cameras, image, weight, scale, _STEPS, starts, n)
            costs[n] = np.inf
            if cost < lowest:
                lowest, behind, done = cost, worst, ended
                best = n
        if lowest < np.inf:
            if not done:
                _, behind, _ = _gauss_newton(start, stop, cam, cameras, image, weight, scale, _LAST_STEPS, starts, best)
            xyz[j, 0], xyz[j, 1], xyz[j, 2] = starts[best, 0], starts[best, 1], starts[best, 2]
        status[j] = 1 if behind > 0 else 0


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
