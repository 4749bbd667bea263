"""How one attempted step of every stage grows with a survey: seconds and memory from 50 to 3,000 cameras.

    python benchmarks/growth.py --cameras 50 200 700 1000 3000

Nadir cameras in strips over relief, six observations a landmark, near their true places; known intrinsics. A step is all
that an iteration does: linearise, assemble, solve, evaluate. CPU seconds of all threads together, because they do not
depend on what else runs; the exponent is the slope of log seconds over log observations between the first size and the
last. Peak memory is the process's, so sizes ascend.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import resource
import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.spatial import cKDTree

from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Tracks
from initfree.engine.factorisation import factorisation
from initfree.engine.linear_solver import LinearSolver
from initfree.formulations import make
from initfree.stages.euclidean.parameters import FreeIntrinsics, Parameters
from initfree.stages.euclidean.system import MetricSystem, squared_residuals
from initfree.stages.euclidean.triangulation import triangulate
from initfree.stages.initialization import initialize
from initfree.stages.refinement.reprojection import ProjectiveRefinement, Reprojection
from initfree.stages.varpro import VariableProjection

FOCAL = 1000.0
HEIGHT = 3.0
"""of the cameras above ground, in distances between cameras"""
REACH = 1.4
"""half the width of what a camera sees"""
DAMPING = 1e-2


def survey(cameras: int, seed: int = 0) -> tuple[Tracks, Array, Array, Array, Array]:
    """Tracks, observations m, R, t and landmarks: about `cameras` in strips, 100 landmarks each."""
    rng = np.random.default_rng(seed)
    strips = round(cameras**0.5)
    grid = np.stack(np.meshgrid(np.arange(strips), np.arange(cameras // strips)), axis=-1).reshape(-1, 2)
    centres = np.column_stack([grid, np.full(len(grid), HEIGHT)]) + 0.05 * rng.normal(size=(len(grid), 3))
    ground = rng.uniform([-1.0, -1.0], [strips, cameras // strips], size=(100 * len(grid), 2))
    xyz = np.column_stack([ground, 0.3 * np.sin(ground[:, 0]) * np.cos(ground[:, 1])])
    seen = cKDTree(centres[:, :2]).query_ball_point(ground, REACH, return_sorted=True)
    length = np.array([len(cameras) for cameras in seen])
    keep = length >= 3
    tracks = Tracks(
        np.concatenate([np.asarray(s, dtype=np.int64) for s in seen[keep]]),
        np.concatenate([[0], np.cumsum(length[keep])]),
        len(grid),
    )
    xyz = xyz[keep]
    R = np.tile(np.diag([1.0, -1.0, -1.0]), (len(grid), 1, 1))
    t = -np.einsum("nij,nj->ni", R, centres)
    x = np.einsum("nij,nj->ni", R[tracks.cam], xyz[tracks.landmark]) + t[tracks.cam]
    m = x[:, :2] / x[:, 2:] + rng.normal(size=(len(x), 2)) / FOCAL
    return tracks, m, R, t, xyz


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def steps(cameras: int) -> tuple[int, int, dict[str, float]]:
    """Cameras, observations and the seconds of each part."""
    tracks, m, R, t, xyz = survey(cameras)
    unit = np.full(m.shape, FOCAL)
    P = np.concatenate([R, t[:, :, None]], axis=2) / HEIGHT
    found = {"spectral start": seconds(lambda: initialize("spectral", tracks, 0))}
    for name in ("exact", "power", "pcg"):
        stage = VariableProjection(tracks, m, make("pose", 0.05), P, solver=LinearSolver(name))
        found[f"VarPro, {name}"] = seconds(lambda stage=stage: (stage.linearise(), stage.attempt(DAMPING)))
        X = stage.X
        del stage
    refinement = ProjectiveRefinement(tracks, Reprojection(m, unit), P, X)
    found["refinement"] = seconds(lambda stage=refinement: (stage.linearise(), stage.attempt(DAMPING)))
    del refinement
    lenses, image = (np.ones(tracks.cameras), np.zeros((tracks.cameras, 2))), (m, unit, True)
    seen = SimpleNamespace(tracks=tracks, m=m, unit=unit, camera_ids=np.arange(tracks.cameras))
    found["triangulation"] = seconds(lambda: triangulate(seen, Reconstruction(R, t, *lenses, xyz)))
    parameters = Parameters(FreeIntrinsics(), np.arange(tracks.cameras))
    system = MetricSystem(tracks, parameters.slots)
    factor = factorisation(system.pairs, parameters.column, parameters.size)

    def adjustment() -> None:
        system.assemble((R, t, *lenses), xyz, image, np.ones(tracks.observations), DAMPING)
        assert factor.factorise(system.blocks, DAMPING * parameters.fold(system.diagonal))
        step = parameters.unfold(factor.solve(-parameters.fold(system.gradient)))
        moved, _ = system.back_substitute(step, xyz)
        squared_residuals(tracks, (R, t, *lenses), moved, image)

    found["adjustment"] = seconds(adjustment)
    return tracks.cameras, tracks.observations, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cameras", type=int, nargs="+", default=[50, 200, 700, 1000, 3000])
    sizes = sorted(parser.parse_args().cameras)
    steps(30)  # compiles
    rows = []
    for size in sizes:
        cameras, observations, found = steps(size)
        rows.append((cameras, observations, found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))
    table = Table(title="one attempted step, CPU seconds")
    for column in ("cameras", "observations", *rows[0][2], "peak GiB"):
        table.add_column(column, justify="right")
    for cameras, observations, found, memory in rows:
        table.add_row(str(cameras), str(observations), *(f"{value:.2f}" for value in found.values()), f"{memory:.2f}")
    if len(rows) > 1:
        grown = np.log(rows[-1][1] / rows[0][1])
        slopes = [np.log(rows[-1][2][name] / max(rows[0][2][name], 1e-3)) / grown for name in rows[0][2]]
        table.add_row("exponent", "", *(f"{slope:.2f}" for slope in slopes), "")
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
