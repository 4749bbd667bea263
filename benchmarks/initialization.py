"""Initialisation on the generated sets, cameras shuffled: rotation AUC@20 after refinement and the calibrated upgrade.

    python benchmarks/initialization.py [--seeds 3] [--noise 0.0]

Random starts are averaged over seeds; spectral has nothing random. "truth" starts stage 1 at the true cameras: where it
fails, the surrogate itself is to blame.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import initfree
from initfree.benchmark.data import Data, true_cameras, true_reconstruction
from initfree.generator import generate
from initfree.io.colmap import reconstruction_of
from initfree.stages.initialization import INITIALIZATIONS

SETS = ("set1", "set2", "set3", "set4", "set6", "set7", "set8")
RANDOM = ("normal", "normal-affine", "unit-circle-shuffled")


def rotation_auc(problem, truth, config, init: str, seed: int = 0) -> tuple[float, int]:
    """Rotation AUC@20 and stage-1 iterations of one start."""
    result = initfree.solve(problem, replace(config, init=init, seed=seed), strategy="single")
    return initfree.evaluate(result, truth).rotation_auc20, result.stage("varpro").iterations


def main(
    seeds: int = 3, noise: float = 0.0, formulation: str = "pose", alpha: float = 0.05, tolerance: float = 1e-4
) -> None:
    """Print the table.

    Args:
        seeds: Random starts of each kind.
        noise: Pixel noise of the observations.
        formulation: Object-space error.
        alpha: Weight of its regulariser.
        tolerance: When stage 1 ends.
    """
    settings = f"{formulation}, alpha {alpha:g}, tolerance {tolerance:g}, {noise:g} px, mean of {seeds} seeds"
    table = Table(title=f"rotation AUC@20, {settings}")
    columns = (*RANDOM, "spectral", "spectral-outward", "spectral iterations", "truth")
    for column in ("set", "cameras", "observations a landmark", *columns):
        table.add_column(column, justify="right")
    for name in SETS:
        dataset = generate(name, seed=0, shuffle=True, noise=noise)
        truth = dataset.to_colmap()
        problem = initfree.load(dataset.to_colmap(noisy=True))
        model = reconstruction_of(truth)
        start = true_cameras(Data(problem, model, true_reconstruction(problem, model)))
        INITIALIZATIONS["truth"] = lambda tracks, rng, start=start: start
        config = initfree.SolveConfig(formulation=formulation, alpha=alpha, tolerance=tolerance, adjust=False)
        score = partial(rotation_auc, problem, truth, config)

        random = [np.mean([score(init, seed)[0] for seed in range(seeds)]) for init in RANDOM]
        inward, iterations = score("spectral")
        outward, from_truth = score("spectral-outward")[0], score("truth")[0]
        density = problem.tracks.observations / problem.tracks.landmarks
        cells = [*(f"{value:.1f}" for value in (*random, inward, outward)), str(iterations), f"{from_truth:.1f}"]
        table.add_row(name, str(problem.tracks.cameras), f"{density:.1f}", *cells)
    Console(width=150).print(table)


if __name__ == "__main__":
    tyro.cli(main)
