"""Bundle adjustment with pycolmap's objects: the optimum of Ceres, and the deviations of every camera.

python examples/11_adjust.py [OUTPUT]
"""

import sys
from pathlib import Path

import initfree
from initfree.generator import generate

import pycolmap  # isort: skip

dataset = generate("set2", 0, noise=0.5, cameras=16, points=800, rotation_noise=0.3, translation_noise=0.02)
model = dataset.to_colmap(noisy=True)  # a pycolmap.Reconstruction, poses moved away from the truth

adjusted = initfree.adjust(model)  # what pycolmap.bundle_adjustment(model) does, in place
print(adjusted)

options = pycolmap.BundleAdjustmentOptions()  # COLMAP's own options are taken too
options.refine_focal_length = options.refine_extra_params = False
print(initfree.adjust(model, options))

held = initfree.AdjustOptions(free=("focal",), loss="cauchy", scale=2.0, fix_poses=("0000.png",))
for name, (degrees, centre, focal) in sorted(initfree.adjust(model, held).deviations.items())[:3]:
    print(f"{name}: ± {degrees:.3f}°, ± {100 * centre:.2f}% of the extent, focal length ± {100 * focal:.2f}%")

output = Path(sys.argv[1] if len(sys.argv) > 1 else "adjusted")
output.mkdir(parents=True, exist_ok=True)
adjusted.model.write(output)
