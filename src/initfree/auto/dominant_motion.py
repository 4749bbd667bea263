"""Moving objects: tracks of a second motion bend the cameras towards a compromise that fits neither.

A wrong camera misses one observation of each of many tracks. A moving object is missed by all cameras, as whole tracks.
So tracks with more than a third of their observations missed are removed, the cameras are adjusted on the others, and all
tracks are classified again, until the classes no longer change. The weakest joint is still counted over all tracks,
because tracks across a wrong joint are missed as a whole too.

The removed tracks must form a motion, with cameras of its own. Under a wrong lens model, tracks near the edge of the
image are missed as well, and no motion explains them.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from initfree.auto.completion import joint_before
from initfree.auto.repair import repair_limits
from initfree.auto.search import Search
from initfree.auto.solution import Solution
from initfree.certificate import Certificate
from initfree.certificate.checks import CAMERA_PURITY, PURITY
from initfree.certificate.evidence import fitting_radius
from initfree.data.problem import Problem, connected_part, restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.engine.compilation import clock
from initfree.stages.euclidean import adjust
from initfree.stages.euclidean.residuals import INLIER_PIXELS, residuals
from initfree.stages.euclidean.triangulation import triangulate

ROUNDS = 12
MOST_MISSED = 0.34
"""share of a track's observations that may miss: one wrong match of three"""
LEAST_TRACKS, LEAST_OF_CAMERA = 0.6, 0.4
"""share of all tracks, and of every camera's observations, that must stay, so that one motion dominates"""
NARROW = 1.0
"""pixels: scale of the loss; slow motions have less weight than at the 4 px of other adjustments"""
STABLE = 0.01
"""share of the tracks that may still change their class"""
MOST_UNEXPLAINED = 0.05
"""share of all tracks that no motion explains: wrong ones. At most 0.03 with a moving lorry, 0.1 on lund_cath_small with its
given lens"""


def dominant_motion(_: Search, solution: Solution) -> Solution | None:
    """The rejected reconstruction without the tracks that it misses as a whole."""
    if not (solution.problem.calibrated and _misses_alone(solution.certificate)):
        return None
    began = clock()
    found = _parted(solution.problem, solution.reconstruction)
    if found is None or _unexplained(solution.problem, *found) > MOST_UNEXPLAINED:
        return None
    problem, left, reconstruction = found
    part = solution.part(problem, reconstruction, landmarks=left, joint=joint_before(solution, left, reconstruction))
    gone = solution.problem.tracks.landmarks - len(left)
    note = f"left out {gone} tracks that miss as a whole: something moves on its own, or they are wrong"
    return part.noting(note).reporting("dominant motion", began)


def _misses_alone(certificate: Certificate) -> bool:
    """Whether purity is the only failed check, doubts aside."""
    failed = {finding.check for finding in certificate.findings if not (finding.passed or finding.doubt)}
    return not certificate.accepted and failed <= {PURITY, CAMERA_PURITY}


def _parted(problem: Problem, reconstruction: Reconstruction) -> tuple[Problem, Index, Reconstruction] | None:
    """The problem of the dominant motion, its landmarks, and its reconstruction; None if no motion dominates."""
    tracks = problem.tracks
    limits = replace(repair_limits(problem, 50, 1e-6), scales=(NARROW,))
    stays = _fits(problem, reconstruction, fitting_radius(problem, reconstruction))
    for _ in range(ROUNDS):
        found = restricted(problem, stays[tracks.landmark])
        if found is None:
            return None
        part, left = found
        moved, _ = adjust(part, reconstruction.subset(slice(None), left), limits)
        xyz, _ = triangulate(problem, moved, scale=INLIER_PIXELS)
        xyz[left] = moved.xyz
        reconstruction = replace(moved, xyz=xyz, ids=reconstruction.ids)
        before, stays = stays, _fits(problem, reconstruction, fitting_radius(problem, reconstruction))
        if np.mean(stays != before) <= STABLE:
            return (part, left, moved) if _dominates(problem, stays) else None
    return None


def _fits(problem: Problem, reconstruction: Reconstruction, radius: float) -> NDArray[np.bool_]:
    """(landmarks,): whether at most a third of the track's observations have errors above so many pixels."""
    tracks = problem.tracks
    missed = np.bincount(tracks.landmark, weights=~residuals(problem, reconstruction).within(radius))
    return missed <= MOST_MISSED * np.diff(tracks.ptr)


def _dominates(problem: Problem, stays: NDArray[np.bool_]) -> bool:
    tracks = problem.tracks
    seen = np.bincount(tracks.cam, minlength=tracks.cameras)
    share = np.bincount(tracks.cam, weights=stays[tracks.landmark], minlength=tracks.cameras) / seen
    return bool(stays.mean() >= LEAST_TRACKS and share.min() >= LEAST_OF_CAMERA)


def _unexplained(problem: Problem, part: Problem, left: Index, reconstruction: Reconstruction) -> float:
    """Share of all tracks that belong neither to the dominant motion (`part`, the tracks `left`) nor to a common other
    one."""
    tracks = problem.tracks
    others = ~np.isin(np.arange(tracks.landmarks), left)
    found = connected_part(problem, others[tracks.landmark])
    if found is not None:
        body, cameras, landmarks = found
        seen_by = reconstruction.subset(cameras, slice(None))
        xyz, _ = triangulate(body, seen_by, scale=INLIER_PIXELS)
        limits = replace(repair_limits(body, 50, 1e-6), scales=(10.0, INLIER_PIXELS, NARROW))
        start = replace(seen_by, xyz=xyz, ids=body.landmark_ids)
        moved, _ = adjust(body, start, limits)
        others[landmarks[_fits(body, moved, fitting_radius(part, reconstruction))]] = False
    return float(others.mean())
