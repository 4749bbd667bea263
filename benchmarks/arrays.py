"""Arrays of fixed cameras from their detections alone: MultiCamSelfCal's sets, caliscope's recordings, the studio of 16.

Error is the mean over observations that fit, in pixels; wrong counts detections that do not fit. Orders: how many different
results the same recording has with its cameras in shuffled orders (1: the same to the last digit). The last table solves a
set with fewer and fewer positions of the light, and compares its cameras with those of all positions.

    INITFREE_DATA=... OPENBLAS_NUM_THREADS=1 python benchmarks/arrays.py [--parts sets orders studio thin]
    python benchmarks/arrays.py --synthetic [--seeds 3] [--frames 1000] [--rooms walls ...]

The second needs no data: rooms of 20 cameras (`tests/rooms.py`) whose given intrinsics are 2 to 6% and 20 to 60 px off.
Limit is what the adjustment comes to that begins at the truth: the AUC@5 that the recording allows at all.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import numpy as np
import pycolmap
import tyro
from data import data_directory
from intrinsics import studio
from rich.console import Console
from rich.table import Table

import initfree
from initfree.data.observations import Intrinsics
from initfree.data.reconstruction import Reconstruction
from initfree.result import Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from rooms import KINDS, Room, adjusted_from_truth, room

Part = Literal["sets", "orders", "studio", "thin"]
MCSC = ("DATA20090709_111010", "DATA20100906_134124", "caldata20130726_122220")
THIN = "DATA20100906_134124"
POSITIONS = (1000, 300, 100, 50)
console = Console(width=150)


def solved(
    table: Table,
    name: str,
    source: pycolmap.Reconstruction | Path,
    intrinsics: Intrinsics | None = None,
    truth: Path | None = None,
) -> None:
    """A row of the first table."""
    began = time.perf_counter()
    result = initfree.solve(initfree.load(source, intrinsics=intrinsics))
    seconds = time.perf_counter() - began
    auc = "-"
    if truth is not None:
        metrics = initfree.evaluate(result, truth)
        auc = f"{metrics.rotation_auc5:.1f} / {metrics.translation_auc5:.1f}"
    cameras = result.cameras
    cells = [
        name, intrinsics or "as the input says", str(len(cameras)), str(sum(one.detections for one in cameras)),
        str(sum(one.wrong for one in cameras)), f"{result.certificate.evidence.mean_pixels:.4f}",
        f"{max(one.mean_pixels for one in cameras):.4f}", auc, "yes" if result.accepted else "no", f"{seconds:.1f}",
    ]  # fmt: skip
    console.log(" | ".join(cells))
    table.add_row(*cells)


def written(source: Path, folder: Path, order: np.ndarray | None = None, frames: np.ndarray | None = None) -> Path:
    """A folder of MultiCamSelfCal with its cameras in another order, or with some of its frames."""
    points, seen, size = (np.loadtxt(source / name) for name in ("points.dat", "IdMat.dat", "Res.dat"))
    names = (source / "camera_order.txt").read_text().split()
    order = np.arange(len(seen)) if order is None else order
    frames = np.arange(seen.shape[1]) if frames is None else frames
    folder.mkdir()
    np.savetxt(
        folder / "points.dat", points.reshape(len(seen), 3, -1)[order][:, :, frames].reshape(-1, len(frames)), "%.17g"
    )
    np.savetxt(folder / "IdMat.dat", seen[order][:, frames], "%d")
    np.savetxt(folder / "Res.dat", size[order], "%d")
    (folder / "camera_order.txt").write_text("".join(f"{names[k]}\n" for k in order))
    for new, old in enumerate(order.tolist(), 1):
        if (source / f"basename{old + 1}.rad").is_file():
            shutil.copy(source / f"basename{old + 1}.rad", folder / f"basename{new}.rad")
    return folder


def digits(result: Result) -> bytes:
    """Everything about the cameras of the written model, by name."""
    model = result.to_colmap()
    parts = []
    for image in sorted(model.images.values(), key=lambda image: image.name):
        pose = image.cam_from_world()
        parts += [pose.rotation.quat, pose.translation, model.cameras[image.camera_id].params]
    return np.concatenate(parts).tobytes()


def orders(name: str, count: int, home: Path, intrinsics: Intrinsics | None = None) -> str:
    """How many different results `count` orders of the cameras have."""
    rng, source, found = np.random.default_rng(0), data_directory() / "arrays" / "mcsc" / name, set()
    for k in range(count):
        order = rng.permutation(len(np.loadtxt(source / "IdMat.dat")))
        folder = written(source, home / f"{name}-{intrinsics}-{k}", order)
        found.add(digits(initfree.solve(initfree.load(folder, intrinsics=intrinsics))))
    return str(len(found))


def thin(home: Path, seeds: int) -> Table:
    """Cameras from some positions of the light: a room against its truth, and a real set against all of its positions.

    Median over drawn positions, worst camera of each.
    """
    source = data_directory() / "arrays" / "mcsc" / THIN
    frames = np.loadtxt(source / "IdMat.dat").shape[1]
    full = initfree.solve(initfree.load(source))
    table = Table(
        "array", "positions", "accepted", "error px", "rotation, degrees", "centre, % of extent", "focal length, %"
    )
    for array in ("room", THIN):
        for count in POSITIONS:
            rows = []
            for seed in range(seeds):
                if array == "room":
                    result, against = thin_room(count, seed)
                else:
                    some = np.sort(np.random.default_rng(seed).choice(frames, count, replace=False))
                    result = initfree.solve(initfree.load(written(source, home / f"thin-{count}-{seed}", frames=some)))
                    against = cameras_of(full, result.problem.names)
                mine = cameras_of(result, result.problem.names)
                rows.append([float(result.accepted), result.certificate.evidence.mean_pixels, *difference(mine, against)])
            middle = np.median(rows, axis=0)
            accepted = f"{int(np.sum(rows, axis=0)[0])} of {seeds}"
            cells = [array, str(count), accepted, *(f"{value:.3f}" for value in middle[1:])]
            console.log(" | ".join(cells))
            table.add_row(*cells)
    return table


Cameras = tuple[np.ndarray, np.ndarray, np.ndarray]
"""rotations, centres, focal lengths in pixels"""


def cameras_of(result: Result, names: tuple[str, ...]) -> Cameras:
    """In the order of the names."""
    place = [result.problem.names.index(name) for name in names]
    r = result.reconstruction
    return r.R[place], r.centres[place], result.focal_pixels[place]


def difference(mine: Cameras, theirs: Cameras) -> tuple[float, float, float]:
    """Of the worst camera: degrees, percent of the cameras' extent and of the focal length, after the best similarity."""
    U, _, Vt = np.linalg.svd(np.einsum("nji,njk->ik", mine[0], theirs[0]))
    turn = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
    # R_mine turn = R_theirs: the world of the other solution, turned, is that of this one.
    cosine = (np.einsum("nij,jk,nik->n", mine[0], turn, theirs[0]) - 1.0) / 2.0
    a, b = (c - c.mean(axis=0) for c in (mine[1] @ turn, theirs[1]))
    a *= np.sum(a * b) / np.sum(a * a)
    extent = np.linalg.norm(b, axis=1).max()
    return (
        float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))).max()),
        float(100.0 * np.linalg.norm(a - b, axis=1).max() / extent),
        float(100.0 * np.abs(mine[2] / theirs[2] - 1.0).max()),
    )


