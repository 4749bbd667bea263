"""The upgrade with known focal lengths, and the search for one where they are unknown."""

from dataclasses import replace

import numpy as np

from initfree.tracks import Array, Tracks
from initfree.upgrade.dual_quadric import (
    W00,
    W01,
    W02,
    W11,
    W12,
    W22,
    DualQuadric,
    solve_dual_quadric,
    whitened,
)
from initfree.upgrade.metric import Projective, Upgraded, metric_from_quadric
from initfree.upgrade.refined import refine_quadric

# ω_i ~ I, symmetric in the three axes.
_CONSTRAINTS = np.stack([W00 - W11, W00 - W22, W11 - W22, 2.0 * W01, 2.0 * W02, 2.0 * W12])
_L1_ROUNDS = 12
_CAUCHY_ROUNDS = 6
_REFINED = 3
"""local minima of the search that are refined, one focal length a camera"""
_SEEN = 50
"""landmarks of a camera, about, that the search looks at"""
_FOCALS = np.geomspace(0.3, 6.0, 60)
"""searched where unknown, in units of the largest observation: fields of view from 147 to 19 degrees"""


def calibrated(scene: Projective) -> Upgraded:
    """Known intrinsics: ω_i ~ I. Unknown: the shared focal length whose cameras come closest to that, then one each.

    A known focal length removes both defects of the linear forms: no degeneracy for cameras that look at one point.
    """
    if scene.calibrated:
        quadric = calibrated_quadric(scene.P)
        return metric_from_quadric(scene, quadric.Q, np.ones(len(scene.P)), quadric.singular_values)
    return min((_refined_from(scene, f) for f in _best_focals(scene)), key=_misfit)


def _best_focals(scene: Projective) -> list[float]:
    """Focal lengths in order of how metric the cameras become; neighbours of a better one are left out."""
    misfits = []
    scene = _thinned(scene)
    for f in _FOCALS:
        quadric = calibrated_quadric(scene.P / np.array([f, f, 1.0])[:, None])
        misfits.append(_misfit(metric_from_quadric(scene, quadric.Q, np.full(len(scene.P), f))))
    minima = [k for k in range(len(misfits)) if misfits[k] == min(misfits[max(k - 3, 0) : k + 4])]
    return [float(_FOCALS[k]) for k in sorted(minima, key=lambda k: misfits[k])[:_REFINED]]


def _thinned(scene: Projective) -> Projective:
    """Some landmarks of every camera: enough to tell on which side of the cameras they lie."""
    t = scene.tracks
    if t.observations <= _SEEN * t.cameras:
        return scene
    chosen = np.zeros(t.landmarks, dtype=bool)
    for k in range(t.cameras):
        seen = t.seen_by(k)
        chosen[t.landmark[seen[:: max(1, len(seen) // _SEEN)]]] = True
    length = np.diff(t.ptr)[chosen]
    tracks = Tracks(t.cam[chosen[t.landmark]], np.concatenate([[0], np.cumsum(length)]), t.cameras)
    return replace(scene, tracks=tracks, X=scene.X[chosen])


def _refined_from(scene: Projective, f: float) -> Upgraded:
    quadric = calibrated_quadric(scene.P / np.array([f, f, 1.0])[:, None])
    Q, focal = refine_quadric(scene.P, quadric.Q, np.full(len(scene.P), f))
    return metric_from_quadric(scene, Q, focal, quadric.singular_values)


def _misfit(metric: Upgraded) -> float:
    """Median dual-quadric residual, made worse by observations behind their cameras.

    The smallest singular value would not do: a focal length that makes all but a few cameras vanish scores zero.
    """
    return metric.quadric_residual / max(2.0 * metric.positive_depths - 1.0, 1e-3) ** 2


def calibrated_quadric(P: Array) -> DualQuadric:
    """Ω* of calibrated cameras: whitened, weights 1/trace(ω_i), Cauchy over cameras so that a bad one is ignored."""
    P, G = whitened(P)

    rounds = 0

    def reweight(omega: Array, residual: Array) -> Array:
        nonlocal rounds
        rounds += 1
        trace = np.abs(omega[:, [0, 3, 5]].sum(axis=1))
        weight = 1.0 / np.maximum(trace, 1e-3 * np.median(trace))
        relative = residual * weight
        if rounds <= _L1_ROUNDS:
            # Least absolute residuals first: from a start that a bad camera has spoilt, Cauchy would not recover.
            return weight / np.sqrt(np.maximum(relative, 1e-3 * float(np.median(relative)) + 1e-12))
        scale = max(3.0 * 1.4826 * float(np.median(relative)), 1e-12)
        return weight / np.sqrt(1.0 + (relative / scale) ** 2)

    quadric = solve_dual_quadric(P, _CONSTRAINTS, reweight, _L1_ROUNDS + _CAUCHY_ROUNDS)
    return DualQuadric(G @ quadric.Q, quadric.singular_values)
