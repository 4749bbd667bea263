"""Selections between a linear upgrade and its nonlinear refinement."""

import numpy as np

from initfree.stages.upgrade.linear import expected_focal, linear
from initfree.stages.upgrade.linear1997 import linear1997
from initfree.stages.upgrade.metric import Projective, Upgraded
from initfree.stages.upgrade.refined import refined, refined1997

CANDIDATES = {"selected": ("linear1997", "refined1997"), "selected-linear": ("linear", "refined")}
"""what each selection chooses from, by name"""


def selected(scene: Projective) -> Upgraded:
    """The paper's: `linear1997` or its refinement, "based on the cheirality of the resulting solution" (appendix C)."""
    return better(scene, linear1997(scene), refined1997(scene))


def selected_linear(scene: Projective) -> Upgraded:
    """Ours: the frame-free `linear` or its refinement, by the same rule."""
    return better(scene, linear(scene), refined(scene))


def better(scene: Projective, first: Upgraded, second: Upgraded) -> Upgraded:
    """The one with more observations in front of their cameras; a tie goes to the more plausible focal lengths."""

    def rank(metric: Upgraded) -> tuple[float, float]:
        off = np.abs(np.log(metric.reconstruction.focal / expected_focal(scene)))
        return round(metric.positive_depths, 4), -float(np.median(off))

    return max((first, second), key=rank)
