"""Are the reported standard deviations right? Errors of many runs, in units of what was reported for them.

Every run makes a dataset of a set, with its own noise, solves it by `auto`, and asks for the uncertainty of the result. With
e the step from the reconstruction to the truth, free of the gauge, and Σ the covariance, e'Σ⁺e (NEES, normalised estimation
error squared) is χ² distributed, with 6 cameras - 7 degrees of freedom for all cameras and 6 for one. The mean over runs,
divided by the degrees, is 1, and lies 95 times of 100 in the band of a χ² of so many. The metrics that `modes.determination`
expects of a reconstruction stand beside those that it has.

OPENBLAS_NUM_THREADS=1 python benchmarks/uncertainty.py --runs 200 --figure docs/uncertainty.png
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table
from scipy.stats import chi2

import initfree
from initfree.api import as_model
from initfree.certificate.modes import determination
from initfree.certificate.uncertainty import CameraSystem, camera_system
from initfree.data.reconstruction import nearest_rotation
from initfree.data.tracks import Array
from initfree.generator import generate
from initfree.stages.euclidean import residuals

SETS = ("set1", "set2", "set7", "thin2", "thin3")
NOISE = 0.5
FIRST_SEED = 5000
FITS = 4.0
"""pixels: observations that count"""


@dataclass(frozen=True)
class Run:
    nees: float
    """of all cameras over the degrees of freedom"""
    by_camera: Array
    """of every camera, over 6"""
    rotation: Array
    """(cameras,) reported deviation in degrees"""
    rotation_error: Array
    """(cameras,) degrees"""
    expected: tuple[float, float]
    """rotation and translation AUC@20 that all but one of 24 draws reach"""
    measured: tuple[float, float]


def step_to(system: CameraSystem, result: initfree.Result, R: Array, centres: Array) -> Array:
    """The step in the system's numbers from the result to the true cameras, moved as a whole to where it is smallest."""
    metric = result.reconstruction
    own = metric.centres
    G = nearest_rotation(np.einsum("nji,njk->ik", metric.R, R))
    scale = np.std(own - own.mean(axis=0)) / np.std(centres - centres.mean(axis=0))
    shift = own.mean(axis=0) + scale * (centres - centres.mean(axis=0)) @ G.T - own
    turn = np.einsum("nij,kj,nlk->nil", R, G, metric.R)
    omega = 0.5 * np.stack([turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], 1)
    step = np.column_stack([omega, -np.einsum("nij,nj->ni", metric.R, shift) / system.extent]).ravel()
    return step - system.gauge @ (system.gauge.T @ step)


def run(name: str, seed: int) -> Run | None:
    dataset = generate(name, seed=seed, shuffle=True, noise=NOISE)
    truth = dataset.to_colmap()
    result = initfree.solve(initfree.load(dataset.to_colmap(noisy=True)))
    if not result.certificate.accepted:
        return None
    problem, metric = result.problem, result.reconstruction
    counts = residuals(problem, metric).within(FITS)
    system = camera_system(problem.tracks, problem.m, problem.unit, metric.cameras, metric.xyz, counts)
    model = as_model(truth)
    order = [model.names.index(n) for n in problem.names]
    step = step_to(system, result, model.R[order], model.centres[order])
    covariances = system.covariances()
    by_camera = np.einsum("ni,nij,nj->n", step.reshape(-1, 6), np.linalg.inv(covariances), step.reshape(-1, 6)) / 6.0
    nees = float(step @ system.dense @ step) / system.noise**2 / (system.size - 7)
    found, metrics = determination(system, least_noise=0.0), initfree.evaluate(result, truth)
    return Run(
        nees,
        by_camera,
        system.uncertainty().rotation,
        np.degrees(np.linalg.norm(step.reshape(-1, 6)[:, :3], axis=1)),
        (found.rotation_auc20, found.translation_auc20),
        (metrics.rotation_auc20, metrics.translation_auc20),
    )


def main(runs: int = 200, sets: tuple[str, ...] = SETS, first_seed: int = FIRST_SEED, figure: Path | None = None) -> None:
    """Print the table and draw the figure.

    Args:
        runs: Runs in all, shared out over the sets.
        sets: Presets of the generator.
        first_seed: Seed of the first dataset.
        figure: PNG: normalised errors, and reported deviations against errors.
    """
    made: dict[str, list[Run]] = {}
    table = Table(title=f"{runs} runs at {NOISE} px: normalised errors over their degrees of freedom")
    headings = (
        "set",
        "runs",
        "mean",
        "95% band",
        "one camera",
        "its band",
        "outside",
        "AUC@20 expected",
        "measured",
        "below",
    )
    for column in headings:
        table.add_column(column, justify="left" if column == "set" else "right")
    for name in sets:
        found = [run(name, seed) for seed in range(first_seed, first_seed + runs // len(sets))]
        made[name] = some = [r for r in found if r is not None]
        degrees = 6 * len(some[0].by_camera) - 7
        band = chi2.ppf([0.025, 0.975], len(some) * degrees) / (len(some) * degrees)
        alone = np.concatenate([r.by_camera for r in some])
        single = chi2.ppf([0.025, 0.975], 6) / 6.0
        outside = float(np.mean((alone < single[0]) | (alone > single[1])))
        expected, measured = (np.array([getattr(r, f) for r in some]) for f in ("expected", "measured"))
        table.add_row(
            name,
            str(len(some)),
            f"{np.mean([r.nees for r in some]):.3f}",
            f"{band[0]:.3f}-{band[1]:.3f}",
            f"{alone.mean():.3f}",
            f"{single[0]:.2f}-{single[1]:.2f}",
            f"{outside:.1%}",
            " / ".join(f"{x:.1f}" for x in np.median(expected, axis=0)),
            " / ".join(f"{x:.1f}" for x in np.median(measured, axis=0)),
            f"{np.mean(measured < expected):.1%}",
        )
    Console(width=140).print(table)
    if figure is not None:
        draw(made, figure)


def draw(made: dict[str, list[Run]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    grid = np.linspace(0.0, 4.0, 200)
    left.plot(grid, 6.0 * chi2.pdf(6.0 * grid, 6), color="black", label="χ² with 6 degrees")
    for name, runs in made.items():
        alone = np.concatenate([r.by_camera for r in runs])
        left.hist(alone, bins=list(np.linspace(0.0, 4.0, 41)), density=True, histtype="step", label=name)
        reported, error = (np.concatenate([getattr(r, f) for r in runs]) for f in ("rotation", "rotation_error"))
        right.loglog(reported, error, ".", markersize=1.5, alpha=0.5)
    ends = np.array(right.get_xlim())
    right.loglog(ends, ends, color="black", linewidth=0.8)
    left.set(xlabel="normalised squared error of a camera, over 6", ylabel="density", title="Errors in units of the report")
    right.set(xlabel="reported deviation of a rotation, degrees", ylabel="error, degrees", title="Every camera of every run")
    left.legend(fontsize=8)
    fig.savefig(path, dpi=150)


if __name__ == "__main__":
    tyro.cli(main)
