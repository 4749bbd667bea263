"""Is COLMAP's result right? Asked with the database that it was made from; the truth is not needed.

python examples/09_check_colmap.py [OUTPUT]
"""

import sys
from pathlib import Path

import initfree
from initfree.generator import generate
from initfree.generator.database import write_database

import pycolmap  # isort: skip

output = Path(sys.argv[1] if len(sys.argv) > 1 else "checked")
(output / "sparse").mkdir(parents=True, exist_ok=True)

# In place of COLMAP's result: a model with one image at a wrong place, from which all that misses was deleted.
dataset = generate("set2", 1, noise=0.5, cameras=12, points=1500)
write_database(dataset, output / "database.db")
model = dataset.to_colmap(noisy=True)
third, fourth = (model.frame(model.images[k].frame_id) for k in (3, 4))
third.rig_from_world = fourth.rig_from_world
pycolmap.ObservationManager(model).filter_all_points3D(max_reproj_error=4.0, min_tri_angle=1.5)
model.write(output / "sparse")
print(f"mean reprojection error {model.compute_mean_reprojection_error():.2f} px")

found = initfree.check(output / "sparse", output / "database.db")
print(f"{found.verdict}: {found.reason}")
print("not to be trusted:", *(image.name for image in found.untrusted))
found.write(output)
