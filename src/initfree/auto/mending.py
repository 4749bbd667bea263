"""A model of the cameras that the certificate refuses is mended where the observations say how.

The certificate frees more of the cameras than the model lets move, and refuses where they stand elsewhere then. What is
freed is the remedy: the other lens, or one camera an image. Where misfits agree on another joint of two parts, that is
tried. What comes of it is judged like everything else.
"""

from dataclasses import replace

import numpy as np
import pycolmap

from initfree.auto.calibration import with_recalibrated
from initfree.auto.intrinsics import DISTORTION_SHARE, FOCAL_SHARE, QUICK, Sight, pays, recalibrated, with_radial
from initfree.auto.search import Search
from initfree.auto.solution import Solution
from initfree.certificate.checks import CAMERA_PURITY, LENS, METRIC, PURITY, SHARED
from initfree.certificate.thresholds import CLEAR_PROJECTIVE_RATIO, MAX_PROJECTIVE_RATIO
from initfree.data.problem import Problem
from initfree.data.tracks import Index
from initfree.engine.compilation import clock
from initfree.stages.euclidean import AdjustConfig, adjust
from initfree.stages.euclidean.intrinsics import IntrinsicsAdjustment, View
from initfree.stages.euclidean.lenses import Lenses
from initfree.stages.euclidean.residuals import INLIER_PIXELS
from initfree.stages.euclidean.triangulation import triangulate


def with_other_joint(search: Search, solution: Solution) -> Solution | None:
    """Two parts joined as the misfits across their joint say, where the present joint puts things on top of each other."""
    evidence = solution.evidence
    found = evidence.contradiction if evidence.asked("contradiction") else None
    before = next((attempt for attempt in search.attempts if attempt.start is solution.start), None)
    if found is None or found.other is None or not found.found or before is None or evidence.joint_by_order:
        return None
    if solution.problem.observations is not search.problem.observations or before.problem.names != solution.problem.names:
        return None
    began, problem = clock(), before.problem
    joined = replace(before.reconstruction, R=found.other.R, t=found.other.t)
    joined = replace(joined, xyz=triangulate(problem, joined, scale=INLIER_PIXELS)[0])
    adjusted, _ = adjust(problem, joined, AdjustConfig(scales=(10.0, INLIER_PIXELS)))
    note = f"two parts that look alike were joined as {found.agreeing} landmarks say that contradict {found.fitting} others"
    return before.part(problem, adjusted).noting(note).reporting("other joint", began)


def with_another_lens(_: Search, solution: Solution) -> Solution | None:
    """A radial distortion that the lenses lack or have wrong, with their focal lengths; these move too where that pays."""
    if not _refused_for(solution, LENS, METRIC, SHARED):
        return None
    began = clock()
    problem, r = solution.problem, solution.reconstruction
    lenses = Lenses.of(problem.observations.cameras, problem.camera_ids, shared=True)
    still = replace(lenses, free=((),) * len(lenses.free))
    sight, view = with_radial(Sight.of(problem), View(r.R, r.t, r.xyz, still))
    radial = tuple(
        tuple(k for k in camera.extra_params_idxs() if k in own or camera.extra_params_idxs()[:2].count(k))
        for camera, own in zip(view.lenses.cameras, view.lenses.free, strict=True)
    )
    lenses = replace(view.lenses, free=radial)
    agreeing = sight.consensus(IntrinsicsAdjustment(sight.tracks, sight.keypoints, view))
    stage = sight.fit(replace(view, lenses=lenses), agreeing)
    agreeing = sight.consensus(stage)
    stage = sight.fit(stage.view, agreeing)
    everything = tuple((*c.focal_length_idxs(), *k) for c, k in zip(lenses.cameras, radial, strict=True))
    longer = sight.fit(replace(stage.view, lenses=replace(stage.view.lenses, free=everything)), agreeing, QUICK)
    held = not pays(stage, longer, agreeing, FOCAL_SHARE)
    found = recalibrated(problem, r, stage if held else longer, "refined")
    if found is None:
        return None
    if held:
        found = replace(found, problem=replace(found.problem, intrinsics=problem.intrinsics))
    return with_recalibrated(solution, found, began)


def with_own_cameras(search: Search, solution: Solution) -> Solution | None:
    """One focal length an image, of cameras that the input has as one, or that were held to be alike.

    From the lenses as they are and as they were given, whichever fits better: where one focal length had to do for many, the
    distortion was bent with it. Distortion moves where that pays.
    """
    if not _refused_for(solution, METRIC, SHARED):
        return None
    began = clock()
    problem, r = solution.problem, solution.reconstruction
    ids, keypoints = _one_an_image(problem), Sight.of(problem).keypoints
    fits: list[tuple[Sight, IntrinsicsAdjustment]] = []
    for origin in (problem, search.problem) if search.problem.rays else (problem,):
        sight = Sight(problem.tracks, keypoints, _cameras_of(origin, problem.names))
        lenses = Lenses.of(dict(zip(ids.tolist(), sight.given, strict=True)), ids, distortion=False)
        fits.append((sight, sight.fit(View(r.R, r.t, r.xyz, lenses), np.ones(len(keypoints), dtype=bool))))
    sight, stage = min(fits, key=lambda fit: fit[1].data_cost)
    agreeing = sight.consensus(stage)
    stage = sight.fit(stage.view, agreeing)
    bent = Lenses.of(stage.view.lenses.by_id(ids), ids)
    more = sight.fit(replace(stage.view, lenses=bent), agreeing) if bent.numbers.max() > 1 else stage
    stage = more if pays(stage, more, agreeing, DISTORTION_SHARE) else stage
    found = recalibrated(problem, r, stage, "refined", ids)
    if found is None:
        return None
    mended = with_recalibrated(solution, found, began)
    # What such free cameras leave is no matter of focal lengths: principal points that differ, a scene that moves.
    return mended if mended.evidence.projective_ratio <= CLEAR_PROJECTIVE_RATIO else None


def _cameras_of(problem: Problem, names: tuple[str, ...]) -> tuple[pycolmap.Camera, ...]:
    """Of images, as a problem has them."""
    cameras = problem.observations.cameras
    by_name = {image.name: cameras[image.camera_id] for image in problem.observations.images}
    return tuple(by_name[name] for name in names)


def _refused_for(solution: Solution, *checks: str) -> bool:
    """Whether one of these checks is all that stands against a solution, doubts aside, or observations that come near and do
    not fit, where the cameras are none that a lens could make."""
    failed = {finding.check for finding in solution.certificate.findings if not (finding.passed or finding.doubt)}
    if not (solution.problem.calibrated and failed):
        return False
    if failed <= {PURITY, CAMERA_PURITY}:
        return solution.evidence.projective_ratio > MAX_PROJECTIVE_RATIO
    return bool(failed & {*checks}) and failed <= {LENS, METRIC, SHARED}


def _one_an_image(problem: Problem) -> Index:
    """Camera ids, one an image: that of its camera for the first image of each, new ones for the others."""
    ids = problem.camera_ids.copy()
    first = np.unique(ids, return_index=True)[1]
    others = np.setdiff1d(np.arange(len(ids)), first)
    ids[others] = max(problem.observations.cameras) + 1 + np.arange(len(others))
    return ids
