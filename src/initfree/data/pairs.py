"""Image pairs that an input has verified: inlier matches and two-view geometries."""

from dataclasses import dataclass

from initfree.data.tracks import Array, Index


@dataclass(frozen=True)
class VerifiedPairs:
    """Inlier matches of image pairs (i, j), and their two-view geometries if the input has them."""

    image: Index
    """(pairs, 2) indices into the input's images"""
    ptr: Index
    """(pairs + 1,) matches of pair n are ptr[n]:ptr[n + 1]"""
    keypoint: Index
    """(matches, 2) keypoints in i and in j"""
    R: Array
    """(pairs, 3, 3) R_j R_i'; NaN if the input has no relative pose"""
    t: Array
    """(pairs, 3) of unit length, x_j = R x_i + t; NaN if the input has no relative pose"""
    F: Array
    """(pairs, 3, 3) x_j' F x_i = 0 for pixels; NaN if there is none, or if a homography explains the matches"""
