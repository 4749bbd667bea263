"""The end of a reconstruction: wrong matches and landmarks without a depth are left out, and the verdict on that."""

import time
from dataclasses import replace

import numpy as np

from initfree.auto.consistent_part import readjusted
from initfree.certificate import certify, judge
from initfree.certificate.depths import with_depth
from initfree.certificate.evidence import Evidence, gather, joint_of
from initfree.certificate.focal import clear
from initfree.certificate.joint import Joint
from initfree.data.problem import restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.result import Result, StageReport
from initfree.stages.euclidean.residuals import INLIER_PIXELS, consensus, residuals, robust_cost
from initfree.stages.euclidean.triangulation import triangulate

ROUNDS = 2
CLEAN = 0.995
"""Where this share of the observations agrees, the robust adjustment needs no help."""

NEARLY_ALL = 0.95
"""share of the observations that stay, with which a focal length that they told clearly is still told"""
WORTH = 0.01
"""share of the cost that landmarks in a minimum of their own must have, for an adjustment without it to be worth its time"""


def without_outliers(result: Result, *, free: bool = False) -> Result:
    """An accepted reconstruction adjusted on its consensus alone, landmarks without one dropped, and certified as it is.

    Cauchy at 4 px still follows a wrong match a little, and a landmark of two right observations and a wrong one can move
    to please the wrong one; with 20% of them the robust optimum itself is several degrees off on weak data. Tracks that
    keep fewer than three observations go too: two always meet somewhere. What joins two parts is counted over all that did
    before: a wrong joint is a few landmarks that fit among many that do not. What was judged with `free` intrinsics stays,
    and so does that the images clearly tell the focal length, where nearly all of them are left.
    """
    if not result.certificate.accepted:
        return result
    began = time.perf_counter()
    result = _placed_again(result)
    problem, reconstruction = result.problem, result.reconstruction
    left = np.arange(problem.tracks.landmarks)
    steps, cost = 0, None
    for _ in range(ROUNDS):
        agreeing = consensus(problem, reconstruction)
        if agreeing.mean() >= CLEAN:
            break
        found = restricted(problem, agreeing)
        if found is None:
            break
        problem, landmarks = found
        left = left[landmarks]
        reconstruction, report = readjusted(problem, reconstruction.subset(slice(None), landmarks), result.config)
        steps, cost = steps + report.iterations, report.cost
    if problem is result.problem:
        return result
    before = result.certificate.evidence
    moving = before.baselines if free else None
    most_stay = problem.tracks.observations >= NEARLY_ALL * result.problem.tracks.observations
    rise = before.focal_rise if free or (most_stay and clear(before.focal_rise)) else None
    evidence = _as_before(certify(problem, reconstruction, moving, rise=rise).evidence, before)
    evidence = replace(evidence, joint=joint_before(result, left, reconstruction))
    if free:
        evidence = replace(evidence, focal_rise=before.focal_rise)
    report = StageReport("consensus", time.perf_counter() - began, iterations=steps, cost=cost)
    part = result.subset(problem, slice(None), left, reconstruction)
    return replace(part, certificate=judge(evidence), stages=(*result.stages, report))


def _placed_again(result: Result) -> Result:
    """With landmarks that a clean reconstruction left in a minimum of their own triangulated anew, and adjusted, if they are
    a part of its cost: a few that lie wrong pull at right cameras."""
    problem, reconstruction = result.problem, result.reconstruction
    agreeing = consensus(problem, reconstruction)
    if agreeing.all() or agreeing.mean() < CLEAN:
        return result
    xyz = reconstruction.xyz
    anew, _ = triangulate(problem, reconstruction, xyz, scale=INLIER_PIXELS)
    off = np.bincount(problem.tracks.landmark[~agreeing], minlength=len(anew)) > 0
    placed = replace(reconstruction, xyz=np.where(off[:, None], anew, xyz))
    if robust_cost(problem, placed) > (1.0 - WORTH) * robust_cost(problem, reconstruction):
        return result
    placed, report = readjusted(problem, placed, result.config)
    certificate = certify(problem, placed, result.certificate.evidence.baselines)
    judged = judge(_as_before(certificate.evidence, result.certificate.evidence))
    return replace(result, reconstruction=placed, certificate=judged, stages=(*result.stages, report))


def with_depths(result: Result) -> Result:
    """An accepted reconstruction without the landmarks that nothing agrees on, or whose depth nothing tells: see
    `certificate.depths`. The cameras stay, and so does what was asked of them: they were turned by these landmarks too."""
    if not result.certificate.accepted:
        return result
    problem, reconstruction = result.problem, result.reconstruction
    agreeing = consensus(problem, reconstruction, least=min(problem.min_obs, 3))
    known = with_depth(problem, reconstruction, agreeing)
    if known.all():
        return result
    found = restricted(problem, known[problem.tracks.landmark], least=2)
    if found is None:
        return result
    problem, left = found
    before = result.certificate.evidence
    part = result.subset(problem, slice(None), left, reconstruction.subset(slice(None), left))
    figures = _as_before(gather(problem, part.reconstruction, before.baselines), before)
    asked = {name: getattr(before, name) for name in ("joint", "closer", "alternative", "reversal_rise")}
    asked |= {name: getattr(before, name) for name in ("focal_rise", "focal_lengths")}
    note = f"left out {len(known) - len(left)} of {len(known)} landmarks, whose depth their observations do not tell"
    return replace(part, certificate=judge(replace(figures, **asked)), notes=(*result.notes, note))


def _as_before(evidence: Evidence, before: Evidence) -> Evidence:
    """The evidence with how the reconstruction was come by, which no figure tells."""
    return replace(
        evidence,
        confirmed=before.confirmed,
        left_out=before.left_out,
        left_out_because=before.left_out_because,
        taken_back=before.taken_back,
        intrinsics_doubt=before.intrinsics_doubt,
    )


def joint_before(result: Result, left: Index, reconstruction: Reconstruction) -> Joint:
    """The weakest joint of an adjusted reconstruction of the landmarks `left`, over all observations of the result."""
    tracks, xyz = result.problem.tracks, result.reconstruction.xyz.copy()
    xyz[left] = reconstruction.xyz
    kept = np.isin(np.arange(tracks.landmarks), left)
    whole = replace(reconstruction, xyz=xyz, ids=result.reconstruction.ids)
    inlier_pixels = result.certificate.evidence.inlier_pixels
    return joint_of(tracks, residuals(result.problem, whole).within(inlier_pixels) & kept[tracks.landmark])
