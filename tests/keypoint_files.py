"""Small recordings as the files of pose estimators: six cameras, a point each of two names."""

import json
from pathlib import Path

import numpy as np
from synthetic import ring

FRAMES, NODES = 40, ("nose", "tail")


def recording() -> np.ndarray:
    """(cameras, frames, nodes, 2) in pixels."""
    scene = ring(cameras=6, landmarks=2 * FRAMES * len(NODES), occlusion=False, min_observations=6, shuffle=False)
    xy = np.empty((6, scene.tracks.landmarks, 2))
    xy[scene.tracks.cam, scene.tracks.landmark] = 420.0 * scene.m + (320.0, 240.0)
    return xy[:, : FRAMES * len(NODES)].reshape(6, FRAMES, len(NODES), 2)


def write_deeplabcut(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for k, frames in enumerate(recording()):
        lines = [
            "scorer" + ",net" * 6,
            "bodyparts," + ",".join(name for name in NODES for _ in range(3)),
            "coords" + ",x,y,likelihood" * 2,
        ]
        for f, points in enumerate(frames):
            lines.append(f"{f}," + ",".join(f"{x:.6f},{y:.6f},{0.1 if f == 3 else 0.98}" for x, y in points))
        (folder / f"cam{k}DLC_resnet50_armJan1shuffle1_1000.csv").write_text("\n".join(lines) + "\n")
    return folder


def write_sleap(folder: Path) -> Path:
    import h5py

    folder.mkdir(parents=True)
    for k, frames in enumerate(recording()):
        with h5py.File(folder / f"cam{k}.analysis.h5", "w") as file:
            file["tracks"] = frames.transpose(2, 1, 0)[None]
            file["node_names"] = np.array([name.encode() for name in NODES])
            scores = np.full((1, len(NODES), FRAMES), 0.98)
            scores[:, :, 3] = 0.1
            file["point_scores"] = scores
    return folder


def write_openpose(folder: Path) -> Path:
    for k, frames in enumerate(recording()):
        (folder / f"cam{k}").mkdir(parents=True)
        for f, points in enumerate(frames):
            flat = [value for x, y in points.tolist() for value in (x, y, 0.1 if f == 3 else 0.98)]
            other = {"pose_keypoints_2d": [5.0, 5.0, 0.05] * len(NODES)}
            text = json.dumps({"version": 1.3, "people": [other, {"pose_keypoints_2d": flat}]})
            (folder / f"cam{k}" / f"video_{f:012d}_keypoints.json").write_text(text)
    return folder


def write_idiap(path: Path) -> Path:
    points = recording().reshape(6, -1, 2)
    rows = [f"{k} {j} {x} {y}" for k in range(6) for j, (x, y) in enumerate(points[k].tolist())]
    known = [row.replace(f" {0} ", " 0 ", 1) for row in rows[:6]]
    camera = [0, 0, 0, 0, 0, 1, 420.0, 420.0, 320.0, 240.0, 0, 0, 0, 0, 0]
    head = f"6 {points.shape[1]} {6} {len(rows)} {len(known)}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([head, *rows, *known, *(str(value) for _ in range(6) for value in camera), ""]))
    return path
