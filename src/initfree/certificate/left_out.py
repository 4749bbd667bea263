"""Do images that were left out belong to the reconstruction after all?

What one image shows may be bad. But where the landmarks of the others place it, from many observations that fit, the image
is not: it contradicts how the others are joined. In a folded reconstruction the images that show how the parts lie indeed
look wrong, and the fold is consistent without them.
"""

from collections.abc import Sequence

import numpy as np
import pycolmap

from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.stages.euclidean.residuals import INLIER_PIXELS

MANY, SHARE = 30, 0.6
"""observations that fit, and their share of those on landmarks of the others, with which an image belongs to them"""


def fitting(problem: Problem, reconstruction: Reconstruction, names: Sequence[str]) -> list[tuple[str, int, int]]:
    """Of the images that belong to the reconstruction: name, observations that fit one pose, and all on its landmarks.

    The problem may be of some of the images: it knows nothing of the others.
    """
    o, ids = problem.observations, problem.landmark_ids
    lens = {int(k): n for n, k in enumerate(problem.camera_ids)}
    by_name = {image.name: k for k, image in enumerate(o.images)}
    order = np.argsort(ids, kind="stable")
    found = []
    for k in (by_name[name] for name in names if name in by_name):
        rows = np.flatnonzero((o.image == k) & np.isin(o.landmark_id, ids))
        if len(rows) < MANY:
            continue
        xyz = reconstruction.xyz[order[np.searchsorted(ids[order], o.landmark_id[rows])]]
        # As a solved image with the same camera has it; one of its own may have any focal length.
        same = lens.get(o.images[k].camera_id)
        focal, radial = (1.0, np.zeros(2)) if same is None else (reconstruction.focal[same], reconstruction.radial[same])
        unit = float(o.image_unit[k].mean())
        camera = pycolmap.Camera(model="RADIAL", width=1, height=1, params=[unit * focal, 0.0, 0.0, *radial])
        options = pycolmap.AbsolutePoseEstimationOptions()
        options.ransac.max_error, options.ransac.random_seed = INLIER_PIXELS, 0
        pose = pycolmap.estimate_and_refine_absolute_pose(unit * o.normalised[rows], xyz, camera, options)
        count = 0 if pose is None else int(pose["num_inliers"])
        if count >= max(MANY, SHARE * len(rows)):
            found.append((o.images[k].name, count, len(rows)))
    return found
