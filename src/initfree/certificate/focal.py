"""Do the images tell the focal length? Not where cameras only shift sideways, or all see one plane head-on.

There a reconstruction fits with any focal length, its depth stretched to match, and nothing else in it looks wrong.
"""

from dataclasses import replace

import numpy as np

from initfree.auto.repair import robust_cost
from initfree.certificate.verdict import INLIER_PIXELS, Certificate, certify
from initfree.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.problem import Problem
from initfree.upgrade.metric import Metric

LONGER = 1.1
"""factor by which another focal length must not fit"""
SIGNIFICANT = 25.0
"""squared deviations by which it must fit worse"""
_LEAST_NOISE = 0.1
"""pixels: a perfect fit must not make every difference significant"""
_STEPS = 20


def verify(problem: Problem, metric: Metric) -> Certificate:
    """The verdict on a reconstruction: the certificate, and whether its focal lengths are told."""
    return with_focal_told(problem, metric, certify(problem, metric))


def with_focal_told(problem: Problem, metric: Metric, certificate: Certificate) -> Certificate:
    """The certificate, rejected where focal lengths a tenth longer fit as well.

    Twice the rise of the cost in units of the noise, 2 (E' - E)/σ² with σ² = E/observations, at least (0.1 px)², is about
    the square of the number of deviations between the two.
    """
    if problem.calibrated or not (certificate.accepted or certificate.doubtful):
        return certificate
    limits = AdjustConfig(free=FreeIntrinsics(radial=2), scales=(INLIER_PIXELS,), max_iterations=_STEPS, tolerance=1e-6)
    longer = replace(metric, focal=LONGER * metric.focal, t=metric.t * np.array([1.0, 1.0, LONGER]))
    other, _ = adjust(problem.tracks, problem.m, problem.unit, longer, limits, groups=problem.camera_ids)
    cost = robust_cost(problem, metric)
    variance = max(cost / problem.tracks.observations, _LEAST_NOISE**2)
    if 2.0 * (robust_cost(problem, other) - cost) >= SIGNIFICANT * variance:
        return certificate
    reason = f"the images do not tell the focal length: one {LONGER - 1.0:.0%} longer fits as well, with other depths"
    return replace(certificate, accepted=False, doubtful=False, reason=reason)
