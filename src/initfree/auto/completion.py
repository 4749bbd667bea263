"""Finishing steps that remove wrong matches and landmarks of uncertain depth."""

from dataclasses import replace

import numpy as np

from initfree.auto.consistent_part import readjusted
from initfree.auto.ranking import stayed
from initfree.auto.search import Search
from initfree.auto.solution import Solution
from initfree.certificate.depths import with_depth
from initfree.certificate.evidence import joint_of
from initfree.certificate.joint import Joint
from initfree.data.problem import restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.engine.compilation import clock
from initfree.stages.euclidean.residuals import INLIER_PIXELS, consensus, residuals, robust_cost
from initfree.stages.euclidean.triangulation import triangulate

ROUNDS = 2
CLEAN = 0.995
"""Share of agreeing observations from which the robust adjustment needs no help."""
WORTH = 0.01
"""share of the cost of landmarks in a local minimum from which an adjustment without it pays"""


def without_outliers(_: Search, solution: Solution) -> Solution | None:
    """Adjust the reconstruction on its consensus alone, and remove landmarks without one.

    Wrong matches still bias a Cauchy loss of 4 px, and a landmark of two right observations and a wrong one can move towards
    the wrong one: with 20% of wrong matches on weak data the robust optimum is several degrees off. Tracks with fewer than
    three remaining observations are removed too, because two rays always nearly meet. The weakest joint is still counted
    over all earlier observations: at a wrong joint, few of many landmarks fit.
    """
    began = clock()
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
    if stayed(solution.reconstruction, reconstruction):
        part = replace(part, evidence=part.evidence.after(solution.evidence))
    return part.reporting("consensus", began, iterations=steps, cost=cost)


def _placed_again(solution: Solution) -> Solution | None:
    """Triangulate landmarks in local minima again, and adjust if their cost matters: a few misplaced landmarks bias
    cameras."""
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
    """Remove landmarks without consensus or with uncertain depth, see `certificate.depths`.

    The cameras and their figures stay, because these landmarks contribute to them.
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
