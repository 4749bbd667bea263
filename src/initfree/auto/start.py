"""One start of the `auto` strategy, from its first cameras to its Euclidean end over all observations."""

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from initfree import formulations
from initfree.auto.repair import repair, repair_limits, robust_cost
from initfree.auto.trimming import trim
from initfree.certificate.focal import verify
from initfree.certificate.verdict import Certificate
from initfree.config import SolveConfig
from initfree.euclidean import adjust
from initfree.formulations.pose_rot import RelativeRotations
from initfree.pipeline import (
    OnProgress,
    adjust_euclidean,
    minimise_ose,
    refine_projective,
    refine_radial_cameras,
    upgrade_metric,
)
from initfree.problem import Problem, restricted
from initfree.refinement.reprojection import reprojection_errors
from initfree.result import Result, StageReport, StartReport
from initfree.tracks import Array
from initfree.two_view.focal import with_focals
from initfree.upgrade.metric import Metric

WRONG_MATCHES = 0.02
"""80th percentile of stage 1's reprojection error, in normalised units, that good matches stay below (0.011 on generated,
0.006 on real data) and 5% of wrong ones exceed (0.05)"""


@dataclass(frozen=True)
class Start:
    """Where a solve begins: settings, and what it works on until the Euclidean adjustment."""

    name: str
    config: SolveConfig
    keep: NDArray[np.bool_] | None = None
    """observations used until the Euclidean adjustment, which sees all; None: all"""
    rotations: RelativeRotations | None = None
    cameras: Array | None = None
    """first cameras (cameras, 3, 4) in place of the configured initialisation"""
    focal: Array | None = None
    """guessed focal lengths (cameras,): all stages before the adjustment see calibrated rays"""
    trimmed: float = 0.0
    """share of the observations that stage 1 suspects before it begins (`trimming.trim`), in place of `keep`"""
    patient: bool = True
    """if not, the start is put off where stage 1 already looks like wrong matches"""


@dataclass(frozen=True)
class Attempt:
    """What a start led to, over all landmarks of the problem."""

    start: Start
    P: Array
    X: Array
    before: Metric
    upgraded: Metric
    metric: Metric
    certificate: Certificate
    cost: float
    stages: tuple[StageReport, ...]
    seconds: float

    def report(self) -> StartReport:
        c = self.certificate
        return StartReport(self.start.name, self.seconds, self.cost, c.accepted, c.inlier_share, c.worst_share, self.stages)

    def result(self, problem: Problem, reports: list[StartReport]) -> Result:
        return Result(
            problem, self.start.config, self.P, self.X, self.before, self.upgraded, self.metric, self.certificate,
            self.stages, tuple(reports), self.start.name,
        )  # fmt: skip


def run_start(problem: Problem, start: Start, on_progress: OnProgress | None) -> Attempt | None:
    """All stages of the pipeline and the repair.

    None where the start's observations do not hold all cameras together, or where it was put off.
    """
    began = time.perf_counter()
    config, part, left, keep, first = start.config, problem, None, start.keep, start.cameras

    def reporting(stage: str):
        return None if on_progress is None else partial(on_progress, f"{start.name}: {stage}")

    stages = []
    if start.trimmed:
        first, keep = trim(problem, config, start.trimmed, reporting("trimming"))
        stages.append(StageReport("trimming", time.perf_counter() - began))
    if keep is not None:
        found = restricted(problem, keep, least=2)
        if found is None:
            return None
        part, left = found
    seen, whole = (p if start.focal is None else with_focals(p, start.focal) for p in (part, problem))
    P, X, report = minimise_ose(seen, config, start.rotations, reporting("varpro"), first)
    if not start.patient:
        error = reprojection_errors(seen.tracks, seen.m, seen.unit, P, X) / seen.unit.mean(axis=1)
        if np.quantile(error, 0.8) > WRONG_MATCHES:
            return None
    stages.append(report)
    if formulations.make(config.formulation, config.alpha).radial:
        P, X, report = refine_radial_cameras(seen, config, P, X, reporting("radial"))
        stages.append(report)
    if config.refine:
        P, X, report = refine_projective(seen, config, P, X, reporting("refinement"))
        stages.append(report)
    if left is not None:
        everywhere = triangulate_projective(whole, P)
        everywhere[left] = X
        X = everywhere
    upgraded, before, report = upgrade_metric(whole, config, P, X)
    stages.append(report)
    if start.focal is not None:
        P = P * np.stack([start.focal, start.focal, np.ones_like(start.focal)], axis=1)[:, :, None]
        upgraded, before = replace(upgraded, focal=start.focal), replace(before, focal=start.focal)
    limits = repair_limits(problem, config.max_iterations, config.refine_tolerance)
    held = upgraded if left is None else replace(upgraded, xyz=upgraded.xyz[left])
    metric, report = adjust_euclidean(part, config, held, reporting("adjustment"))
    stages.append(report)
    resecting = time.perf_counter()
    if left is not None:
        # All observations only now, and at the last scale alone: at wide ones those left out would pull weak cameras away.
        metric, _ = adjust(
            problem.tracks, problem.m, problem.unit, replace(metric, xyz=upgraded.xyz),
            replace(limits, scales=limits.scales[-1:]), groups=problem.camera_ids,
        )  # fmt: skip
    metric, rounds = repair(problem, metric, limits, config.seed)
    cost = robust_cost(problem, metric)
    if rounds:
        stages.append(StageReport("repair", time.perf_counter() - resecting, iterations=rounds, cost=cost))
    certificate = verify(problem, metric)
    return Attempt(start, P, X, before, upgraded, metric, certificate, cost, tuple(stages), time.perf_counter() - began)


def triangulate_projective(problem: Problem, P: Array) -> Array:
    """Landmarks (landmarks, 4) that minimise sum |x - z m|² on the unit sphere, for given projective cameras."""
    P = P / np.linalg.norm(P, axis=(1, 2), keepdims=True)
    camera = P[problem.tracks.cam]
    A = camera[:, :2] - problem.m[:, :, None] * camera[:, 2:]
    A /= np.linalg.norm(A, axis=2, keepdims=True)
    V = np.add.reduceat(np.einsum("nka,nkb->nab", A, A), problem.tracks.ptr[:-1], axis=0)
    return np.ascontiguousarray(np.linalg.eigh(V)[1][:, :, 0])
