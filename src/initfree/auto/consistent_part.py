"""The largest consistent part of a rejected reconstruction: remove failing images, then resect those that fit again."""

from dataclasses import dataclass, replace

import numpy as np

from initfree.auto.confused import only_contradicted
from initfree.auto.repair import repair_limits
from initfree.auto.search import Search
from initfree.auto.solution import Solution
from initfree.auto.witness import found_by_another
from initfree.certificate.checks import NONE_BELONGS
from initfree.certificate.history import Witness
from initfree.certificate.thresholds import MAX_LEFT_OUT, MIN_CONSENSUS
from initfree.config import SolveConfig
from initfree.data.problem import Problem, without_cameras
from initfree.data.recalibration import with_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.engine.compilation import clock
from initfree.result import StageReport
from initfree.stages.euclidean import adjust, resect
from initfree.stages.euclidean.residuals import INLIER_PIXELS

ROUNDS = 30
"""of taking images back"""


def consistent_part(search: Search, solution: Solution) -> Solution | None:
    """Remove the images that fail the certificate until it accepts the rest, or a second start settles what is doubtful.

    Then resect images from the landmarks of that part, as long as it grows and stays accepted. The verdict counts missing
    images, fewer where the others were solved again alone. None if no part is accepted. If matches of the part contradict
    each other, or images that are left out belong to it, that is the verdict, without another start.
    """
    began = clock()
    whole = solution.problem
    if whole.rays and not whole.calibrated and len(np.unique(whole.camera_ids)) > len(whole.camera_ids) / 2:
        # Freed intrinsics of single photographs leave much open: what fails is judged once they are estimated.
        return None
    everything = _Subset(solution, np.arange(whole.tracks.cameras), np.arange(whole.tracks.landmarks))
    part = _reduced(everything, search, doubtful=True)
    if part is None:
        return None
    resected = False
    # The focal lengths of images that were left out mean nothing: they cannot be placed with them.
    for _round in range(ROUNDS if whole.calibrated else 0):
        more = _extended(part, solution, search) if len(part.cameras) < whole.tracks.cameras else None
        if more is None or len(more.cameras) <= len(part.cameras):
            break
        part, resected = more, True
    kept = set(part.solution.problem.names)
    gone = tuple(dict.fromkeys(name for name in (*solution.history.left_out, *whole.names) if name not in kept))
    found = part.solution.adding(left_out=gone, left_out_because=solution.certificate.reason, resected=resected)
    if gone and (only_contradicted(found.certificate) or found.evidence.belonging):
        return found.reporting("consistent part", began)
    if part.solution.doubtful:
        confirmed = _again(search, part.solution)
        if not part.solution.adding(confirmed=confirmed).accepted:
            return None
        found = found.adding(confirmed=confirmed)
    if not found.accepted and found.adding(alone=True).accepted and _again(search, found):
        found = found.adding(alone=True)
    return found.reporting("consistent part", began)


def with_belonging(search: Search, solution: Solution) -> Solution | None:
    """With the images that were left out, where they fit now: wrong intrinsics had bent the others, or these."""
    failed = {finding.check for finding in solution.certificate.findings if not (finding.passed or finding.doubt)}
    before = next((attempt for attempt in search.attempts if attempt.start is solution.start), None)
    if failed != {NONE_BELONGS} or before is None or not solution.problem.calibrated:
        return None
    began = clock()
    found = with_cameras(before.problem, solution.problem.observations.cameras)
    if found is None or not {*solution.problem.names} <= {*found[0].names}:
        return None
    whole, left = found
    own, state = solution.reconstruction, before.reconstruction.subset(slice(None), left)
    there = np.array([whole.names.index(name) for name in solution.problem.names])
    R, t, n = state.R.copy(), state.t.copy(), len(state.R)
    R[there], t[there] = own.R, own.t
    state = replace(state, R=R, t=t, focal=np.ones(n), radial=np.zeros((n, 2)))
    missing, config = np.setdiff1d(np.arange(n), there), solution.start.config
    state, placed = resect(whole, state, missing, min_inliers=MIN_CONSENSUS, seed=config.seed)
    found = without_cameras(whole, missing[~placed])
    if found is None:
        return None
    problem, cameras, landmarks = found
    reconstruction, _ = readjusted(problem, state.subset(cameras, landmarks), config)
    gone = tuple(name for name in solution.history.left_out if name not in problem.names)
    history = solution.history
    facts = {"left_out": gone, "left_out_because": history.left_out_because, "focal_lengths": history.focal_lengths}
    larger = before.part(problem, reconstruction, cameras, left[landmarks], resected=True, **facts)
    if larger.doubtful:
        larger = larger.adding(confirmed=_again(search, larger))
    return replace(larger, notes=solution.notes).reporting("images taken back", began)


