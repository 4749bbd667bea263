"""Projective frames: cameras and homogeneous landmarks, each up to scale, together up to a 4x4 transform."""

import numpy as np

from initfree.data.tracks import Array

_WHITENING_ROUNDS = 10
"""Scaling the cameras to unit norm and whitening their rows take turns; this many agree to about four digits."""


def cameras_on_spheres(P: Array) -> Array:
    """Every camera scaled to unit norm."""
    return P / np.linalg.norm(P, axis=(1, 2), keepdims=True)


def on_spheres(P: Array, X: Array) -> tuple[Array, Array]:
    """Every camera and every landmark scaled to unit norm."""
    return cameras_on_spheres(P), X / np.linalg.norm(X, axis=1, keepdims=True)


def whitening(P: Array) -> tuple[Array, Array]:
    """G and its inverse: P G has rows whose covariance is the identity, so that its cameras are well apart.

    Stage 1 ends in an arbitrary affine frame, in which the cameras may be nearly equal.
    """
    G, inverse = np.eye(4), np.eye(4)
    for _ in range(_WHITENING_ROUNDS):
        P = cameras_on_spheres(P)
        _, s, Vt = np.linalg.svd(P.reshape(-1, 4), full_matrices=False)
        s = np.maximum(s, 1e-9 * s[0]) / np.sqrt(3.0 * len(P) / 4.0)
        P = P @ (Vt.T / s)
        G, inverse = G @ (Vt.T / s), (s[:, None] * Vt) @ inverse
    return G, inverse
