"""The end of a reconstruction: its intrinsics as the images have them, whatever was given."""

import time
from dataclasses import replace

import numpy as np

from initfree.auto.intrinsics import Recalibrated, free_where_it_pays, note, other_notes, refine_intrinsics
from initfree.auto.simplest_camera import simplest_cameras
from initfree.certificate import certify, judge
from initfree.certificate.checks import CERTAIN_CAMERAS, CERTAIN_FOCAL_LENGTH, DETERMINED
from initfree.certificate.evidence import Evidence
from initfree.certificate.focal import focal_rise
from initfree.data.problem import Problem
from initfree.data.recalibration import found_camera, with_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.result import Result, StageReport


def recalibrate(result: Result, given: Problem | None = None) -> Result:
    """Known intrinsics are freed where that explains the images significantly better, guesses are refined, and unknown ones
    become the simplest camera that explains the images; the verdict is that on what comes out.

    `given`: the problem as it was before its intrinsics were doubted, which users are told the difference to.
    """
    began = time.perf_counter()
    found = recalibrated_problem(result.problem, result.reconstruction)
    if found is None:
        return result
    if given is not None and given.calibrated and result.problem.calibrated:
        found = replace(found, note=note(found.problem, "refined", given))
    report = StageReport("intrinsics", time.perf_counter() - began, mean_residual=found.error, residual_unit="pixels")
    return with_recalibrated(result, found, report)


def carried(evidence: Evidence, result: Result) -> Evidence:
    """Evidence on a reconstruction that followed from a result's, with what that knew and a certificate does not."""
    before = result.certificate.evidence
    evidence = replace(
        evidence,
        focal_rise=before.focal_rise,
        confirmed=before.confirmed,
        left_out=before.left_out,
        left_out_because=before.left_out_because,
        taken_back=before.taken_back,
    )
    if before.joint.observations > evidence.joint.observations:
        evidence = replace(evidence, joint=before.joint)  # counted before wrong matches were left out
    return evidence


def recalibrated_problem(problem: Problem, reconstruction: Reconstruction) -> Recalibrated | None:
    """The problem with cameras as the images have them; None where they stay as they are."""
    kind = problem.observations.intrinsics
    if kind == "known":
        return free_where_it_pays(problem, reconstruction)
    if kind == "unknown":
        return simplest_cameras(problem, reconstruction)
    cameras = {
        int(k): found_camera(problem, reconstruction.focal, reconstruction.radial, int(k))
        for k in np.unique(problem.camera_ids)
    }
    begun = with_cameras(problem, cameras)
    if begun is None:
        return None
    part, left = begun
    flat = replace(reconstruction, focal=np.ones_like(reconstruction.focal), radial=np.zeros_like(reconstruction.radial))
    found = refine_intrinsics(part, flat.subset(slice(None), left))
    if found is None:
        return None
    return replace(found, landmarks=left[found.landmarks], note=note(found.problem, "refined", problem))


def with_recalibrated(result: Result, found: Recalibrated, report: StageReport) -> Result:
    """The result with other cameras, certified anew; how it was come by stays as it was.

    What the images do not tell of free intrinsics they do not tell of the cameras that were found for them: a rejected
    reconstruction stays rejected. Unless it was the guess, or the lens without tangential distortion and with its middle in
    that of the image, which kept an array's images from fitting: it is then judged as if the refined cameras had been the
    guess, focal lengths free as before. Or unless it was one camera an image that left it undetermined, and
    fewer explain the images.
    """
    o = result.problem.observations
    if not result.certificate.accepted and (o.intrinsics == "refine" or (o.moments is not None and not o.calibrated)):
        result = _guessed_again(result, found)
    part = result.subset(found.problem, slice(None), found.landmarks, found.reconstruction)
    part = replace(part, stages=(*result.stages, report), notes=(*other_notes(result.notes), found.note))
    before = result.certificate.evidence
    free = not result.problem.calibrated
    if free and not (result.certificate.accepted or result.certificate.doubtful or _too_free(result, found)):
        return part
    # Of free intrinsics the baselines are those that homographies left, whatever cameras were found.
    moving = before.baselines if free else None
    evidence = carried(certify(found.problem, found.reconstruction, moving, found=free).evidence, result)
    if free:
        evidence = replace(evidence, focal_lengths=found.focal_lengths)
    if free and evidence.focal_rise is None:
        evidence = replace(evidence, focal_rise=focal_rise(_as_guess(found.problem), found.reconstruction))
    return replace(part, certificate=judge(evidence))


def _too_free(result: Result, found: Recalibrated) -> bool:
    """Whether nothing stands against a result but that more cameras than were needed leave it undetermined."""
    before, after = (len(np.unique(problem.camera_ids)) for problem in (result.problem, found.problem))
    failed = {finding.check for finding in result.certificate.findings if not finding.passed and not finding.doubt}
    return after < before and failed <= {DETERMINED, CERTAIN_CAMERAS, CERTAIN_FOCAL_LENGTH}


def _as_guess(problem: Problem) -> Problem:
    """The problem with its cameras as a guess that is refined."""
    return replace(problem, observations=replace(problem.observations, intrinsics="refine"))


def _guessed_again(result: Result, found: Recalibrated) -> Result:
    """The result with the verdict on the refined cameras as a guess, if that is better."""
    certificate = certify(_as_guess(found.problem), found.reconstruction)
    if not certificate.accepted:
        return result
    before = result.certificate.evidence
    evidence = replace(
        certificate.evidence,
        left_out=before.left_out,
        left_out_because=before.left_out_because,
        taken_back=before.taken_back,
    )
    if before.joint.observations > found.problem.tracks.observations:
        evidence = replace(evidence, joint=before.joint)
    return replace(result, certificate=judge(evidence))


def moved_principal_points(before: Problem, after: Problem) -> bool:
    """Whether a camera has another principal point now: where images hardly tell it, cameras turn with it."""
    ids = sorted({int(k) for k in before.camera_ids} & {int(k) for k in after.camera_ids})
    cameras = [(before.observations.cameras[k], after.observations.cameras[k]) for k in ids]
    return any((a.principal_point_x, a.principal_point_y) != (b.principal_point_x, b.principal_point_y) for a, b in cameras)
