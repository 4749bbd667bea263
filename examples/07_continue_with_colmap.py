"""On from a reconstruction of initfree with COLMAP: its bundle adjustment, its filters, its files.

python examples/07_continue_with_colmap.py [OUTPUT]
"""

import sys
from pathlib import Path

import initfree  # before pycolmap: each then has a zlib of its own
from initfree.generator import generate

import pycolmap  # isort: skip

pycolmap.logging.minloglevel = 2
output = Path(sys.argv[1] if len(sys.argv) > 1 else "continued")
dataset = generate("set2", 0, noise=0.5, outliers=0.02)
noisy = dataset.noisy
problem = initfree.Problem.from_tracks(noisy.image, noisy.landmark, noisy.pixel, cameras=dataset.cameras[0])
model = initfree.solve(problem).to_colmap()  # a pycolmap.Reconstruction: nothing is written in between
print(f"initfree: {model.num_points3D()} points, {model.compute_mean_reprojection_error():.3f} px")

options = pycolmap.BundleAdjustmentOptions()
options.refine_focal_length = options.refine_extra_params = False  # the cameras are known here
options.print_summary = False
pycolmap.bundle_adjustment(model, options)
model.update_point_3d_errors()
print(f"after COLMAP's bundle adjustment: {model.compute_mean_reprojection_error():.3f} px")
removed = pycolmap.ObservationManager(model).filter_all_points3D(max_reproj_error=2.0, min_tri_angle=1.5)
print(f"{removed} observations filtered, {model.num_points3D()} points left")
output.mkdir(parents=True, exist_ok=True)
model.write(output)
