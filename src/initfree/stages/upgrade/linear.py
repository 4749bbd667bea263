"""The linear upgrade with normalised, whitened cameras and Pollefeys' weights (Pollefeys 2004)."""

import numpy as np

from initfree.data.tracks import Array
from initfree.stages.upgrade.dual_quadric import (
    W00,
    W01,
    W02,
    W11,
    W12,
    W22,
    DualQuadric,
    solve_dual_quadric,
    whitened,
)
from initfree.stages.upgrade.metric import Projective, Upgraded, metric_from_quadric

_CONSTRAINTS = np.stack(
    [
        (W00 - W22) / 9.0,  # focal length within a factor of three of the expected one
        (W11 - W22) / 9.0,
        (W00 - W11) / 0.2,  # aspect ratio 1 ± 0.1
        W01 / 0.01,  # skew 0 ± 0.01
        W02 / 0.1,  # principal point within 0.1 of a focal length
        W12 / 0.1,
    ]
)
_ROUNDS = 6
TYPICAL_FOCAL = 1.5
"""in units of the largest observation, where nothing is known"""


def expected_focal(scene: Projective) -> float:
    """What the weights are centred on: 1 for calibrated rays, a typical lens for scaled pixels."""
    return 1.0 if scene.calibrated else TYPICAL_FOCAL


def linear_quadric(scene: Projective) -> DualQuadric:
    """Ω* in the frame of the scene; weights 1/ω22 of the round before."""
    f = expected_focal(scene)
    P, G = whitened(scene.P / np.array([f, f, 1.0])[:, None])

    def reweight(omega: Array, _: Array) -> Array:
        third = np.abs(omega[:, 5])
        return 1.0 / np.maximum(third, 1e-3 * np.median(third))

    quadric = solve_dual_quadric(P, _CONSTRAINTS, reweight, _ROUNDS)
    return DualQuadric(G @ quadric.Q, quadric.singular_values)


def linear(scene: Projective) -> Upgraded:
    """Six weighted constraints a camera; rank 3 enforced."""
    quadric = linear_quadric(scene)
    return metric_from_quadric(scene, quadric.Q, None, quadric.singular_values)
