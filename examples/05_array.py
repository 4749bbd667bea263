"""An array of fixed cameras from the detections of a moving wand: a table in, calibrated cameras in metres out.

    python examples/05_array.py [OUTPUT]

The detections are synthetic: six cameras, two lights 0.4 m apart, one camera with reflections.
"""

import sys
from pathlib import Path

import numpy as np

import initfree


def detections(frames: int = 300) -> str:
    rng, rows = np.random.default_rng(0), ["camera,frame,point,x,y,width,height"]
    tip, along = rng.uniform(-0.8, 0.8, (frames, 3)), rng.normal(size=(frames, 3))
    tail = tip + 0.4 * along / np.linalg.norm(along, axis=1, keepdims=True)
    for k, angle in enumerate(np.linspace(0.0, 2.0 * np.pi, 6, endpoint=False)):
        centre = np.array([4.0 * np.cos(angle), 4.0 * np.sin(angle), 1.5 + 0.3 * (k % 2)])
        z, x = -centre / np.linalg.norm(centre), np.array([-np.sin(angle), np.cos(angle), 0.0])
        for name, X in (("tip", tip), ("tail", tail)):
            p = (X - centre) @ np.stack([x, np.cross(z, x), z]).T
            xy = 900.0 * p[:, :2] / p[:, 2:] + (640.0, 360.0) + rng.normal(scale=0.3, size=(frames, 2))
            xy[(rng.random(frames) < 0.05) & (k == 3)] += 80.0
            rows += [f"cam{k},{f},{name},{u:.3f},{v:.3f},1280,720" for f, (u, v) in enumerate(xy)]
    return "\n".join(rows) + "\n"


folder = Path(sys.argv[1] if len(sys.argv) > 1 else "recording")
folder.mkdir(exist_ok=True)
(folder / "detections.csv").write_text(detections())
result = initfree.solve(initfree.load(folder / "detections.csv"))
for camera in result.cameras:
    print(f"{camera.name}: {camera.mean_pixels:.2f} px, {camera.wrong} of {camera.detections} detections wrong")
print(result.certificate)
result.write(folder / "result")
