"""The linear upgrade as the paper appears to use it (Triggs 1997; Pollefeys 1999)."""

import numpy as np

from initfree.upgrade.dual_quadric import W00, W01, W02, W11, W12, solve_dual_quadric
from initfree.upgrade.metric import Projective, Upgraded, metric_from_quadric

_CONSTRAINTS = np.stack([W00 - W11, W01, W02, W12])


def linear1997(scene: Projective) -> Upgraded:
    """Zero skew, unit aspect, principal point at the origin, each unweighted, in whatever frame the cameras are.

    Kept as the reference it is: the answer depends on the projective frame, and where all optical axes meet in one point
    O the system is degenerate, because P_i O ~ e3 puts OO' in its null space.
    """
    quadric = solve_dual_quadric(scene.P, _CONSTRAINTS, lambda omega, _: np.ones(len(omega)), rounds=1)
    return metric_from_quadric(scene, quadric.Q, None, quadric.singular_values)
