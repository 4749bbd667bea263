"""pOSE+rot (Olsson and others 2025), with the affine regulariser as in the paper's experiments."""

from dataclasses import dataclass

import numpy as np

from initfree.data.tracks import Array, Index
from initfree.engine.kernels import kernel
from initfree.formulations.base import register
from initfree.formulations.pose import PseudoObjectSpaceError


@register("pose-rot")
class PoseWithRotations(PseudoObjectSpaceError):
    """pOSE plus β sum_kl W_kl |R_k R_l' - R_kl|², R_k the left 3x3 of the calibrated camera P_k."""

    uses_rotations = True


@dataclass(frozen=True)
class RelativeRotations:
    """R_kl with R_k = R_kl R_l for camera pairs (k, l), k > l, and their weights."""

    pairs: Index
    """(pairs, 2)"""
    R: Array
    """(pairs, 3, 3)"""
    weight: Array
    """(pairs,) number of observations that support the rotation"""
    matrix: Array | None = None
    """(pairs, 3, 3) W_kl, unless it is the weight times the identity"""


class RotationTerm:
    """β/2 sum_kl |sqrt(W_kl) (R_k R_l' - R_kl)|²_F: a cost on pairs of cameras (`reduced_system.CameraTerm`).

    W_kl is the matrix of the pair, or the number of shared landmarks: an error θ of a relative rotation moves each of
    them by about θ in calibrated coordinates, so β = 1 weighs the rotations like the observations that they come from.
    """

    def __init__(self, rotations: RelativeRotations, beta: float) -> None:
        self.rotations = rotations
        W = rotations.weight[:, None, None] * np.eye(3) if rotations.matrix is None else rotations.matrix
        self._W = beta * W

    def _difference(self, P: Array) -> tuple[Array, Array, Array]:
        Rk = P[self.rotations.pairs[:, 0], :, :3]
        Rl = P[self.rotations.pairs[:, 1], :, :3]
        return Rk, Rl, Rk @ Rl.transpose(0, 2, 1) - self.rotations.R

    def cost(self, P: Array) -> float:
        D = self._difference(P)[2]
        return 0.5 * float(np.einsum("nij,nik,nkj->", D, self._W, D))

    @property
    def pairs(self) -> Index:
        return self.rotations.pairs

    def add(self, P: Array, number: Index, diagonal: Index, blocks: Array, gradient: Array) -> None:
        Rk, Rl, D = self._difference(P)
        _add_rotation_blocks(
            self.rotations.pairs, number, diagonal, self._W, Rk, Rl, self._W @ Rk, self._W @ D, blocks, gradient
        )


@kernel()
def _add_rotation_blocks(pairs, number, diagonal, W, Rk, Rl, WRk, WD, blocks, gradient):
    """Gauss-Newton blocks of tr(D'W D), D = R_k R_l' - R_kl: dD = dR_k R_l' + R_k dR_l'."""
    for n in range(pairs.shape[0]):
        k, l = pairs[n, 0], pairs[n, 1]
        own_k, own_l, shared = blocks[diagonal[k]], blocks[diagonal[l]], blocks[number[n]]
        for a in range(3):
            for c in range(3):
                gk = gl = 0.0
                for b in range(3):
                    gk += WD[n, a, b] * Rl[n, b, c]
                    gl += WD[n, b, a] * Rk[n, b, c]
                gradient[k, a, c] += gk
                gradient[l, a, c] += gl
        for c in range(3):
            for e in range(3):
                sk = sl = 0.0
                for b in range(3):
                    sk += Rl[n, b, c] * Rl[n, b, e]
                    sl += Rk[n, b, c] * WRk[n, b, e]
                for a in range(3):
                    own_l[4 * a + c, 4 * a + e] += sl
                    for b in range(3):
                        own_k[4 * a + c, 4 * b + e] += W[n, a, b] * sk
        for a in range(3):
            for c in range(3):
                for b in range(3):
                    for e in range(3):
                        shared[4 * a + c, 4 * b + e] += Rl[n, b, c] * WRk[n, a, e]
