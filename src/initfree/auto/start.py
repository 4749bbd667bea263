"""One start of the strategy `auto`, from initial cameras to the Euclidean adjustment over all observations."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from initfree.auto.ranking import stayed
from initfree.auto.repair import repair, repair_limits
from initfree.auto.solution import Deferred, Disconnected, Outcome, Solution, Start
from initfree.auto.trimming import trim
from initfree.certificate import Evidence, History, judge
from initfree.certificate.baseline import Baselines
from initfree.data.problem import Problem, restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.engine.compilation import clock
from initfree.result import Intermediate, StageReport
from initfree.stages.euclidean import AdjustConfig, adjust, robust_cost
from initfree.stages.pipeline import PROJECTIVE, OnProgress, State, adjust_euclidean, run_stages, upgrade_metric
from initfree.stages.refinement.landmarks import triangulate_projective
from initfree.stages.refinement.reprojection import reprojection_errors
from initfree.two_view.focal import with_focals

WRONG_MATCHES = 0.02
"""80th percentile of stage 1's reprojection error in normalised units: smaller for good matches (0.011 on generated,
0.006 on real data), larger with 5% of wrong ones (0.05)"""

PART_TOLERANCE = 1e-5
"""of the adjustment of a part of the observations, before that of all"""
IDENTICAL_COST = 1e-3
"""relative difference of costs up to which two starts with the same cameras led to one reconstruction"""
HOPELESS = 3.0
"""times the cost of an earlier doubtful start: a start with a higher cost is no witness, and is not repaired"""


def run_start(
    problem: Problem,
    start: Start,
    baselines: Callable[[], Baselines],
    on_progress: OnProgress | None = None,
    *,
    earlier: Sequence[Solution] = (),
) -> Outcome:
    """Run all stages of the pipeline and the repair; `baselines` returns the problem's baselines.

    A reconstruction that one of the `earlier` starts found too has the same verdict.
    """
    began = clock()
    progress = None if on_progress is None else (lambda stage, *figures: on_progress(f"{start.name}: {stage}", *figures))
    cameras, keep, reports = start.cameras, start.keep, ()
    if start.trimmed:
        watched = None if progress is None else partial(progress, "trimming")
        cameras, keep = trim(problem, start.config, start.trimmed, watched)
        reports = (StageReport("trimming", clock() - began),)
    part, left = problem, None
    if keep is not None:
        found = restricted(problem, keep, least=2)
        if found is None:
            return Disconnected(start)
        part, left = found
    seen, whole = (p if start.focal is None else with_focals(p, start.focal) for p in (part, problem))
    state = State(seen, start.config, None, start.rotations, cameras, reports=reports, on_progress=progress)
    state = _projective(state, start)
    if state is None:
        return Deferred(start)
    if left is not None:
        state = replace(state, X=_everywhere(whole, state, left))
    state = upgrade_metric(replace(state, problem=whole))
    if start.focal is not None:
        state = _with_guessed_focals(state, start.focal)
    reconstruction, state = _adjusted(problem, part, left, state)
    repairing = clock()
    limits = repair_limits(problem, start.config.max_iterations, start.config.adjust_tolerance)
    cost, rounds = robust_cost(problem, reconstruction), 0
    if not any(other.doubtful and cost > HOPELESS * other.cost for other in earlier):
        reconstruction, rounds = repair(problem, reconstruction, limits, start.config.seed)
        cost = robust_cost(problem, reconstruction)
    if rounds:
        report = StageReport("repair", clock() - repairing, iterations=rounds, cost=cost)
        state = state.with_report(report)
    assert state.before is not None
    assert state.upgraded is not None
    intermediate = Intermediate(state.P, state.X, state.before, state.upgraded, state.trace)
    same = _same(reconstruction, cost, earlier)
    if same is None:
        evidence = Evidence(problem, reconstruction, History(searching=True, baselines=baselines()))
        evidence = _better_alternative(evidence, limits)
    else:
        evidence = same.evidence
    found = Solution(evidence, start, intermediate, state.reports)
    _ = found.certificate  # asked here, where starts run side by side
    return replace(found, seconds=clock() - began)


def _better_alternative(evidence: Evidence, limits: AdjustConfig) -> Evidence:
    """The evidence of the better reconstruction that the search for an alternative found, if it did."""
    judge(evidence)
    better = evidence.alternative if evidence.asked("alternative") else None
    problem, reconstruction = evidence.problem, evidence.reconstruction
    if better is None or better.ratio >= 1.0:
        return evidence
    if robust_cost(problem, better.reconstruction) >= robust_cost(problem, reconstruction):
        return evidence
    return Evidence(problem, _readjusted(problem, better.reconstruction, limits), evidence.history)


def _projective(state: State, start: Start) -> State | None:
    """Stages 1 and 2, unless the start has their result; None if the errors of stage 1 indicate wrong matches."""
    if start.projective is not None:
        X = triangulate_projective(state.problem.tracks, state.problem.m, start.projective)
        return run_stages(replace(state, P=start.projective, X=X), PROJECTIVE[2:])
    if not start.deferrable:
        return run_stages(state, PROJECTIVE)
    state = run_stages(state, PROJECTIVE[:2])
    return None if _looks_like_wrong_matches(state) else run_stages(state, PROJECTIVE[2:])


def _readjusted(problem: Problem, reconstruction: Reconstruction, limits: AdjustConfig) -> Reconstruction:
    """At the last scale alone."""
    last = replace(limits, scales=limits.scales[-1:], near=True)
    return adjust(problem, reconstruction, last)[0]


def _same(reconstruction: Reconstruction, cost: float, earlier: Sequence[Solution]) -> Solution | None:
    """An earlier solution with the same cameras at the same cost."""
    for other in earlier:
        if abs(other.cost - cost) <= IDENTICAL_COST * cost and stayed(other.reconstruction, reconstruction):
            return other
    return None


def _looks_like_wrong_matches(state: State) -> bool:
    p = state.problem
    error = reprojection_errors(p.tracks, p.m, p.unit, state.P, state.X) / p.unit.mean(axis=1)
    return bool(np.quantile(error, 0.8) > WRONG_MATCHES)


def _everywhere(whole: Problem, state: State, left: Index) -> Array:
    """The landmarks of the whole problem: those of the start, and the others triangulated."""
    X = triangulate_projective(whole.tracks, whole.m, state.P)
    X[left] = state.X
    return X


def _with_guessed_focals(state: State, focal: Array) -> State:
    """The state in the problem's own coordinates, with the guessed focal lengths."""
    assert state.before is not None
    assert state.upgraded is not None
    P = state.P * np.stack([focal, focal, np.ones_like(focal)], axis=1)[:, :, None]
    upgraded = replace(state.upgraded, reconstruction=replace(state.upgraded.reconstruction, focal=focal))
    before = replace(state.before, focal=focal)
    return replace(state, P=P, before=before, upgraded=upgraded, reconstruction=upgraded.reconstruction)


def _adjusted(problem: Problem, part: Problem, left: Index | None, state: State) -> tuple[Reconstruction, State]:
    """The Euclidean adjustment, first of the part that the start works on, then of all."""
    assert state.reconstruction is not None
    upgraded = state.reconstruction
    if left is None:
        state = adjust_euclidean(replace(state, problem=problem))
        assert state.reconstruction is not None
        return state.reconstruction, state
    given = state.config
    rough = replace(given, adjust_tolerance=max(given.adjust_tolerance, PART_TOLERANCE))
    part_of = replace(state, problem=part, config=rough, reconstruction=upgraded.subset(slice(None), left))
    state = replace(adjust_euclidean(part_of), config=given)
    assert state.reconstruction is not None
    # All observations only now and at the last scale: at wide scales, wrong ones would bias weak cameras.
    limits = repair_limits(problem, state.config.max_iterations, state.config.adjust_tolerance)
    xyz = upgraded.xyz.copy()
    xyz[left] = state.reconstruction.xyz
    reconstruction, _ = adjust(
        problem, replace(state.reconstruction, xyz=xyz), replace(limits, scales=limits.scales[-1:], near=True)
    )
    return reconstruction, state
