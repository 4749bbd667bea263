"""The two linear upgrades of the authors' public code, number for number.

Source: NickGtr/Autocalibration_IsolatedTesting (July 2025), src/libmv.cpp. Both solve for the null vector of the stacked
constraints on ω_i = P_i Ω* P_i' and read H = V diag(√λ1, √λ2, √λ3, 1) off the eigenvalues λ1 >= ... >= λ4 of Ω* (Triggs
1997), whose sign makes their sum positive. Neither rank 3 nor signs are enforced: where λ3 < 0 the square root is NaN, and
the run has failed. The code leaves the scale of the cameras to its caller; here they come at unit norm.
"""

import numpy as np

from initfree.data.tracks import Array
from initfree.stages.upgrade.dual_quadric import PAIRS4, W00, W01, W02, W11, W12, W22, image_of_quadric
from initfree.stages.upgrade.metric import Projective, Upgraded, metric_from_frame, no_upgrade

_PUBLIC_1997 = np.stack([W00 - W11, W01, W02, W12])
_SOFT_2004 = np.stack([(W00 - W22) / 9.0, (W11 - W22) / 9.0, (W00 - W11) / 0.2, W01 / 0.01, W02 / 0.1, W12 / 0.1])


def linear1997_public(scene: Projective) -> Upgraded:
    """`AddProjection_1997paper`: zero skew, unit aspect, principal point in the middle, all of weight 1, in pixels."""
    return _upgraded(scene, scene.unit_pixels, _PUBLIC_1997)


def linear2004(scene: Projective) -> Upgraded:
    """`AddProjection` (libmv; Pollefeys 2004): coordinates divided by width + height, a focal length of about 1 in them
    with weight 1/9, aspect 1/0.2, skew 1/0.01, principal point 1/0.1."""
    sizes = scene.unit_pixels if scene.sizes is None else scene.sizes
    return _upgraded(scene, scene.unit_pixels / sizes, _SOFT_2004)


def _upgraded(scene: Projective, unit: Array, constraints: Array) -> Upgraded:
    """`unit`: what a unit of the scene's coordinates is in those of the constraints, (cameras,)."""
    P = scene.P * np.stack([unit, unit, np.ones_like(unit)], axis=1)[:, :, None]
    P = P / np.linalg.norm(P, axis=(1, 2), keepdims=True)
    system = np.einsum("kc,ncd->nkd", constraints, image_of_quadric(P)).reshape(-1, 10)
    # Ten plain numbers there; here off-diagonal ones come times sqrt(2), and the null vector is of unit norm without.
    plain = np.array([1.0 if a == b else np.sqrt(2.0) for a, b in PAIRS4])
    if len(system) < 10:
        system = np.concatenate([system, np.zeros((10 - len(system), 10))])
    _, s, Vt = np.linalg.svd(system * plain, full_matrices=False)
    q = Vt[-1]
    omega = np.empty((4, 4))
    for value, (a, b) in zip(q, PAIRS4, strict=True):
        omega[a, b] = omega[b, a] = value
    values, vectors = np.linalg.eigh(omega if np.trace(omega) >= 0.0 else -omega)
    values, vectors = values[::-1], vectors[:, ::-1]
    if not values[2] > 0.0:
        return no_upgrade(scene)
    H = vectors * np.sqrt([*values[:3], 1.0])
    X: Array = np.linalg.solve(H, scene.X.T).T.astype(np.float64)
    return metric_from_frame(scene, scene.P @ H, X, None, s / max(float(s[0]), 1e-300))
