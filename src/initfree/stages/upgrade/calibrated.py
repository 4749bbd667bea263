"""The upgrade with known focal lengths, and the search for one where they are unknown."""

from dataclasses import replace
from itertools import count

import numpy as np

from initfree.data.tracks import Array, Tracks
from initfree.stages.upgrade.dual_quadric import (
    CALIBRATED,
    REWEIGHTED,
    DualQuadric,
    reweighted,
    solve_dual_quadric,
    whitened,
)
from initfree.stages.upgrade.focal_search import misfit, misfits
from initfree.stages.upgrade.metric import Projective, Upgraded, metric_from_quadric
from initfree.stages.upgrade.refined import refine_quadric

_REFINED = 3
"""local minima of the search that are refined, one focal length a camera"""
_ROUGHLY = 1e-4
"""share of the cost by which their last step lowers it: an adjustment goes on from there"""
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
    found = misfits(_thinned(scene), _FOCALS)
    minima = [k for k in range(len(found)) if found[k] == min(found[max(k - 3, 0) : k + 4])]
    return [float(_FOCALS[k]) for k in sorted(minima, key=lambda k: found[k])[:_REFINED]]


def _thinned(scene: Projective) -> Projective:
    """Some landmarks of every camera: enough to decide on which side of the cameras they lie."""
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
    Q, focal = refine_quadric(scene.P, quadric.Q, np.full(len(scene.P), f), _ROUGHLY)
    return metric_from_quadric(scene, Q, focal, quadric.singular_values)


def _misfit(metric: Upgraded) -> float:
    return float(misfit(metric.quadric_residual, metric.positive_depths))


def calibrated_quadric(P: Array) -> DualQuadric:
    """Ω* of calibrated cameras, whitened, weights as in `reweighted`."""
    P, G = whitened(P)
    rounds = count()
    quadric = solve_dual_quadric(
        P, CALIBRATED, lambda omega, residual: reweighted(next(rounds), omega, residual), REWEIGHTED
    )  # fmt: skip
    return DualQuadric(G @ quadric.Q, quadric.singular_values)
