"""The linear upgrade as the paper appears to use it (Triggs 1997; Pollefeys 1999)."""

import numpy as np

from initfree.data.tracks import Array
from initfree.stages.upgrade.dual_quadric import (
    W00,
    W01,
    W02,
    W11,
    W12,
    DualQuadric,
    image_of_quadric,
    solve_dual_quadric,
    whitened,
)
from initfree.stages.upgrade.metric import Projective, Upgraded, metric_from_quadric

_CONSTRAINTS = np.stack([W00 - W11, W01, W02, W12])
_RANK = 1e-9
"""of the largest singular value: below, it is zero but for rounding"""


def linear1997(scene: Projective) -> Upgraded:
    """Zero skew, unit aspect, principal point at the origin, each unweighted, in whatever frame the cameras are.

    Kept as the reference it is: the answer depends on the projective frame, and where all optical axes meet in one point
    O the system is degenerate, because P_i O ~ e3 puts OO' in its null space.
    """
    quadric = quadric1997(scene)
    return metric_from_quadric(scene, quadric.Q, None, quadric.singular_values)


def quadric1997(scene: Projective) -> DualQuadric:
    """Ω* in the frame of the scene."""
    return solve_dual_quadric(scene.P, _CONSTRAINTS, lambda omega, _: np.ones(len(omega)), rounds=1)


def nullity(P: Array) -> int:
    """Dimension of the null space of the linear system at cameras P (cameras, 3, 4), true ones: 1 where it determines Ω*.

    With 2 or more a whole family of quadrics satisfies every constraint, and rounding decides which one comes out.
    """
    system = np.einsum("kc,ncd->nkd", _CONSTRAINTS, image_of_quadric(whitened(P)[0])).reshape(-1, 10)
    s = np.linalg.svd(system, compute_uv=False)
    return 10 - int(np.count_nonzero(s > _RANK * s[0]))
