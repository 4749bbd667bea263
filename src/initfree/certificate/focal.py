"""Whether the images determine the focal length. They do not if cameras only move sideways, or all face one plane.

A reconstruction then fits with any focal length and stretched depths, and all other figures are good.
"""

from dataclasses import dataclass, replace

import numpy as np

from initfree.certificate.thresholds import LEAST_NOISE, LONGER_FOCAL, SIGNIFICANT
from initfree.data.problem import Problem, restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.thinning import thinned
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.stages.euclidean.residuals import INLIER_PIXELS, robust_cost

AS_WELL = 1.2
"""times the lowest cost: camera models up to it fit about as well"""
_HELD = 1e-6
"""deviation of log f"""
_STEPS = 20
_MOST = 0.6
"""share of the observations up to which a subset of the landmarks is tested first"""
_CLEAR = 4.0
"""multiple of the significant rise from which a subset of the landmarks decides for all"""
_LESS = 0.01
"""share of the excess cost below which steps end: smaller ones would not reach a focal length that fits as well"""


@dataclass(frozen=True)
class FocalLengths:
    """The two most different focal lengths, in pixels, of camera models that fit about as well.

    For motion straight ahead, distortion and focal length explain much of each other, and the covariance within one model
    does not show this."""

    shortest: float
    longest: float
    models: tuple[str, str]
    """of these focal lengths"""

    @property
    def spread(self) -> float:
        return self.longest / max(self.shortest, 1e-300) - 1.0

    @classmethod
    def of(cls, tried: list[tuple[str, float, float]], variance: float = np.inf) -> "FocalLengths | None":
        """From (model, focal length, cost) of each trial; None for fewer than two. `variance` of the noise in pixels²: every
        lens has some distortion, so that a pinhole fits about as well only if it is not significantly worse."""
        least = min((cost for _, _, cost in tried), default=0.0)
        significant = least + 0.5 * SIGNIFICANT * variance
        fitting = [
            (focal, model)
            for model, focal, cost in tried
            if cost <= min(AS_WELL * least, significant if model.endswith("PINHOLE") else np.inf)
        ]
        if len(fitting) < 2:
            return None
        (shortest, first), (longest, last) = min(fitting), max(fitting)
        return cls(shortest, longest, (first, last))


def focal_rise(problem: Problem, reconstruction: Reconstruction) -> float:
    """Rise of the cost with focal lengths a tenth longer, after an adjustment of everything else.

    Twice the rise of the cost in units of the noise, 2 (E' - E)/σ² with σ² = E/observations, at least (0.1 px)², is about
    the squared number of standard deviations between the two. A subset of the landmarks suffices if its rise is clear:
    all of them would only raise it.
    """
    keep = thinned(problem, 0, worthwhile=_MOST)
    found = None if keep is None else restricted(problem, keep)
    if found is not None:
        part, left = found
        rise = _rise(part, reconstruction.subset(slice(None), left))
        if clear(rise):
            return rise
    return _rise(problem, reconstruction)


def clear(rise: float | None) -> bool:
    """Whether a rise is clear even for a subset of the landmarks, or before a few wrong matches are removed: more
    landmarks and less noise would only raise it."""
    return rise is not None and rise > _CLEAR * SIGNIFICANT


def _rise(problem: Problem, reconstruction: Reconstruction) -> float:
    # Held by a prior, not fixed: with the same number of free parameters no other kernel is compiled.
    free = FreeIntrinsics(focal=True, radial=2, focal_sigma=_HELD)
    cost = robust_cost(problem, reconstruction)
    variance = max(cost / problem.tracks.observations, LEAST_NOISE**2)
    limits = AdjustConfig(
        free=free, scales=(INLIER_PIXELS,), max_iterations=_STEPS,
        tolerance=_LESS, floor=cost + 0.5 * SIGNIFICANT * variance,
    )  # fmt: skip
    stretch = np.array([1.0, 1.0, LONGER_FOCAL])
    longer = replace(reconstruction, focal=LONGER_FOCAL * reconstruction.focal, t=reconstruction.t * stretch)
    other, _ = adjust(problem, longer, limits)
    return 2.0 * (robust_cost(problem, other) - cost) / variance
