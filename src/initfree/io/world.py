"""Axes for a reconstruction in an arbitrary frame: y down, the cameras around the origin, their extent 10.

Photographers hold cameras level: the horizontal axis x of most images is perpendicular to gravity, for any direction and
tilt. So gravity g minimises the mean (g·x_k)². If all x_k are parallel (a camera that moves sideways), a small share of
the mean (g·y_k)², with the image's downward axis y_k, decides.
"""

import numpy as np
import pycolmap

from initfree.data.tracks import Array

_TILT = 0.01
"""weight of the images' own downward axes against level horizons"""


def downwards(R: Array) -> Array:
    """Gravity (3,) in the world of cameras x = R X + t."""
    x, y = R[:, 0], R[:, 1]
    g = np.linalg.eigh(x.T @ x - _TILT * y.T @ y)[1][:, 0]
    return g if np.sum(y @ g) >= 0.0 else -g


def upright(reconstruction: pycolmap.Reconstruction) -> None:
    """Turn, move and scale the model: y points down as in COLMAP's images, z as the first image by name looks, and the
    registered images extend over 10 units around the origin (`Reconstruction.normalize`). The unit stays arbitrary.
    """
    images = sorted(reconstruction.images.values(), key=lambda image: image.name)
    poses = [image.cam_from_world() for image in images if image.has_pose]
    if not poses:
        return
    R = np.array([pose.rotation.matrix() for pose in poses])
    down = downwards(R)
    level = R[:, 2] - np.outer(R[:, 2] @ down, down)
    # Of the first image that does not look straight down or up; failing that, as the first image's top edge.
    usable = np.flatnonzero(np.linalg.norm(level, axis=1) > 0.1)
    forward = level[usable[0]] if len(usable) else np.cross(R[0, 0], down)
    forward = forward / np.linalg.norm(forward)
    turn = np.stack([np.cross(down, forward), down, forward])
    reconstruction.transform(pycolmap.Sim3d(1.0, pycolmap.Rotation3d(turn), np.zeros(3)))
    reconstruction.normalize()
