"""Rotation averaging: global rotations from the relative rotations of pairs.

The first rotations minimise Σ_kl w_kl |R_k - R_kl R_l|²_F over matrices R_k, the columns of all of them together
orthonormal (Arie-Nachimson and others 2012): three eigenvectors of a sparse matrix, each camera's block taken to the
nearest rotation. Wrong pairs bias them. Iteratively reweighted least squares on the rotation group then lowers the
weights of pairs that do not agree (Chatterjee and Govindu 2013); each step solves one sparse Laplacian.
"""

import numpy as np
from scipy.sparse import coo_array, csc_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh, splu
from scipy.spatial.transform import Rotation

from initfree.data.reconstruction import nearest_rotation
from initfree.data.tracks import Array
from initfree.formulations.pose_rot import RelativeRotations

_SHIFT = 1e-6
"""below the spectrum of the normalised matrix, which is not negative: the shifted matrix is definite"""
_ROUNDS = 30
_WIDEST, _NARROWEST = 20.0, 1.0
"""degrees: scale of the weights 1/(1 + (angle/scale)²), halved from round to round"""
_STILL = 1e-4
"""degrees: largest rotation of a camera in the last round"""


def turned_cameras(rotations: RelativeRotations, cameras: int) -> Array | None:
    """Initial cameras [R | (0, 0, 1)] (cameras, 3, 4) with averaged rotations, all with the origin a unit in front of them.

    With right rotations pOSE+rot is almost quadratic in the other unknowns: two steps of variable projection suffice, where
    cameras from the covisibility graph take a hundred. None as in `averaged_rotations`.
    """
    R = averaged_rotations(rotations, cameras)
    if R is None:
        return None
    return np.concatenate([R, np.broadcast_to([[0.0], [0.0], [1.0]], (cameras, 3, 1))], axis=2)


def averaged_rotations(rotations: RelativeRotations, cameras: int) -> Array | None:
    """R (cameras, 3, 3), up to one rotation of the world; None if the pairs do not connect all cameras."""
    if connected_components(_graph(rotations, rotations.weight, cameras), directed=False)[0] > 1:
        return None
    R = _spectral(rotations, cameras)
    k, l = rotations.pairs.T
    scale = np.radians(_WIDEST)
    for _ in range(_ROUNDS):
        # R_k' R_kl R_l = exp([ω]×): the rotation, in the world's frame, by which camera k differs from what l predicts.
        apart = Rotation.from_matrix(R[k].transpose(0, 2, 1) @ rotations.R @ R[l]).as_rotvec()
        weight = rotations.weight / (1.0 + np.sum(apart**2, axis=1) / scale**2)
        turn = _least_squares(rotations, weight, apart, cameras)
        R = R @ Rotation.from_rotvec(turn).as_matrix()
        scale = max(0.5 * scale, np.radians(_NARROWEST))
        if np.degrees(np.linalg.norm(turn, axis=1).max()) < _STILL:
            break
    return R


def _graph(rotations: RelativeRotations, weight: Array, cameras: int) -> coo_array:
    k, l = rotations.pairs.T
    return coo_array((weight, (k, l)), shape=(cameras, cameras))


def _spectral(rotations: RelativeRotations, cameras: int) -> Array:
    """The three smoothest vectors of D - A, block (k, l) of A being w_kl R_kl, normalised by D = Σ w."""
    k, l = rotations.pairs.T
    degree = np.bincount(k, rotations.weight, cameras) + np.bincount(l, rotations.weight, cameras)
    blocks = (rotations.weight / np.sqrt(degree[k] * degree[l]))[:, None, None] * rotations.R
    row = np.broadcast_to(3 * k[:, None, None] + np.arange(3)[:, None], blocks.shape).ravel()
    column = np.broadcast_to(3 * l[:, None, None] + np.arange(3), blocks.shape).ravel()
    lower = coo_array((blocks.ravel(), (row, column)), shape=(3 * cameras, 3 * cameras)).tocsc()
    matrix = csc_array(diags_array(np.ones(3 * cameras)) - lower - lower.T)
    first = np.random.default_rng(0).normal(size=3 * cameras)
    _, vectors = eigsh(matrix, k=3, sigma=-_SHIFT, which="LM", v0=first)
    found = vectors.reshape(cameras, 3, 3) / np.sqrt(degree)[:, None, None]
    # The vectors may be mirrored, and then all blocks are, if most pairs agree.
    if np.median(np.linalg.det(found)) < 0.0:
        found[:, :, 2] *= -1.0
    return nearest_rotation(found)


def _least_squares(rotations: RelativeRotations, weight: Array, apart: Array, cameras: int) -> Array:
    """The rotation vectors ω (cameras, 3) that minimise Σ w |ω_k - ω_l - apart_kl|²; that of the first camera is zero."""
    k, l = rotations.pairs.T
    off = _graph(rotations, weight, cameras).tocsc()
    off = csc_array(off + off.T)
    degree = np.asarray(off.sum(axis=0)).reshape(-1)
    laplacian = csc_array(diags_array(degree) - off)[1:, 1:]
    b = np.zeros((cameras, 3))
    np.add.at(b, k, weight[:, None] * apart)
    np.add.at(b, l, -weight[:, None] * apart)
    options = {"SymmetricMode": True}
    factor = splu(csc_array(laplacian), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    return np.concatenate([np.zeros((1, 3)), factor.solve(b[1:])])
