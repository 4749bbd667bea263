"""Which shared focal length makes projective cameras metric: a grid of them, all at once.

The same reweighted Ω* as `calibrated.calibrated_quadric`, whose null vectors come here from the 10x10 normal equations: half
the digits are more than a search needs, and sixty candidates together take the time of three.
"""

import numpy as np

from initfree.data.tracks import Array
from initfree.stages.upgrade.dual_quadric import CALIBRATED, PAIRS4, REWEIGHTED, image_of_quadric, reweighted
from initfree.stages.upgrade.metric import Projective, quadric_residuals

_WHITENING_ROUNDS = 10
"""as in `refinement.frames`"""


def misfits(scene: Projective, focals: Array) -> Array:
    """(focals,): how far from metric the cameras are with each; see `misfit`."""
    K = np.zeros((len(focals), 3, 3))
    K[:, 0, 0] = K[:, 1, 1] = focals
    K[:, 2, 2] = 1.0
    inverse = 1.0 / np.einsum("fii->fi", K)
    P = scene.P[None] * inverse[:, None, :, None]
    P, G = _whitened(P)
    omega = _quadrics(P)
    values, vectors = np.linalg.eigh(omega)
    roots = np.sqrt(np.maximum(values[:, :0:-1], 1e-12 * np.abs(values[:, -1:])))
    Q = vectors[:, :, :0:-1] * roots[:, None, :]
    # The plane at infinity is orthogonal to Q in the whitened frame, and goes back by the inverse transpose.
    plane = np.asarray(np.linalg.solve(G.transpose(0, 2, 1), vectors[:, :, :1])[:, :, 0], dtype=np.float64)
    M = scene.P[None] @ (G @ Q)[:, None]
    residual = quadric_residuals(M @ M.swapaxes(-1, -2), K[:, None])
    return misfit(np.median(residual, axis=1), _in_front(scene, M, plane))


def misfit(residual: Array | float, positive_depths: Array | float) -> Array:
    """Median dual-quadric residual, made worse by observations behind their cameras.

    The smallest singular value would not do: a focal length that makes all but a few cameras vanish scores zero.
    """
    return np.asarray(residual / np.maximum(2.0 * np.asarray(positive_depths) - 1.0, 1e-3) ** 2)


def _in_front(scene: Projective, M: Array, plane: Array) -> Array:
    """(focals,): share of observations in front of their cameras, of the world or of its mirror image.

    A landmark X is before a camera [M | p] of any projective frame where det(M) (PX)_3 times its distance from the plane at
    infinity is positive.
    """
    t = scene.tracks
    depth = np.sign(np.einsum("nk,nk->n", scene.P[t.cam, 2], scene.X[t.landmark]))
    side = np.sign(np.linalg.det(M))[:, t.cam] * np.sign(plane @ scene.X.T)[:, t.landmark] * depth
    return np.maximum(np.mean(side > 0.0, axis=1), np.mean(side < 0.0, axis=1))


def _whitened(P: Array) -> tuple[Array, Array]:
    """`dual_quadric.whitened` of cameras (focals, cameras, 3, 4)."""
    G = np.broadcast_to(np.eye(4), (len(P), 4, 4))
    for _ in range(_WHITENING_ROUNDS):
        P = P / np.linalg.norm(P, axis=(2, 3), keepdims=True)
        rows = P.reshape(len(P), -1, 4)
        values, vectors = np.linalg.eigh(rows.swapaxes(1, 2) @ rows)
        s = np.sqrt(np.maximum(values, 1e-18 * values[:, -1:]) / (0.75 * P.shape[1]))
        step = vectors / s[:, None, :]
        P, G = P @ step[:, None], G @ step
    return P / np.linalg.norm(P, axis=(2, 3), keepdims=True), G


def _quadrics(P: Array) -> Array:
    """Ω* (focals, 4, 4) of calibrated cameras (focals, cameras, 3, 4)."""
    C = image_of_quadric(P.reshape(-1, 3, 4)).reshape(*P.shape[:2], 6, 10)
    L = CALIBRATED @ C
    weight = np.ones(P.shape[:2])
    q = np.zeros((len(P), 10))
    for number in range(REWEIGHTED):
        system = (L * weight[:, :, None, None]).reshape(len(P), -1, 10)
        q = np.linalg.eigh(system.swapaxes(1, 2) @ system)[1][:, :, 0]
        omega = (C @ q[:, None, :, None])[..., 0]
        sign = np.where(np.median(omega[:, :, [0, 3, 5]].sum(axis=2), axis=1) < 0.0, -1.0, 1.0)
        q, omega = q * sign[:, None], omega * sign[:, None, None]
        weight = reweighted(number, omega, np.linalg.norm((L @ q[:, None, :, None])[..., 0], axis=2))
    result = np.empty((len(P), 4, 4))
    for value, (a, b) in zip(q.T, PAIRS4, strict=True):
        result[:, a, b] = result[:, b, a] = value if a == b else value / np.sqrt(2.0)
    return result
