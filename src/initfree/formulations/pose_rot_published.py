"""pOSE+rot as its authors published it (Olsson and others 2025), beside the affine variant of the paper's experiments."""

import numpy as np

from initfree.data.tracks import Array
from initfree.formulations.base import LinearFormulation, homogeneous, ose_rows, register, weighted_rows


@register("pose-rot-published")
class PublishedPoseWithRotations(LinearFormulation):
    """(1-α) |x - z m|² + α r_rot² + β sum_kl |sqrt(W_kl) (R_k R_l' - R_kl)|² (paper, appendix A: pOSE+rot).

    r_rot = (m'x + z)/(|m|² + 1) - 1 pulls the depth along the observation's ray to one and, unlike pOSE's affine
    regulariser, leaves the directions across it free. W_kl is the 3x3 matrix of the pair (`two_view.pair_matrices`).
    """

    uses_rotations = True
    pair_matrices = True

    def rows(self, m: Array) -> Array:
        ray = homogeneous(m)
        along = ray / np.sum(ray * ray, axis=1, keepdims=True)
        return weighted_rows(self.alpha, ose_rows(m), along[:, None, :])
