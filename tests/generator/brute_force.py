"""An occlusion test that shares nothing with the generator's: every triangle, in double precision."""

import numpy as np


def blocked(vertices, faces, eye, target, tolerance=1e-4):
    """Whether any triangle crosses the segment before its last `tolerance` share (Cramer's rule)."""
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    direction = target - eye
    system = np.stack([b - a, c - a, np.broadcast_to(-direction, a.shape)], axis=2)
    determinant = np.linalg.det(system)
    regular = np.abs(determinant) > 1e-12
    solution = np.linalg.solve(system[regular], (eye - a[regular])[:, :, None])[:, :, 0]
    u, v, t = solution.T
    return bool(((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 1e-9) & (t < 1 - tolerance)).any())
