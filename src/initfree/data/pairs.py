"""Image pairs that an input has verified already: the matches that agreed, and what their geometry was found to be."""

from dataclasses import dataclass

from initfree.data.tracks import Array, Index


@dataclass(frozen=True)
class VerifiedPairs:
    """Matches of image pairs (i, j) that agreed with one two-view geometry, and that geometry where the input has it."""

    image: Index
    """(pairs, 2) indices into the input's images"""
    ptr: Index
    """(pairs + 1,) matches of pair n are ptr[n]:ptr[n + 1]"""
    keypoint: Index
    """(matches, 2) keypoints in i and in j"""
    R: Array
    """(pairs, 3, 3) R_j R_i'; not a number where the input has no relative pose"""
    t: Array
    """(pairs, 3) of unit length, x_j = R x_i + t; not a number where the input has none"""
    F: Array
    """(pairs, 3, 3) x_j' F x_i = 0 for pixels; not a number where there is none, or a homography explains the matches"""
