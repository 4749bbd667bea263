"""The weight matrix W_kl of a relative rotation in pOSE+rot: its certainty in each direction."""

import numpy as np

from initfree.data.problem import Problem
from initfree.data.tracks import Array
from initfree.formulations.pose_rot import RelativeRotations
from initfree.two_view.geometry import MAX_ERROR

_ROUNDS = 10


def pair_matrices(problem: Problem, rotations: RelativeRotations) -> Array:
    """W_kl (pairs, 3, 3), one for each relative rotation, from the matches of its two images."""
    focal = float(np.median(problem.unit))
    W = np.empty((len(rotations.pairs), 3, 3))
    for n, ((k, l), R) in enumerate(zip(rotations.pairs.tolist(), rotations.R, strict=True)):
        matches = problem.tracks.matches(k, l)
        W[n] = confidence(rotation_hessian(problem.m[matches[:, 0]], problem.m[matches[:, 1]], R, MAX_ERROR / focal))
    return W


def confidence(H: Array) -> Array:
    """W = 1/2 tr(H) I - H, for which |sqrt(W) (exp([ω]) - I)|²_F = ω'Hω to second order in ω.

    |sqrt(W) [ω]|²_F = ω'(tr(W) I - W) ω. W would be indefinite if one direction were more certain than the other two
    together; the result is the nearest semidefinite matrix.
    """
    values, vectors = np.linalg.eigh(0.5 * np.trace(H) * np.eye(3) - H)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def rotation_hessian(mk: Array, ml: Array, R: Array, threshold: float) -> Array:
    """Gauss-Newton Hessian (3, 3) of the pair's object-space error with respect to a rotation ω of R.

    The pair's error is sum_j |A_l X_j|² + |A_k (R X_j + t)|² with A = [I, -m] and X_j on the ray of l at the depth that t
    implies. Landmarks and translation are eliminated, so that H is the information on the rotation alone. Lengths are in
    median depths, as in the object-space error. Matches farther than `threshold` from their epipolar line are not used.
    """
    ray_k, ray_l = (np.column_stack([m, np.ones(len(m))]) for m in (mk, ml))
    turned = ray_l @ R.T
    t, distance = _translation(turned, ray_k, threshold)
    used = distance <= threshold
    # z_l R m_l + t ~ m_k: the depth in l, least squares over the two rows of A_k.
    depth = _depths(turned[used], ray_k[used], t)
    if np.count_nonzero(depth > 0.0) < np.count_nonzero(depth < 0.0):
        t, depth = -t, -depth
    front = depth > 0.0
    if front.sum() < 3:
        return np.zeros((3, 3))
    scale = float(np.median(depth[front]))
    turned, ray_k, ray_l = turned[used][front], ray_k[used][front], ray_l[used][front]
    point = turned * (depth[front] / scale)[:, None]
    A_k, A_l = _rows(ray_k), _rows(ray_l)
    # Columns: ω (d(RX) = ω x RX), t, and each landmark, by QR of its own four rows.
    J = np.zeros((len(point), 4, 6))
    J[:, 2:, :3] = -A_k @ _cross(point)
    J[:, 2:, 3:] = A_k
    L = np.concatenate([A_l, A_k @ R], axis=1)
    # Projecting out the landmark's three columns leaves one of its four rows.
    left = np.linalg.svd(L)[0][:, :, 3]
    E = np.einsum("nr,nrc->nc", left, J)
    S = E.T @ E
    # The pseudo-inverse eliminates the translation, whose length is free.
    return S[:3, :3] - S[:3, 3:] @ np.linalg.pinv(S[3:, 3:], rcond=1e-9) @ S[3:, :3]


def _translation(turned: Array, ray_k: Array, threshold: float) -> tuple[Array, Array]:
    """The unit t that most matches agree with, and the distance of each from its epipolar line.

    Least absolute distances by reweighting: m_k'(t x R m_l) = 0 is linear in t.
    """
    normal = np.cross(turned, ray_k)
    weight = np.ones(len(normal))
    t, distance = np.array([0.0, 0.0, 1.0]), np.zeros(len(normal))
    for _ in range(_ROUNDS):
        t = np.linalg.svd(normal * weight[:, None], full_matrices=False)[2][-1]
        slope = np.linalg.norm(np.cross(t, turned)[:, :2], axis=1).clip(1e-12)
        distance = np.abs(normal @ t) / slope
        weight = 1.0 / (slope * np.sqrt(np.maximum(distance, 0.1 * threshold)))
    return t, distance


def _depths(turned: Array, ray_k: Array, t: Array) -> Array:
    a, b = (np.einsum("nij,nj->ni", _rows(ray_k), v) for v in (turned, np.broadcast_to(t, turned.shape)))
    return -np.sum(a * b, axis=1) / np.sum(a * a, axis=1).clip(1e-300)


def _rows(ray: Array) -> Array:
    """A = [I, -m] of the object-space error, (n, 2, 3)."""
    A = np.zeros((len(ray), 2, 3))
    A[:, 0, 0] = A[:, 1, 1] = 1.0
    A[:, :, 2] = -ray[:, :2]
    return A


def _cross(v: Array) -> Array:
    """[v]x with [v]x w = v x w."""
    result = np.zeros((len(v), 3, 3))
    result[:, [0, 1, 2], [1, 2, 0]] = -v[:, [2, 0, 1]]
    result[:, [1, 2, 0], [0, 1, 2]] = v[:, [2, 0, 1]]
    return result
