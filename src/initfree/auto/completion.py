"""The end of a reconstruction: wrong matches and landmarks without a depth are left out."""

import time
from dataclasses import replace

import numpy as np

from initfree.auto.consistent_part import readjusted
from initfree.auto.search import Search
from initfree.auto.solution import Solution
from initfree.certificate.depths import with_depth
from initfree.certificate.evidence import joint_of
from initfree.certificate.joint import Joint
from initfree.data.problem import restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.stages.euclidean.residuals import INLIER_PIXELS, consensus, residuals, robust_cost
from initfree.stages.euclidean.triangulation import triangulate

ROUNDS = 2
CLEAN = 0.995
"""Where this share of the observations agrees, the robust adjustment needs no help."""
WORTH = 0.01
"""share of the cost that landmarks in a minimum of their own must have, for an adjustment without it to be worth its time"""


def without_outliers(_: Search, solution: Solution) -> Solution | None:
    """Adjusted on its consensus alone, without the landmarks that have none.

    Cauchy at 4 px still follows a wrong match a little, and a landmark of two right observations and a wrong one can move
    to please the wrong one; with 20% of them the robust optimum itself is several degrees off on weak data. Tracks that
    keep fewer than three observations go too: two always meet somewhere. What joins two parts is counted over all that did
    before: a wrong joint is a few landmarks that fit among many that do not.
    """
    began = time.perf_counter()
    placed = _placed_again(solution)
    solution = solution if placed is None else placed
    problem, reconstruction, config = solution.problem, solution.reconstruction, solution.start.config
    left = np.arange(problem.tracks.landmarks)
    steps, cost = 0, None
    for _round in range(ROUNDS):
        agreeing = consensus(problem, reconstruction)
        if agreeing.mean() >= CLEAN:
            break
        found = restricted(problem, agreeing)
        if found is None:
            break
        problem, landmarks = found
        left = left[landmarks]
        reconstruction, report = readjusted(problem, reconstruction.subset(slice(None), landmarks), config)
        steps, cost = steps + report.iterations, report.cost
    if problem is solution.problem:
        return placed
    joint = joint_before(solution, left, reconstruction)
    part = solution.part(problem, reconstruction, landmarks=left, joint=joint)
    return part.reporting("consensus", began, iterations=steps, cost=cost)


def _placed_again(solution: Solution) -> Solution | None:
    """With landmarks that a clean reconstruction left in a minimum of their own triangulated anew, and adjusted, if they are
    a part of its cost: a few that lie wrong pull at right cameras."""
    problem, reconstruction = solution.problem, solution.reconstruction
    agreeing = consensus(problem, reconstruction)
    if agreeing.all() or agreeing.mean() < CLEAN:
        return None
    xyz = reconstruction.xyz
    anew, _ = triangulate(problem, reconstruction, xyz, scale=INLIER_PIXELS)
    off = np.bincount(problem.tracks.landmark[~agreeing], minlength=len(anew)) > 0
    placed = replace(reconstruction, xyz=np.where(off[:, None], anew, xyz))
    if robust_cost(problem, placed) > (1.0 - WORTH) * solution.cost:
        return None
    placed, report = readjusted(problem, placed, solution.start.config)
    part = solution.part(problem, placed)
    return replace(part, stages=(*part.stages, report))


def with_depths(_: Search, solution: Solution) -> Solution | None:
    """Without the landmarks that nothing agrees on, or whose depth nothing tells: see `certificate.depths`.

    The cameras stay, and so do their figures: they were turned by these landmarks too.
    """
    problem, reconstruction = solution.problem, solution.reconstruction
    agreeing = consensus(problem, reconstruction, least=min(problem.min_obs, 3))
    known = with_depth(problem, reconstruction, agreeing)
    if known.all():
        return None
    found = restricted(problem, known[problem.tracks.landmark], least=2)
    if found is None:
        return None
    problem, left = found
    evidence = solution.evidence.with_landmarks(problem, reconstruction.subset(slice(None), left))
    part = replace(solution, evidence=evidence, intermediate=solution.intermediate.subset(slice(None), left))
    return part.noting(f"left out {len(known) - len(left)} of {len(known)} landmarks, whose depth is unknown")


def joint_before(solution: Solution, left: Index, reconstruction: Reconstruction) -> Joint:
    """The weakest joint of an adjusted reconstruction of the landmarks `left`, over all observations before."""
    problem, xyz = solution.problem, solution.reconstruction.xyz.copy()
    xyz[left] = reconstruction.xyz
    kept = np.isin(np.arange(problem.tracks.landmarks), left)
    whole = replace(reconstruction, xyz=xyz, ids=solution.reconstruction.ids)
    fits = residuals(problem, whole).within(solution.evidence.inlier_pixels) & kept[problem.tracks.landmark]
    return joint_of(problem.tracks, fits)
