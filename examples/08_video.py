"""Tracks of a video: the array of a point tracker (frames, points, 2) with its visibility to cameras and a trajectory.

python examples/08_video.py [OUTPUT]

CoTracker, TAPIR and VGGSfM return such arrays. Here it is synthetic: points in front of a camera that walks along an arc,
lost and found again, with drift like a tracker's.
"""

import sys

import numpy as np

import initfree


def tracker(frames: int = 40, points: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """xy (frames, points, 2) in pixels of 640x480 and visible (frames, points)."""
    rng = np.random.default_rng(0)
    X = rng.uniform((-6.0, -2.0, 4.0), (6.0, 2.0, 9.0), size=(points, 3))
    xy, visible = np.empty((frames, points, 2)), np.zeros((frames, points), dtype=bool)
    for f, s in enumerate(np.linspace(-1.0, 1.0, frames)):
        c, n = np.cos(0.5 * s), np.sin(0.5 * s)
        R = np.array([[c, 0.0, n], [0.0, 1.0, 0.0], [-n, 0.0, c]])
        x = (X - (4.0 * s, 0.2 * np.sin(6.0 * s), 0.8 * s * s)) @ R.T
        xy[f] = 520.0 * x[:, :2] / x[:, 2:] + (320.0, 240.0)
        visible[f] = (x[:, 2] > 1.0) & (np.abs(xy[f] - (320.0, 240.0)) < (320.0, 240.0)).all(axis=1)
    drift = np.cumsum(rng.normal(scale=0.05, size=xy.shape), axis=0)
    return xy + drift + rng.normal(scale=0.3, size=xy.shape), visible & (rng.random(visible.shape) < 0.9)


xy, visible = tracker()
result = initfree.solve(initfree.Problem.from_tracker(xy, visible, sizes=(640, 480)))
print(f"{result.certificate}\nfocal length {result.focal_pixels[0]:.1f} px")
path = np.linalg.norm(np.diff(result.reconstruction.centres, axis=0), axis=1)
print(f"{len(path) + 1} cameras; steps from {path.min() / path.mean():.2f} to {path.max() / path.mean():.2f} of their mean")
result.write(sys.argv[1] if len(sys.argv) > 1 else "video")
