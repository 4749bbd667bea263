"""After VGGT, or another network that predicts cameras and tracks: is it right, and what is left after an adjustment?

Its arrays: extrinsics (images, 3, 4) from world to camera, intrinsics (images, 3, 3), tracks (images, points, 2).

python examples/10_check_vggt.py [OUTPUT]
"""

import sys
from pathlib import Path

import numpy as np

import initfree
from initfree.generator import generate

# In place of a network: true cameras turned by half a degree, focal lengths 4% off, tracks with half a pixel of noise.
dataset, rng = generate("set2", 0, noise=0.5, cameras=12, points=800), np.random.default_rng(0)
tracks = np.full((12, len(dataset.landmarks), 2), np.nan)
tracks[dataset.noisy.image, dataset.noisy.landmark] = dataset.noisy.pixel
turns = np.eye(3) + np.cross(np.eye(3), rng.normal(0.0, 0.01, (12, 1, 3)))
extrinsics = np.concatenate([turns @ dataset.poses.rotations, dataset.poses.translations[:, :, None]], axis=2)
camera = dataset.cameras[0]
K = 1.04 * np.array([[420.0, 0.0, 0.0], [0.0, 420.0, 0.0], [0.0, 0.0, 0.0]])
K[:2, 2], K[2, 2] = (camera.principal_point_x, camera.principal_point_y), 1.0

model = initfree.model_from_arrays(extrinsics, K, tracks, sizes=(camera.width, camera.height))
print("as predicted:", initfree.check(model).verdict)
adjusted = initfree.adjust(model, initfree.AdjustOptions(loss="cauchy", scale=2.0)).model
found = initfree.check(adjusted)
output = Path(sys.argv[1] if len(sys.argv) > 1 else "predicted")
output.mkdir(parents=True, exist_ok=True)
adjusted.write(output)
print("adjusted:", found.verdict, [f"{one.focal:.1f} px" for one in found.intrinsics])
