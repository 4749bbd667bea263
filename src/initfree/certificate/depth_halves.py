"""Near against far landmarks: both give the same cameras, unless the scene is not rigid.

A moving object with most of the landmarks, or a wrong lens that acts differently on near and far landmarks, makes the
cameras a compromise. The cameras are adjusted on the nearer half of each image's landmarks, and on the farther half. In a
rigid scene the two agree as well as for random halves, or differ along directions in which the cost hardly changes: then
cameras of their own gain the halves as much as random ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.closeness import closeness
from initfree.certificate.joint import across, least_joining, reach, sweep_order
from initfree.certificate.modes import determination
from initfree.certificate.uncertainty import camera_system
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Tracks
from initfree.engine.levenberg_marquardt import NEAR, LMConfig
from initfree.engine.losses import Cauchy
from initfree.stages.euclidean.adjustment import EuclideanAdjustment
from initfree.stages.euclidean.parameters import FreeIntrinsics
from initfree.stages.euclidean.residuals import INLIER_PIXELS, consensus, residuals

LEAST = 15
"""observations of an image in either half"""
CLEAR = 97.0
"""percent, of rotations, that the cameras of both halves have against each other after one step, from which more steps would
change nothing"""


@dataclass(frozen=True)
class Halves:
    """Cameras adjusted on either half of the landmarks."""

    rotation_auc20: float
    """percent, of the ones against the others"""
    gain: float
    """by how much the robust cost falls where each half has cameras of its own"""


def near_against_far(problem: Problem, reconstruction: Reconstruction) -> Halves | None:
    """The nearer and the farther half; None where too few observations are left of the images, or one of the halves does
    not hold them together."""
    nearer = _by_depth(problem, reconstruction)
    if not all(_joined(problem, reconstruction, half) for half in (nearer, ~nearer)):
        return None
    return _between(problem, reconstruction, nearer, CLEAR)


def random_halves(problem: Problem, reconstruction: Reconstruction) -> Halves | None:
    """Two halves drawn by chance, adjusted to the end."""
    chance = np.random.default_rng(0).permutation(problem.tracks.landmarks)
    return _between(problem, reconstruction, chance < problem.tracks.landmarks / 2, np.inf)


def expected_between(problem: Problem, reconstruction: Reconstruction) -> float:
    """Percent that the AUC@20 of rotations between near and far may lack by the covariance of either half."""
    nearer, t, r = _by_depth(problem, reconstruction), problem.tracks, reconstruction
    agreeing, free = consensus(problem, reconstruction), FreeIntrinsics.unless(True)
    lacking = 0.0
    for half in (nearer, ~nearer):
        system = camera_system(
            t, problem.m, problem.unit, r.cameras, r.xyz, agreeing & half[t.landmark], free=free, groups=problem.camera_ids
        )  # fmt: skip
        lacking += 100.0 - (determination(system).rotation_auc20 if system.solvable else 0.0)
    return lacking


def _joined(problem: Problem, reconstruction: Reconstruction, half: NDArray[np.bool_]) -> bool:
    """Whether every cut between the images with enough of its observations is crossed by as many landmarks of a half as the
    certificate asks for: between parts that fewer join, its cameras say nothing."""
    t = problem.tracks
    mine = half[t.landmark]
    enough = np.bincount(t.cam, weights=mine, minlength=t.cameras) >= LEAST
    rows = np.flatnonzero(mine & enough[t.cam])
    n, length = int(np.count_nonzero(enough)), np.bincount(t.landmark[rows], minlength=t.landmarks)
    tracks = Tracks((np.cumsum(enough) - 1)[t.cam[rows]], np.concatenate([[0], np.cumsum(length)]), n)
    if n < 3:
        return False
    fits = residuals(problem, reconstruction).within(INLIER_PIXELS)[rows]
    order, first = sweep_order(tracks, fits), np.arange(1, n)
    return bool((across(tracks, *reach(tracks, order, fits)) >= least_joining(np.minimum(first, n - first))).all())


def _between(problem: Problem, reconstruction: Reconstruction, first: NDArray[np.bool_], clear: float) -> Halves | None:
    t = problem.tracks
    halves = [side[t.landmark].astype(np.float64) for side in (first, ~first)]
    counts = [np.bincount(t.cam, weights=half, minlength=t.cameras) for half in halves]
    enough = np.minimum(*counts) >= LEAST
    if np.count_nonzero(enough) < 3:
        return None
    r, loss = reconstruction, Cauchy(INLIER_PIXELS)
    stages = [EuclideanAdjustment(t, problem.m, problem.unit, r, weight=half) for half in halves]
    # From a common optimum each step of Gauss-Newton leads where a rigid scene stays.
    reports = [stage.minimise(LMConfig(1, 0.0, NEAR, check_plateau=False), loss) for stage in stages]
    began = sum(report.initial_cost for report in reports)
    rotation = _closeness(stages, enough)
    if not all(report.accepted for report in reports) or rotation < clear:
        reports = [stage.minimise(LMConfig(30, 1e-5, NEAR, check_plateau=False), loss) for stage in stages]
        rotation = _closeness(stages, enough)
    return Halves(rotation, began - sum(report.cost for report in reports))


def _closeness(stages: list[EuclideanAdjustment], enough: NDArray[np.bool_]) -> float:
    one, other = (stage.state for stage in stages)
    return closeness(one.R[enough], one.centres[enough], other.R[enough], other.centres[enough], 20.0)[0]


def _by_depth(problem: Problem, reconstruction: Reconstruction) -> NDArray[np.bool_]:
    """(landmarks,): whether it is nearer than the median landmark of its images, in the mean of these."""
    t = problem.tracks
    rank = _rank_in_camera(t, residuals(problem, reconstruction).depth)
    mean = np.bincount(t.landmark, weights=rank, minlength=t.landmarks) / np.maximum(np.diff(t.ptr), 1)
    return mean < float(np.median(mean))


def _rank_in_camera(tracks: Tracks, depth: Array) -> Array:
    """(observations,): 0 the nearest of its image, 1 the farthest."""
    order = np.lexsort((depth, tracks.cam))
    rank = np.empty(len(order))
    count = np.diff(tracks.camera_ptr)
    rank[order] = (np.arange(len(order)) - np.repeat(tracks.camera_ptr[:-1], count)) / np.repeat(count, count)
    return rank
