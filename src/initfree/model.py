"""A metric reconstruction as arrays: what an estimate and its truth have in common."""

from dataclasses import dataclass

from initfree.tracks import Array, Index


@dataclass(frozen=True)
class MetricModel:
    """Cameras x = R X + t by image name, landmarks by id."""

    names: tuple[str, ...]
    R: Array
    """(cameras, 3, 3), world to camera"""
    t: Array
    """(cameras, 3)"""
    ids: Index
    """(landmarks,)"""
    xyz: Array
    """(landmarks, 3)"""

    @property
    def centres(self) -> Array:
        """Camera centres -R't, (cameras, 3)."""
        return -(self.R.transpose(0, 2, 1) @ self.t[:, :, None])[:, :, 0]
