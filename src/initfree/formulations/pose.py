"""pOSE (Hong and Zach 2018)."""

from initfree.data.tracks import Array
from initfree.formulations.base import LinearFormulation, affine_rows, ose_rows, register, weighted_rows


@register("pose")
class PseudoObjectSpaceError(LinearFormulation):
    """(1-α) |x - z m|² + α |x - m|² (paper, appendix A: pOSE)."""

    def rows(self, m: Array) -> Array:
        return weighted_rows(self.alpha, ose_rows(m), affine_rows(m))
