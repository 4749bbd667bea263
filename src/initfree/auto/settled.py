"""A result with its intrinsics settled: refined, freed where it pays, or found; and the verdict on that."""

import time
from dataclasses import replace

from initfree.auto.intrinsics import Recalibrated, free_where_it_pays, refine_intrinsics
from initfree.auto.simplest_camera import simplest_cameras
from initfree.certificate import Certificate, certify, judge
from initfree.result import Result, StageReport


def settle_intrinsics(result: Result) -> Result:
    """The last stage. The result as it was where nothing is gained.

    Unknown intrinsics of an accepted reconstruction become the simplest camera that explains the images; a guess
    (`intrinsics="refine"`) is refined, accepted or not; known ones of an accepted reconstruction are freed where that pays.
    """
    problem, reconstruction = result.problem, result.reconstruction
    began = time.perf_counter()
    if problem.observations.intrinsics == "refine":
        found = refine_intrinsics(problem, reconstruction)
    elif not result.accepted:
        return result
    elif problem.calibrated:
        found = free_where_it_pays(problem, reconstruction)
    else:
        found = simplest_cameras(problem, reconstruction)
    return result if found is None else _the_better(result, found, time.perf_counter() - began)


def refined(result: Result) -> Result | None:
    """Intrinsics that contradict the images, refined; None unless the verdict is then that they agree."""
    began = time.perf_counter()
    found = refine_intrinsics(result.problem, result.reconstruction)
    if found is None:
        return None
    better = _the_better(result, found, time.perf_counter() - began)
    return better if better is not result and better.accepted else None


def _the_better(result: Result, found: Recalibrated, seconds: float) -> Result:
    certificate = _certified(result, found)
    before = result.certificate
    if (before.accepted, before.margin) > (certificate.accepted, certificate.margin) and not certificate.accepted:
        return result
    report = StageReport(
        "intrinsics", seconds, mean_residual=found.error, residual_unit="pixels", mean_pixels=found.error
    )  # fmt: skip
    part = result.subset(found.problem, slice(None), found.landmarks, found.reconstruction)
    return replace(part, certificate=certificate, stages=(*result.stages, report), notes=(*result.notes, found.note))


def _certified(result: Result, found: Recalibrated) -> Certificate:
    """What was known of the result stays known: how it was come by, and whether its images tell a focal length."""
    before = result.certificate.evidence
    after = certify(found.problem, found.reconstruction, before.baselines).evidence
    return judge(
        replace(
            after,
            calibrated=before.calibrated,
            focal_rise=before.focal_rise,
            confirmed=before.confirmed,
            left_out=before.left_out,
            left_out_because=before.left_out_because,
            taken_back=before.taken_back,
        )
    )
