"""Models as Kapture, openMVG, Metashape and nerfstudio write them, by the formulas of their own documentation."""

import json
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation
from synthetic import Scene

FOCAL, WIDTH, HEIGHT = 420.0, 640, 480
MIDDLE = np.array([WIDTH / 2, HEIGHT / 2])


def views(scene: Scene, j: int):
    return range(scene.tracks.ptr[j], scene.tracks.ptr[j + 1])


def kapture(path: Path, scene: Scene, rig: bool = False) -> Path:
    """Every camera by itself, or all on a rig that stands still."""
    (path / "sensors").mkdir(parents=True)
    keypoints = path / "reconstruction" / "keypoints" / "sift"
    keypoints.mkdir(parents=True)
    n = scene.tracks.cameras
    model = f"SIMPLE_RADIAL, {WIDTH}, {HEIGHT}, {FOCAL}, {WIDTH / 2}, {HEIGHT / 2}, 0.0"
    sensors = [f"cam{k}, , camera, {model}" for k in range(n)]
    (path / "sensors" / "sensors.txt").write_text(
        "# kapture format: 1.1\n# sensor_id, name, type, [params]+\n" + "\n".join(sensors)
    )
    records = "\n".join(f"{0 if rig else k}, cam{k}, image{k}.jpg" for k in range(n))
    (path / "sensors" / "records_camera.txt").write_text("# timestamp, device_id, image_path\n" + records + "\n")
    x, y, z, w = Rotation.from_matrix(scene.R).as_quat().T
    t = -np.einsum("nij,nj->ni", scene.R, scene.centres)
    poses = [", ".join(f"{v:.17g}" for v in (w[k], x[k], y[k], z[k], *t[k])) for k in range(n)]
    if rig:
        (path / "sensors" / "rigs.txt").write_text("\n".join(f"rig, cam{k}, {poses[k]}" for k in range(n)) + "\n")
        poses_text = "0, rig, 1, 0, 0, 0, 0, 0, 0\n"
    else:
        poses_text = "\n".join(f"{k}, cam{k}, {poses[k]}" for k in range(n)) + "\n"
    (path / "sensors" / "trajectories.txt").write_text("# timestamp, device_id, qw, qx, qy, qz, tx, ty, tz\n" + poses_text)
    (keypoints / "keypoints.txt").write_text("# name, dtype, dsize\nSIFT, <class 'numpy.float64'>, 2\n")
    rank = np.empty(scene.tracks.observations, dtype=int)
    for k in range(n):
        here = scene.tracks.seen_by(k)
        rank[here] = np.arange(len(here))
        (keypoints / f"image{k}.jpg.kpt").write_bytes((scene.m[here] * FOCAL + MIDDLE).astype(np.float64).tobytes())
    points = "\n".join(", ".join(f"{v:.17g}" for v in (*xyz, 1, 2, 3)) for xyz in scene.landmarks)
    (path / "reconstruction" / "points3d.txt").write_text("# X, Y, Z, R, G, B\n" + points + "\n")
    rows = [
        f"{j}, sift, " + ", ".join(f"image{scene.tracks.cam[a]}.jpg, {rank[a]}" for a in views(scene, j))
        for j in range(scene.tracks.landmarks)
    ]
    (path / "reconstruction" / "observations.txt").write_text("\n".join(rows) + "\n")
    return path


