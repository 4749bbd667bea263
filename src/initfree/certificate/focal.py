"""Do the images tell the focal length? Not where cameras only shift sideways, or all see one plane head-on.

There a reconstruction fits with any focal length, its depth stretched to match, and nothing else in it looks wrong.
"""

from dataclasses import replace

import numpy as np

from initfree.certificate.thresholds import LONGER_FOCAL
from initfree.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.euclidean.residuals import INLIER_PIXELS, robust_cost
from initfree.problem import Problem
from initfree.reconstruction import Reconstruction

_LEAST_NOISE = 0.1
"""pixels: a perfect fit must not make every difference significant"""
_HELD = 1e-6
"""deviation of log f"""
_STEPS = 20


def focal_rise(problem: Problem, reconstruction: Reconstruction) -> float:
    """How much worse focal lengths a tenth longer fit, everything else adjusted to them.

    Twice the rise of the cost in units of the noise, 2 (E' - E)/σ² with σ² = E/observations, at least (0.1 px)², is about
    the square of the number of standard deviations between the two.
    """
    # Held, not fixed: with as many free numbers as other adjustments the same machine code serves.
    free = FreeIntrinsics(focal=True, radial=2, focal_sigma=_HELD)
    limits = AdjustConfig(free=free, scales=(INLIER_PIXELS,), max_iterations=_STEPS, tolerance=1e-6)
    stretch = np.array([1.0, 1.0, LONGER_FOCAL])
    longer = replace(reconstruction, focal=LONGER_FOCAL * reconstruction.focal, t=reconstruction.t * stretch)
    other, _ = adjust(problem.tracks, problem.m, problem.unit, longer, limits, groups=problem.camera_ids)
    cost = robust_cost(problem, reconstruction)
    variance = max(cost / problem.tracks.observations, _LEAST_NOISE**2)
    return 2.0 * (robust_cost(problem, other) - cost) / variance
