"""Do the images tell the focal length? Not where cameras only shift sideways, or all see one plane head-on.

There a reconstruction fits with any focal length, its depth stretched to match, and nothing else in it looks wrong.
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
"""share of the observations up to which a part of the landmarks is asked first"""
_CLEAR = 4.0
"""times what is significant: so much of a part of the landmarks says it of all"""
_LESS = 0.01
"""share of what the cost has above that of a focal length that fits as well: smaller steps would not lead down to it"""


@dataclass(frozen=True)
class FocalLengths:
    """What different camera models say of the focal length, in pixels: of those that fit about as well the two that differ
    most. Straight ahead, distortion and focal length explain much the same, and the covariance of one model knows nothing
    of the others."""

    shortest: float
    longest: float
    models: tuple[str, str]
    """that say so"""

    @property
    def spread(self) -> float:
        return self.longest / max(self.shortest, 1e-300) - 1.0

    @classmethod
    def of(cls, tried: list[tuple[str, float, float]]) -> "FocalLengths | None":
        """From (model, focal length, cost) of each that was tried; None of fewer than two."""
        least = min((cost for _, _, cost in tried), default=0.0)
        fitting = [(focal, model) for model, focal, cost in tried if cost <= AS_WELL * least]
        if len(fitting) < 2:
            return None
        (shortest, first), (longest, last) = min(fitting), max(fitting)
        return cls(shortest, longest, (first, last))


def focal_rise(problem: Problem, reconstruction: Reconstruction) -> float:
    """How much worse focal lengths a tenth longer fit, everything else adjusted to them.

    Twice the rise of the cost in units of the noise, 2 (E' - E)/σ² with σ² = E/observations, at least (0.1 px)², is about
    the square of the number of standard deviations between the two. Of a part of the landmarks where that says enough: all
    of them would only raise it.
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
    """Whether a rise leaves no doubt that the images tell the focal length, of a part of the landmarks or before a few wrong
    matches are left out: more landmarks, and less noise, would only raise it."""
    return rise is not None and rise > _CLEAR * SIGNIFICANT


def _rise(problem: Problem, reconstruction: Reconstruction) -> float:
    # Held, not fixed: with as many free numbers as other adjustments the same machine code serves.
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
