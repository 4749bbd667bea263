"""Finishing steps that estimate the intrinsics."""

from dataclasses import replace

import numpy as np

from initfree.auto.intrinsics import Recalibrated, free_where_it_pays, note, other_notes, refine_intrinsics
from initfree.auto.search import Search
from initfree.auto.simplest_camera import simplest_cameras
from initfree.auto.solution import Solution
from initfree.data.observations import GUESS
from initfree.data.problem import Problem
from initfree.data.recalibration import found_camera, with_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.engine.compilation import clock


def recalibrate_guess(search: Search, solution: Solution) -> Solution | None:
    """Refine guessed intrinsics before wrong matches are removed: with a wrong lens, many right matches do not fit.

    Not if verified matches end the solve (`all_matches`): they are more than the tracks.
    """
    guess = solution.problem.rays and not solution.problem.calibrated
    return recalibrate(search, solution) if guess and solution.problem.observations.pairs is None else None


def recalibrate(search: Search, solution: Solution) -> Solution | None:
    """Free given intrinsics if that explains the images significantly better, refine guesses, and replace unknown ones by
    the simplest camera that explains the images; None if they stay."""
    if solution.problem.calibrated and not solution.accepted:
        return None
    return recalibrated(solution, search.problem)


def recalibrated(solution: Solution, given: Problem | None = None) -> Solution | None:
    """`recalibrate` for any solution; `given` is the user's problem, from which the differences are reported."""
    began = clock()
    found = recalibrated_problem(solution.problem, solution.reconstruction)
    if found is None:
        return None
    if given is not None and given.calibrated and solution.problem.calibrated:
        found = replace(found, note=note(found.problem, "refined", given))
    return with_recalibrated(solution, found, began)


def recalibrated_problem(problem: Problem, reconstruction: Reconstruction) -> Recalibrated | None:
    """The problem with cameras estimated from the images; None if they stay."""
    if problem.calibrated:
        return free_where_it_pays(problem, reconstruction)
    if not problem.rays:
        return simplest_cameras(problem, reconstruction)
    shared = _shared_guess(problem, reconstruction)
    if shared is not None:
        return shared
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


def _shared_guess(problem: Problem, reconstruction: Reconstruction) -> Recalibrated | None:
    """Of photographs that are given one guess and several cameras: one camera, of the model that explains the images best,
    where it explains them as well as one an image; None elsewhere."""
    priors, ids = problem.focal_priors, np.unique(problem.camera_ids)
    cameras = [problem.observations.cameras[int(k)] for k in ids]
    if len(ids) < 2 or priors is None or any(one.deviation < GUESS for one in priors):
        return None
    if len({(c.model_name, c.width, c.height, *(float(p) for p in c.params)) for c in cameras}) > 1:
        return None
    found = simplest_cameras(problem, reconstruction)
    if found is None or len(np.unique(found.problem.camera_ids)) == len(ids):
        return None
    return replace(found, note=note(found.problem, "refined", problem))


def with_recalibrated(solution: Solution, found: Recalibrated, began: float) -> Solution:
    """The solution with estimated cameras, which stay as uncertain as free ones."""
    facts = {} if found.focal_lengths is None else {"focal_lengths": found.focal_lengths}
    part = solution.part(found.problem, found.reconstruction, landmarks=found.landmarks, **facts)
    part = replace(part, notes=(*other_notes(solution.notes), found.note))
    return part.reporting("intrinsics", began, mean_residual=found.error, residual_unit="pixels")


def moved_principal_points(before: Problem, after: Problem) -> bool:
    """Whether a principal point has moved: if the images hardly determine it, rotations compensate for it."""
    ids = sorted({int(k) for k in before.camera_ids} & {int(k) for k in after.camera_ids})
    cameras = [(before.observations.cameras[k], after.observations.cameras[k]) for k in ids]
    return any((a.principal_point_x, a.principal_point_y) != (b.principal_point_x, b.principal_point_y) for a, b in cameras)