def openmvg(path: Path, scene: Scene) -> Path:
    """Pixels from the middle of the first one."""
    n = scene.tracks.cameras
    view = [
        {"key": k, "value": {"polymorphic_id": 1073741824, "ptr_wrapper": {"id": 2147483649 + k, "data": {
            "local_path": "", "filename": f"image{k}.jpg", "width": WIDTH, "height": HEIGHT, "id_view": k,
            "id_intrinsic": k % 2, "id_pose": k}}}}
        for k in range(n)
    ]  # fmt: skip
    data = {"width": WIDTH, "height": HEIGHT, "focal_length": FOCAL, "principal_point": (MIDDLE - 0.5).tolist()}
    intrinsics = [
        {"key": k, "value": {
            "polymorphic_id": 2147483649 if k == 0 else 1, "ptr_wrapper": {"data": data | {"disto_k3": [0, 0, 0]}}}
            | ({"polymorphic_name": "pinhole_radial_k3"} if k == 0 else {})}
        for k in range(2)
    ]  # fmt: skip
    extrinsics = [
        {"key": k, "value": {"rotation": scene.R[k].tolist(), "center": scene.centres[k].tolist()}} for k in range(n)
    ]
    structure = [
        {"key": j, "value": {"X": scene.landmarks[j].tolist(), "observations": [
            {"key": int(scene.tracks.cam[a]),
             "value": {"id_feat": int(a), "x": (scene.m[a] * FOCAL + MIDDLE - 0.5).tolist()}}
            for a in views(scene, j)]}}
        for j in range(scene.tracks.landmarks)
    ]  # fmt: skip
    told = {"sfm_data_version": "0.3", "root_path": "/nowhere", "views": view, "intrinsics": intrinsics}
    file = path.with_suffix(".json")
    file.write_text(json.dumps(told | {"extrinsics": extrinsics, "structure": structure, "control_points": []}))
    return file


def metashape(path: Path, scene: Scene, calibration: str = "", pixels: np.ndarray | None = None) -> Path:
    """Every landmark as a marker."""
    pixels = scene.m * FOCAL + MIDDLE if pixels is None else pixels
    shots, markers = [], []
    for k in range(scene.tracks.cameras):
        to_world = np.eye(4)
        to_world[:3, :3], to_world[:3, 3] = scene.R[k].T, scene.centres[k]
        numbers = " ".join(f"{v:.17g}" for v in to_world.reshape(-1))
        shots.append(f'<camera id="{k + 10}" sensor_id="3" label="image{k}"><transform>{numbers}</transform></camera>')
    shots.append('<camera id="99" sensor_id="3" label="unaligned"></camera>')
    for j in range(scene.tracks.landmarks):
        seen = [
            f'<location camera_id="{scene.tracks.cam[a] + 10}" pinned="1" x="{pixels[a, 0]:.17g}" y="{pixels[a, 1]:.17g}"/>'
            for a in views(scene, j)
        ]
        seen.append('<location camera_id="99" pinned="0" valid="0"/>')
        markers.append(f'<marker marker_id="{j}">{"".join(seen)}</marker>')
    sensor = (
        f'<sensor id="3" label="unknown" type="frame"><resolution width="{WIDTH}" height="{HEIGHT}"/>'
        f'<calibration type="frame" class="adjusted"><resolution width="{WIDTH}" height="{HEIGHT}"/>'
        f"<f>{FOCAL}</f>{calibration}</calibration></sensor>"
    )
    file = path.with_suffix(".xml")
    cameras, seen = "".join(shots), "".join(markers)
    file.write_text(
        f'<?xml version="1.0"?><document version="2.0.0"><chunk><sensors>{sensor}</sensors><cameras>{cameras}</cameras>'
        f'<frames><frame id="0"><markers>{seen}</markers></frame></frames></chunk></document>'
    )
    return file


def nerfstudio(path: Path, scene: Scene) -> Path:
    """Axes of OpenGL, camera to world, intrinsics at the top."""
    frames = []
    for k in range(scene.tracks.cameras):
        to_world = np.eye(4)
        to_world[:3, :3], to_world[:3, 3] = scene.R[k].T @ np.diag([1.0, -1.0, -1.0]), scene.centres[k]
        frames.append({"file_path": f"images/image{k}.jpg", "transform_matrix": to_world.tolist()})
    file = path.with_suffix(".json")
    top = {
        "camera_model": "OPENCV",
        "w": WIDTH,
        "h": HEIGHT,
        "fl_x": FOCAL,
        "fl_y": FOCAL,
        "cx": WIDTH / 2,
        "cy": HEIGHT / 2,
    }
    file.write_text(json.dumps(top | {"k1": 0.0, "frames": frames}))
    return file