def _again(search: Search, solution: Solution) -> frozenset[Witness]:
    """What a start of another kind could have known better that finds the same from the images of a part alone."""
    anew = search.again(solution.problem)
    found = found_by_another(anew, solution, solution.cost)
    search.started += anew.started
    return found


@dataclass(frozen=True, eq=False)
class _Subset:
    """Some of the images, and which cameras and landmarks of the whole they are."""

    solution: Solution
    cameras: Index
    landmarks: Index


def _reduced(part: _Subset, search: Search, *, doubtful: bool) -> _Subset | None:
    """The accepted rest of a part after its failing images are removed repeatedly; None if nothing is accepted.

    Its doubts are settled by another start, or left to whoever calls (`doubtful`), as are contradictions.
    """
    whole, most = part.solution, search.problem.tracks.cameras
    while part.solution.certificate.failing and not part.solution.accepted:
        now = part.solution
        failing = np.flatnonzero(np.isin(now.problem.names, now.certificate.failing))
        found = without_cameras(now.problem, failing)
        # Beyond that no part is accepted, whatever it is like, unless known cameras take images back.
        if found is None or (not whole.problem.exact and len(found[1]) < (1.0 - MAX_LEFT_OUT) * most):
            return None
        problem, cameras, landmarks = found
        reconstruction, _ = readjusted(problem, now.reconstruction.subset(cameras, landmarks), now.start.config)
        smaller = now.part(problem, reconstruction, cameras, landmarks, confirmed=frozenset(), joint=None)
        part = _Subset(smaller, part.cameras[cameras], part.landmarks[landmarks])
    open_ = part.solution.doubtful and part.solution is not whole
    if doubtful and (open_ or (part.solution is not whole and only_contradicted(part.solution.certificate))):
        return part
    if open_:
        part = replace(part, solution=part.solution.adding(confirmed=_again(search, part.solution)))
    return part if part.solution.accepted else None


def _extended(part: _Subset, whole: Solution, search: Search) -> _Subset | None:
    """The part with images that its landmarks can place, as long as the certificate accepts it."""
    before, own, config = whole.reconstruction, part.solution.reconstruction, whole.start.config
    R, t, xyz = before.R.copy(), before.t.copy(), before.xyz.copy()
    R[part.cameras], t[part.cameras], xyz[part.landmarks] = own.R, own.t, own.xyz
    missing = np.setdiff1d(np.arange(whole.problem.tracks.cameras), part.cameras)
    state = replace(before, R=R, t=t, xyz=xyz)
    # No more than the certificate requires: it judges them.
    state, placed = resect(whole.problem, state, missing, min_inliers=MIN_CONSENSUS, seed=config.seed)
    found = without_cameras(whole.problem, missing[~placed]) if placed.any() else None
    if found is None:
        return None
    problem, cameras, landmarks = found
    reconstruction, _ = readjusted(problem, state.subset(cameras, landmarks), config)
    larger = whole.part(problem, reconstruction, cameras, landmarks, confirmed=frozenset(), joint=None)
    return _reduced(_Subset(larger, cameras, landmarks), search, doubtful=part.solution.doubtful)


def readjusted(problem: Problem, reconstruction: Reconstruction, config: SolveConfig) -> tuple[Reconstruction, StageReport]:
    """Adjust at the last scale alone: the rest is near its optimum."""
    limits = replace(repair_limits(problem, 100, config.adjust_tolerance), scales=(INLIER_PIXELS,), near=True)
    reconstruction, convergence = adjust(problem, reconstruction, limits)
    steps = len(convergence.history)
    return reconstruction, StageReport("adjustment", convergence.seconds, iterations=steps, cost=convergence.cost)
