"""Are the given intrinsics right? A true reconstruction loses almost nothing by being calibrated.

Projective cameras fit the images for any intrinsics; Euclidean cameras fit as well only with the right ones. If they fit
much worse, the intrinsics are refined, and if that fails, estimated from nothing.
"""

from dataclasses import replace

import numpy as np

from initfree.auto.calibration import moved_principal_points, with_recalibrated
from initfree.auto.guesses import continued_guess, guessed_start
from initfree.auto.intrinsics import principal_points_told, refine_intrinsics
from initfree.auto.ranking import best_attempt
from initfree.auto.search import Search
from initfree.auto.solution import Solution
from initfree.auto.start import run_start
from initfree.certificate.freer import euclidean_to_projective
from initfree.data.observations import scaled_keypoints
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.engine.compilation import clock
from initfree.engine.losses import Cauchy
from initfree.stages.euclidean.residuals import INLIER_PIXELS, residuals
from initfree.stages.pipeline import on_pairs

SUSPICIOUS = 1.5
"""Euclidean over projective robust cost: 0.98-1.2 for true reconstructions, 3.4 for intrinsics known to be wrong"""
CLOSE = 0.5
"""pixels: median error below which the intrinsics are not doubted"""
_AS_WELL = 1.05
"""ratio of robust costs up to which one reconstruction fits as well as another"""
_GUESSES = 2
"""starts with free intrinsics: from guessed focal lengths, and continued from there"""


def doubt_intrinsics(search: Search, solution: Solution) -> Solution:
    """The same solution if its intrinsics fit; else one with refined or free intrinsics that fits much better, and a
    note."""
    accepted, evidence = solution.accepted, solution.evidence
    # A wrong lens makes errors of neighbouring observations agree; noise does not.
    fits = accepted and (evidence.median_pixels < CLOSE or evidence.systematic == 0.0)
    if fits or not solution.problem.calibrated:
        return solution
    ratio = euclidean_to_projective(solution.problem, solution.reconstruction)
    if ratio < SUSPICIOUS:
        # Distortion that is not as given keeps projective cameras from the images as well. Before what does not fit is left
        # out: with wrong lenses that is a quarter of what is right.
        refined = _refined(solution)
        return solution if refined is None or not refined.accepted else refined
    doubt = f"the given intrinsics look wrong: with them, the images fit {ratio:.1f} times worse than without any"
    better = _better(search, solution)
    if better is None and not (accepted or solution.doubtful):
        # A wrong optimum fits badly too, with the right intrinsics.
        return solution
    if better is None:
        better = solution.adding(intrinsics_doubt=doubt)
    return replace(better, notes=(doubt, *better.notes))


def _better(search: Search, solution: Solution) -> Solution | None:
    """The solution with refined intrinsics, or with none of the given ones.

    If the images do not determine the principal point, it stays where it was given and the cameras rotate instead. If it
    had to move, a solution with central principal points is preferred if it fits as well.
    """
    refined = _refined(solution)
    if refined is not None and _determined(solution, refined):
        return refined
    freely = _solved_freely(search, solution)
    if refined is None or freely is None:
        return refined or freely
    return freely if freely.accepted and freely.cost <= _AS_WELL * refined.cost else refined


def _determined(solution: Solution, refined: Solution) -> bool:
    """Whether the images determine the refined principal points, or these are the given ones."""
    if not moved_principal_points(solution.problem, refined.problem):
        return True
    return refined.accepted and principal_points_told(refined.problem, refined.reconstruction, _AS_WELL)


def _refined(solution: Solution) -> Solution | None:
    """The reconstruction with refined intrinsics, if it is accepted or doubtful and fits much better."""
    began = clock()
    found = refine_intrinsics(solution.problem, solution.reconstruction)
    if found is None:
        return None
    given = solution.problem, solution.reconstruction
    before, after = _costs_where_one_agrees(given, (found.problem, found.reconstruction))
    if SUSPICIOUS * after > before:
        return None
    refined = with_recalibrated(solution, found, began)
    return refined if refined.accepted or refined.doubtful else None


def _costs_where_one_agrees(*both: tuple[Problem, Reconstruction]) -> list[float]:
    """Robust costs of the observations within 4 px of either reconstruction: wrong matches cost both the same, and would
    hide the gain of one."""
    pixels = int(max(problem.keypoint.max() for problem, _ in both)) + 1
    place = [problem.images[problem.tracks.cam] * pixels + problem.keypoint for problem, _ in both]
    error = [residuals(problem, reconstruction).error for problem, reconstruction in both]
    near = np.union1d(*(rows[e <= INLIER_PIXELS] for rows, e in zip(place, error, strict=True)))
    loss = Cauchy(INLIER_PIXELS)
    return [loss.total(e[np.isin(rows, near)] ** 2) for rows, e in zip(place, error, strict=True)]


def without_intrinsics(problem: Problem) -> Problem:
    """The same observations as pixels from the image centres, scaled to about [-1, 1]."""
    o = problem.observations
    normalised, unit = scaled_keypoints(list(o.images), o.cameras, o.image, o.keypoint)
    image = problem.images[problem.tracks.cam]
    place = {pair: n for n, pair in enumerate(zip(o.image.tolist(), o.keypoint.tolist(), strict=True))}
    row = [place[pair] for pair in zip(image.tolist(), problem.keypoint.tolist(), strict=True)]
    observations = replace(o, normalised=normalised, image_unit=unit)
    return replace(problem, observations=observations, m=normalised[row], unit=unit[image], intrinsics="free", rays=False)


def _solved_freely(search: Search, solution: Solution) -> Solution | None:
    """A new solution with free focal lengths and distortion that fits much better, and is accepted if the other is.

    The better one of two problems: with the given principal points and distortion, and with no given intrinsics."""
    candidates: list[Solution] = []
    for problem in (replace(solution.problem, intrinsics="free"), without_intrinsics(solution.problem)):
        attempts = _guessed_attempts(search, problem)
        if not attempts:
            continue
        best = best_attempt(problem, attempts)
        if SUSPICIOUS * best.cost <= solution.cost and (best.accepted or not solution.accepted):
            candidates.append(best)
    return min(candidates, key=lambda one: (not one.accepted, one.cost), default=None)


def _guessed_attempts(search: Search, problem: Problem) -> list[Solution]:
    """Solutions from guessed focal lengths, and continued from there unless the first is accepted."""
    again = search.again(problem)
    start = guessed_start(problem, search.config, on_pairs(search.on_progress))
    while start is not None and len(again.attempts) < _GUESSES:
        outcome = run_start(problem, start, lambda: again.baselines, search.on_progress)
        again.keep(outcome)
        if not isinstance(outcome, Solution):
            break
        start = None if outcome.accepted else continued_guess(search.config, outcome.intermediate.P)
    search.started += again.started
    return again.attempts
