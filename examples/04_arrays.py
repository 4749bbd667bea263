"""Tracks in memory to poses in memory: no file is read.

    python examples/04_arrays.py [OUTPUT]

The tracks here are of a synthetic ring of cameras; a tracker's array (frames, points, 2) goes into `Problem.from_tracker`.
"""

import sys

import numpy as np

import initfree


def tracks(cameras: int = 24, landmarks: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """image, landmark and xy of every observation, with half a pixel of noise, and K: all that is known."""
    rng = np.random.default_rng(0)
    K = np.array([[500.0, 0.0, 320.0], [0.0, 500.0, 240.0], [0.0, 0.0, 1.0]])
    X = rng.uniform(-1.0, 1.0, size=(landmarks, 3))
    angle = rng.permutation(np.linspace(0.0, 2.0 * np.pi, cameras, endpoint=False))
    forward = -np.column_stack([np.cos(angle), np.sin(angle), np.full(cameras, 0.2)]) / np.hypot(1.0, 0.2)
    right = np.column_stack([-np.sin(angle), np.cos(angle), np.zeros(cameras)])
    R = np.stack([right, np.cross(forward, right), forward], axis=1)
    x = np.einsum("iab,jb->ija", K @ R, X) + 5.0 * K[:, 2]
    image, landmark = np.nonzero(rng.random((cameras, landmarks)) < 0.3)
    xy = x[image, landmark, :2] / x[image, landmark, 2:]
    return image, landmark, xy + rng.normal(scale=0.5, size=xy.shape), K


image, landmark, xy, K = tracks()
result = initfree.solve(initfree.Problem.from_tracks(image, landmark, xy, cameras=K, sizes=(640, 480)))
found = result.reconstruction
print(result, result.certificate)
print("rotations", found.R.shape, "translations", found.t.shape, "landmarks", found.xyz.shape, "of numbers", found.ids[:4])
result.write(sys.argv[1] if len(sys.argv) > 1 else "arrays-output")  # sparse/0, run.json, summary.html
sys.exit(0 if result.accepted else 3)
