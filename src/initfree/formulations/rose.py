"""rOSE (Hong and Zach 2018)."""

import numpy as np

from initfree.data.tracks import Array
from initfree.formulations.base import LinearFormulation, ose_rows, register, weighted_rows


@register("rose")
class RegularisedObjectSpaceError(LinearFormulation):
    """(1-α) |x - z m|² + α (z - 1)² (paper, appendix A: rOSE)."""

    def rows(self, m: Array) -> Array:
        depth = np.zeros((len(m), 1, 3))
        depth[:, 0, 2] = 1.0
        return weighted_rows(self.alpha, ose_rows(m), depth)
