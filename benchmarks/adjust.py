"""`initfree.adjust` beside Ceres as pycolmap runs it: the same optimum? In which share of the CPU time?

    INITFREE_DATA=... OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/adjust.py --survey 300

South Building, the models of photographs, real tracks with the true cameras, BAL's problems, two sets and a generated
survey, each from the same start: poses and points of the model, moved by a little noise (BAL's as they are in the file).
Both with COLMAP's defaults: least squares, focal lengths and distortion free. CPU seconds of ours are those of
`initfree.adjust` as a whole, with reading the objects of the model and making new ones; those of Ceres are of building the
problem and solving it.
Ceres chooses its linear solver by the number of images as pycolmap does, on one thread and on two; then each of three
on one. The share is ours over theirs, on one thread and on two.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pycolmap
import tyro
from data import data_directory
from foreign_models import measured
from scipy.spatial.transform import Rotation
from survey import survey

from initfree.engine.threads import set_threads
from initfree.generator import generate
from initfree.io.convert import model_of
from initfree.io.quiet import quiet
from initfree.models.adjust import Adjusted, adjust

REAL, SETS = ("fountain-p11", "castle-p19"), ("set2", "set6")
MOST_DENSE = 150
"""images up to which DENSE_SCHUR is tried"""


@dataclass(frozen=True)
class Options:
    """What is compared."""

    survey: int = 300
    """cameras of the generated survey; 0: none"""
    only: tuple[str, ...] = ()
    """names of models; by default all"""
    most_iterative: int = 100_000
    """observations up to which Ceres' iterative solver is tried, which takes minutes beyond"""


def moved(model: pycolmap.Reconstruction, seed: int = 0) -> pycolmap.Reconstruction:
    """Points by 0.2% of their spread, cameras by as much and 0.05 degrees."""
    rng = np.random.default_rng(seed)
    xyz = np.array([point.xyz for point in model.points3D.values()])
    size = 0.002 * float(np.median(np.linalg.norm(xyz - np.median(xyz, axis=0), axis=1)))
    for point in model.points3D.values():
        point.xyz = point.xyz + rng.normal(0.0, size, 3)
    for frame in model.frames.values():
        pose: Any = frame.rig_from_world
        R = Rotation.from_rotvec(np.radians(rng.normal(0.0, 0.05, 3))).as_matrix() @ pose.rotation.matrix()
        centre = -pose.rotation.matrix().T @ pose.translation + rng.normal(0.0, size, 3)
        frame.rig_from_world = pycolmap.Rigid3d(pycolmap.Rotation3d(R), -R @ centre)
    return model


def models(options: Options) -> Iterator[tuple[str, pycolmap.Reconstruction]]:
    root = data_directory()
    folders = {"South Building": root / "south_building" / "sparse"}
    folders |= {path.parent.name: path for path in sorted(root.glob("photographs/colmap/*/0"))}
    folders |= {f"{path.name}, reference": path for path in sorted(root.glob("photographs/reference/*"))}
    for name, path in folders.items():
        if not options.only or name in options.only:
            yield name, moved(pycolmap.Reconstruction(str(path)))
    for path in sorted(root.glob("bal/*.bz2")) + sorted(root.glob("bal/*.txt")):
        if not options.only or path.name.partition("-")[0] in options.only:
            yield path.name.split("-pre")[0], model_of(path)
    for name in REAL:
        if not options.only or name in options.only:
            yield name, moved(measured(root / "real" / name / "input", root / "real" / name / "gt").given)
    for name in SETS:
        if not options.only or name in options.only:
            yield name, moved(generate(name, seed=0, noise=0.5, shuffle=True).to_colmap(noisy=True))
    if options.survey and (not options.only or "survey" in options.only):
        made = generate(survey(options.survey), seed=0, noise=0.5, shuffle=True)
        yield f"survey of {options.survey}", moved(made.to_colmap(noisy=True))


def by_ceres(model: pycolmap.Reconstruction, solver: str | None, threads: int = 1) -> tuple[float, int, float]:
    """Final cost, steps, CPU seconds."""
    options = pycolmap.BundleAdjustmentOptions()
    options.print_summary = False
    options.ceres.solver_options.num_threads = threads
    if solver is not None:
        options.ceres.auto_select_solver_type = False
        options.ceres.solver_options.linear_solver_type = getattr(_types(options), solver)
    config = pycolmap.BundleAdjustmentConfig()
    for image_id in model.reg_image_ids():
        config.add_image(image_id)
    config.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    copy = pycolmap.Reconstruction(model)
    with quiet(everything=True):
        began = time.process_time()
        adjuster = pycolmap.create_default_bundle_adjuster(options, config, copy)
        summary: Any = adjuster.solve()
        seconds = time.process_time() - began
    found = summary.ceres_summary
    return found.final_cost, found.num_successful_steps + found.num_unsuccessful_steps, seconds


def _types(options: pycolmap.BundleAdjustmentOptions) -> Any:
    return type(options.ceres.solver_options.linear_solver_type)


def ours(model: pycolmap.Reconstruction, threads: int) -> tuple[Adjusted, float]:
    """The adjusted model, and CPU seconds of all threads."""
    set_threads(threads)
    began = time.process_time()
    found = adjust(model)
    return found, time.process_time() - began


def tried(model: pycolmap.Reconstruction, most_iterative: int) -> dict[str, bool]:
    """Solvers of Ceres, and whether the model is small enough for each."""
    observations = model.compute_num_observations()
    return {
        "DENSE_SCHUR": model.num_reg_images() <= MOST_DENSE,
        "SPARSE_SCHUR": True,
        "ITERATIVE_SCHUR": observations <= most_iterative,
    }


def main(options: Options) -> None:
    print(
        "| model | images | observations | ours, CPU s | steps | Ceres | steps | dense | sparse | iterative | share | cost |"
    )
    print("|---|" + "---:|" * 11)
    for name, model in models(options):
        adjust(model)  # compiled, and what is kept of it loaded
        (found, one), (_, two) = ours(model, 1), ours(model, 2)
        (cost, steps, theirs), (_, _, theirs_two) = by_ceres(model, None), by_ceres(model, None, 2)
        several, share = [], f"{one / theirs:.2f} / {two / theirs_two:.2f}"
        for solver, fits in tried(model, options.most_iterative).items():
            several.append(f"{by_ceres(model, solver)[2]:.2f}" if fits else "–")
        ceres = f"{theirs:.2f} / {theirs_two:.2f} | {steps} | {' | '.join(several)}"
        print(
            f"| {name} | {model.num_reg_images()} | {found.observations} | {one:.2f} / {two:.2f} | {len(found.steps)} "
            f"| {ceres} | {share} | {found.cost / cost - 1.0:+.1e} |",
            flush=True,
        )


if __name__ == "__main__":
    main(tyro.cli(Options))