def thin_room(count: int, seed: int) -> tuple[Result, Cameras]:
    """A room of 20 cameras with so many positions of the light, intrinsics unknown, and its truth."""
    array = room("walls", seed, frames=count)
    result = initfree.solve(array.problem("unknown"))
    place = [array.names.index(name) for name in result.problem.names]
    focal = np.array([array.cameras[k].mean_focal_length() for k in place])
    return result, (array.R[place], array.centres[place], focal)


def auc(found: Result | Reconstruction, array: Room) -> str:
    metrics = initfree.evaluate(found, array.truth())
    return f"{metrics.rotation_auc5:.2f} / {metrics.translation_auc5:.2f}"


def synthetic_rooms(rooms: tuple[str, ...], seeds: int, frames: int, kinds: tuple[Intrinsics, ...]) -> Table:
    """Rooms of 20 cameras against their truth."""
    table = Table("room", "seed", "given as", "detections", "wrong: made, found", "error", "focal off", "AUC@5", "limit",
                  "accepted", "CPU s")  # fmt: skip
    for kind in rooms:
        for seed in range(seeds):
            array = room(kind, seed, frames=frames)
            best = auc(adjusted_from_truth(array), array)
            for given in kinds:
                began = time.process_time()
                result = initfree.solve(array.problem(given))
                seconds = time.process_time() - began
                true = [array.cameras[array.names.index(name)].mean_focal_length() for name in result.problem.names]
                off = np.abs(result.focal_pixels / np.array(true) - 1.0).max()
                wrong = sum(camera.wrong for camera in result.cameras)
                cells = [
                    kind, str(seed), given, str(len(array.cam)), f"{len(array.wrong)}, {wrong}",
                    f"{result.certificate.evidence.mean_pixels:.3f}", f"{off:.2%}", auc(result, array), best,
                    "yes" if result.accepted else "no", f"{seconds:.1f}",
                ]  # fmt: skip
                console.log(" | ".join(cells))
                console.log("   " + "; ".join([*result.notes, str(result.certificate.reason)]))
                table.add_row(*cells)
    return table


def main(
    parts: tuple[Part, ...] = ("sets", "orders", "studio", "thin"), count: int = 10, seeds: int = 3,
    synthetic: bool = False, rooms: tuple[str, ...] = KINDS, frames: int = 1000,
    given: tuple[Intrinsics, ...] = ("known", "refine", "unknown"),
) -> None:  # fmt: skip
    """Print the tables."""
    if synthetic:
        console.print(synthetic_rooms(rooms, seeds, frames, given))
        return
    home = data_directory() / "arrays"
    table = Table("array", "intrinsics", "cameras", "detections", "wrong", "error", "worst camera", "AUC@5", "accepted", "s")
    with tempfile.TemporaryDirectory() as folder:
        if "sets" in parts:
            for name in MCSC:
                solved(table, name, home / "mcsc" / name)
            for kind in ("known", "unknown"):
                solved(table, MCSC[2], home / "mcsc" / MCSC[2], kind)
            for name in ("4_cam_recording", "post_optimization"):
                for kind in ("known", "refine", "unknown"):
                    solved(table, name, home / "caliscope" / name, kind)
        if "studio" in parts:
            for kind in ("known", "refine", "unknown"):
                model, truth = studio(guess=kind == "refine")
                solved(table, "studio16", model, kind, truth)
        if table.row_count:
            console.print(table)
        if "orders" in parts:
            for name, kind in (*((name, None) for name in MCSC), (MCSC[2], "unknown")):
                results = orders(name, count, Path(folder), kind)
                given = "as the input says" if kind is None else "without .rad"
                console.print(f"{name}, {given}: {results} result(s) of {count} orders of the cameras")
        if "thin" in parts:
            console.print(thin(Path(folder), seeds))


if __name__ == "__main__":
    tyro.cli(main)
