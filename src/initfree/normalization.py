"""Keypoints as numbers of order one, where intrinsics are unknown."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from initfree.problem import Image
from initfree.tracks import Array, Index


def scaled_keypoints(
    images: Sequence[Image], cameras: dict[int, Any], image_of: Index, keypoint_of: Index
) -> tuple[Array, Array]:
    """Pixels from the image's centre, scaled by the largest of all: intrinsics unknown, distortion ignored."""
    centred = np.empty((len(image_of), 2))
    for k, image in enumerate(images):
        camera = cameras[image.camera_id]
        here = image_of == k
        centred[here] = image.keypoints[keypoint_of[here]] - (camera.width / 2.0, camera.height / 2.0)
    scale = float(np.abs(centred).max(initial=1.0))
    return centred / scale, np.full((len(images), 2), scale)
