"""What the generator costs and how exact it is, measured: `python benchmarks/generator.py`.

Prints one table: time and peak memory of set1 and of the aerial survey (each in a process of its own, start
of Python included), rays a second, agreement with brute force, and COLMAP's global mapper on set1's database.
With --blender also the agreement of depth between the two backends (needs `make blender`).
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pycolmap
from rich.console import Console
from rich.table import Table

from initfree.generator import generate, load
from initfree.generator.config import Visibility
from initfree.generator.observe import visible
from initfree.generator.render import intersect, render
from initfree.generator.visibility import TOLERANCE, RayCaster


def whole_command(arguments: list[str]) -> str:
    """Wall time, CPU time and peak memory of generating and writing in a fresh process."""
    code = (
        "import resource, sys; from initfree.commands.generate import generate; from pathlib import Path;"
        "options = {'database': sys.argv[3] == 'database'};"
        "generate(sys.argv[1], output=Path(sys.argv[2]), **options);"
        "print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = int(done.stdout.rsplit("peak", 1)[1]) / 1024**2
    return f"{wall:.1f} s wall, {cpu:.1f} s CPU, {peak:.2f} GiB peak"


def rays() -> str:
    """Camera-to-landmark segments a CPU second on the courthouse, one thread."""
    dataset = generate("set1")
    assert dataset.surface is not None
    caster = RayCaster(dataset.surface)
    targets = dataset.surface.sample(np.random.default_rng(0), 1_000_000).positions
    eye = dataset.poses.centres[0]
    caster.hidden(eye, targets[:1000])
    start = time.process_time()
    caster.hidden(eye, targets)
    return f"{len(targets) / (time.process_time() - start) / 1e6:.1f} million rays a CPU second"


def brute_force(samples: int = 2000) -> str:
    """Decisions of the ray caster against all triangles in double precision."""
    dataset = generate("set1")
    surface = dataset.surface
    assert surface is not None
    caster = RayCaster(surface)
    candidates = surface.sample(np.random.default_rng(1), 2000)
    seen, everything = (
        visible(surface, caster, dataset.poses, dataset.cameras, Visibility(occlusion=on), candidates)
        for on in (True, False)
    )
    keys = set(zip(seen.image.tolist(), seen.landmark.tolist(), strict=True))
    wrong = 0
    rows = np.random.default_rng(2).permutation(len(everything))[:samples]
    faces = np.arange(len(surface.faces))
    for row in rows:
        image, landmark = int(everything.image[row]), int(everything.landmark[row])
        eye, target = dataset.poses.centres[image], candidates.positions[landmark]
        direction = np.broadcast_to(target - eye, (len(faces), 3))
        share, weights = intersect(surface, faces, eye, direction)
        crossed = (weights >= 0).all(axis=1) & (share > 1e-9) & (share < 1 - TOLERANCE)
        wrong += bool(crossed.any()) == ((image, landmark) in keys)
    return f"{wrong} of {len(rows)} wrong ({len(keys)} of {len(everything)} pairs in view are unhidden)"


def reprojection(folder: Path) -> str:
    """Largest reprojection error of the written truth, read back by pycolmap."""
    model = pycolmap.Reconstruction(folder / "sparse" / "0")
    worst, observations = 0.0, 0
    for image in model.images.values():
        matrix = image.cam_from_world().matrix()
        points = np.array([model.point3D(point.point3D_id).xyz for point in image.points2D])
        unit = image.camera.img_from_cam(points @ matrix[:, :3].T + matrix[:, 3])
        worst = max(worst, float(np.abs(unit - [point.xy for point in image.points2D]).max()))
        observations += len(points)
    return f"{worst:.1e} px over {observations} observations"


def global_mapper(folder: Path) -> str:
    """Cameras that COLMAP's global mapper registers from the database."""
    options = pycolmap.GlobalPipelineOptions()
    options.random_seed = 0
    pycolmap.logging.minloglevel = 2
    start = time.perf_counter()
    (folder / "mapped").mkdir()
    models = pycolmap.global_mapping(folder / "database.db", folder, folder / "mapped", options)
    best = max(models.values(), key=lambda model: model.num_reg_images())
    return f"{best.num_reg_images()} cameras, {time.perf_counter() - start:.1f} s"


def blender_depth(engine: str, distortions: tuple[float, ...]) -> str:
    """Share of pixels whose depth agrees within 1e-4 (or where both see nothing)."""
    from initfree.generator.blender.rendering import render_all

    shares = []
    how = {"backend": "blender", "engine": engine, "samples": 1}
    for k1 in distortions:
        dataset = generate(load("set1", cameras=10, points=200, density=3, k1=k1, **how))
        assert dataset.surface is not None
        caster = RayCaster(dataset.surface)
        for number, theirs in enumerate(render_all(dataset)):
            ours = render(dataset.surface, caster, dataset.cameras[0], dataset.poses, number).depth
            nothing = (ours == 0) & (theirs.depth == 0)
            shares.append(np.mean(nothing | (np.abs(theirs.depth - ours) <= 1e-4 * ours)))
    return f"worst of {len(shares)} images {100 * min(shares):.4f}% of pixels"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blender", action="store_true")
    blender = parser.parse_args().blender
    table = Table("what", "measured")
    with tempfile.TemporaryDirectory() as place, Console().status("measuring"):
        first = Path(place, "set1")
        table.add_row("set1, everything but images", whole_command(["set1", str(first), "database"]))
        table.add_row("set1, without database.db", whole_command(["set1", f"{place}/plain", "none"]))
        table.add_row("set1 reprojection of the written truth", reprojection(first))
        table.add_row("set1, COLMAP global mapper on database.db", global_mapper(first))
        survey = whole_command(["aerial", f"{place}/aerial", "database"])
        table.add_row("aerial, 1000 cameras, 200000 landmarks, everything but images", survey)
        plain = whole_command(["aerial", f"{place}/survey", "none"])
        table.add_row("aerial, without database.db", plain)
        table.add_row("Embree on the courthouse", rays())
        table.add_row("visibility against brute force", brute_force())
        if blender:
            table.add_row("depth within 1e-4, Cycles against ray casting", blender_depth("cycles", (0.0, -0.1)))
            table.add_row("depth within 1e-4, Workbench against ray casting", blender_depth("workbench", (0.0,)))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
