"""Compact numbers for a page: base64 of 16-bit steps."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from initfree.data.reconstruction import nearest_rotation
from initfree.data.tracks import Array

_OUTSIDE = 65535
_STEPS = 65534.0


@dataclass(frozen=True)
class Box:
    """A cube; points outside are not in the page."""

    origin: Array
    side: float

    @classmethod
    def around(cls, points: Array, times: float) -> "Box":
        """`times` as far as the farthest point is from the middle, in each direction."""
        centre = points.mean(axis=0)
        half = times * max(float(np.linalg.norm(points - centre, axis=1).max()), 1e-9)
        return cls(centre - half, 2.0 * half)

    def to_json(self) -> dict[str, Any]:
        return {"origin": [float(f"{v:.6g}") for v in self.origin], "side": float(f"{self.side:.6g}")}

    def places(self, points: Array) -> NDArray[np.uint16]:
        """Steps of 1/65534 of the side, of points (..., 3); what lies outside, or nowhere, is marked in all coordinates."""
        share = (points - self.origin) / self.side
        inside = np.isfinite(share).all(axis=-1) & (share >= 0.0).all(axis=-1) & (share <= 1.0).all(axis=-1)
        steps = np.full(points.shape, _OUTSIDE, dtype="<u2")
        steps[inside] = np.round(share[inside] * _STEPS)
        return steps


def turns(R: Array) -> NDArray[np.uint16]:
    """Quaternions (x, y, z, w) of rotations (..., 3, 3); what is no rotation becomes the nearest."""
    proper = np.where(np.isfinite(R).all(axis=(-2, -1))[..., None, None], R, np.eye(3))
    quaternions = Rotation.from_matrix(nearest_rotation(proper).reshape(-1, 3, 3)).as_quat().reshape(*R.shape[:-2], 4)
    return np.round((quaternions + 1.0) * 32767.0).astype("<u2")


def encoded(*parts: NDArray[Any]) -> str:
    """Base64 of arrays, one after the other."""
    return base64.b64encode(b"".join(part.tobytes() for part in parts)).decode()
