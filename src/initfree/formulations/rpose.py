"""RpOSE (Iglesias and Olsson 2021)."""

import numpy as np

from initfree.data.tracks import Array
from initfree.formulations.base import LinearFormulation, affine_rows, register, weighted_rows


@register("rpose")
class RadialObjectSpaceError(LinearFormulation):
    """(1-α) (m⊥'x / |m|)² + α |x - m|², m⊥ = (-m_y, m_x) (paper, appendix A: RpOSE).

    Radial distortion moves an observation along m and changes nothing here. The third row of the cameras does not
    appear: `initfree.stages.refinement.radial` refines the radial error and recovers it. A landmark with n observations
    gives n - 3 radial constraints, so tracks of three give none. If all optical axes meet in one point O, the first two rows
    of every camera vanish there, X_j + c_j O projects like X_j for any c_j, and radial methods fail.
    """

    radial = True

    def rows(self, m: Array) -> Array:
        norm = np.maximum(np.linalg.norm(m, axis=1), 1e-12)
        tangential = np.zeros((len(m), 1, 3))
        tangential[:, 0, 0] = -m[:, 1] / norm
        tangential[:, 0, 1] = m[:, 0] / norm
        return weighted_rows(self.alpha, tangential, affine_rows(m))
