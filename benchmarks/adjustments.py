"""The two bundle adjustments on the same problem: CPU milliseconds of six steps from the truth.

`EuclideanAdjustment` has f, k1 and k2 in normalised coordinates, `IntrinsicsAdjustment` the parameters of any COLMAP camera
in pixels; here both have one RADIAL camera, with fixed and with free intrinsics.

OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/adjustments.py --sets set2 set4
"""

import time
from collections.abc import Callable

import numpy as np
import pycolmap
import tyro

import initfree
from initfree.api import as_model
from initfree.benchmark.data import true_reconstruction
from initfree.data.recalibration import keypoints_of
from initfree.engine.levenberg_marquardt import LMConfig
from initfree.engine.losses import Cauchy
from initfree.engine.robust_stage import RobustStage
from initfree.generator import generate
from initfree.stages.euclidean.adjustment import EuclideanAdjustment
from initfree.stages.euclidean.intrinsics import IntrinsicsAdjustment, View
from initfree.stages.euclidean.lenses import Lenses
from initfree.stages.euclidean.parameters import POSES_ONLY, FreeIntrinsics

STEPS = LMConfig(max_iterations=6, tolerance=1e-300)
ROUNDS = 5


def milliseconds(make: Callable[[], RobustStage]) -> float:
    """The least of several rounds."""
    times = []
    for _ in range(ROUNDS):
        stage = make()
        began = time.process_time()
        stage.minimise(STEPS, Cauchy(4.0))
        times.append(1e3 * (time.process_time() - began))
    return float(np.min(times))


def main(sets: tuple[str, ...] = ("set2", "set4"), seed: int = 3) -> None:
    """Print a table.

    Args:
        sets: Presets of the generator.
        seed: Seed of the problems.
    """
    print("| problem | intrinsics | f, k1, k2 | any camera | ratio |")
    print("|---|---|---:|---:|---:|")
    for name in sets:
        dataset = generate(name, seed=seed, noise=0.5)
        problem = initfree.load(dataset.to_colmap(noisy=True))
        r = true_reconstruction(problem, as_model(dataset.to_colmap())).contiguous()
        cameras = {
            k: pycolmap.Camera(
                camera_id=k, model="RADIAL", width=c.width, height=c.height,
                params=[c.mean_focal_length(), c.principal_point_x, c.principal_point_y, 0.0, 0.0],
            )
            for k, c in problem.observations.cameras.items()
        }  # fmt: skip
        tracks, ids, keypoints = problem.tracks, problem.camera_ids, keypoints_of(problem)
        for free in (False, True):
            moves = FreeIntrinsics(focal=True, radial=True) if free else POSES_ONLY
            lenses = Lenses.of(cameras, ids, focal=free, distortion=free)

            def normalised(moves: FreeIntrinsics = moves) -> RobustStage:
                return EuclideanAdjustment(tracks, problem.m, problem.unit, r, free=moves, groups=ids)  # noqa: B023

            def any_camera(lenses: Lenses = lenses) -> RobustStage:
                return IntrinsicsAdjustment(tracks, keypoints, View(r.R, r.t, r.xyz, lenses))  # noqa: B023

            first, second = milliseconds(normalised), milliseconds(any_camera)
            cells = name, "free" if free else "fixed", f"{first:.1f}", f"{second:.1f}", f"{second / first:.2f}"
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
