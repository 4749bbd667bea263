"""How often `auto` reaches the oracle: a robust bundle adjustment of the same observations that starts at the truth.

The gap of a run is how far its rotation or translation AUC, whichever is worse, stays below the oracle's. A run is wrong,
for the certificate, if a rotation or translation AUC@20 is below 90. Tables are Markdown, a row a set.

OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/reliability.py --sets set2 set7 --seeds 3 --outliers 0.05 0.2

With `--title 'Wrong matches' --markdown benchmarks/RESULTS.md` at the end the section of that title is written anew.
"""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console

import initfree
from initfree.api import as_model
from initfree.benchmark.data import true_reconstruction
from initfree.benchmark.methods import adjust_from_truth
from initfree.benchmark.report.markdown import write_section
from initfree.config import Strategy
from initfree.data.reconstruction import Reconstruction
from initfree.generator import generate
from initfree.stages.euclidean import robust_cost

SETS = ("set1", "set2", "set3", "set4", "set6", "set7", "set8")
CAREFUL = 90.0
"""AUC@20 below which a reconstruction is wrong"""


@dataclass(frozen=True)
class Condition:
    noise: float
    outliers: float
    merged: float

    def __str__(self) -> str:
        spoilt = [f"{self.outliers:.0%} wrong matches"] if self.outliers else []
        spoilt += [f"{self.merged:.0%} tracks merged"] if self.merged else []
        return ", ".join([f"{self.noise:g} px", *spoilt])


@dataclass(frozen=True)
class Run:
    set: str
    seed: int
    condition: Condition
    cameras: int
    ours: tuple[float, float, float, float]
    """rotation, translation AUC@5; rotation, translation AUC@20"""
    oracle: tuple[float, float, float, float]
    cost: float
    """robust Euclidean cost of the best start over that of the oracle"""
    accepted: bool
    winner: str
    starts: int
    seconds: float
    certificate: dict

    def gap(self, threshold: int) -> float:
        first = 0 if threshold == 5 else 2
        return max(b - a for a, b in zip(self.ours[first : first + 2], self.oracle[first : first + 2], strict=True))

    @property
    def wrong(self) -> bool:
        return min(self.ours[2:]) < CAREFUL


def aucs(metrics) -> tuple[float, float, float, float]:
    return metrics.rotation_auc5, metrics.translation_auc5, metrics.rotation_auc20, metrics.translation_auc20


def cost(result: initfree.Result) -> float:
    """Over all observations, before wrong ones are left out."""
    won = [start.cost for start in result.starts if start.name == result.winner]
    return won[0] if won else robust_cost(result.problem, result.reconstruction)


def run(name: str, seed: int, condition: Condition, config: initfree.SolveConfig, strategy: Strategy) -> Run:
    dataset = generate(name, seed=seed, shuffle=True, **asdict(condition))
    truth, problem = dataset.to_colmap(), initfree.load(dataset.to_colmap(noisy=True))
    best = adjust_from_truth(problem, true_reconstruction(problem, as_model(truth)))
    began = time.perf_counter()
    result = initfree.solve(problem, config, strategy)
    seconds = time.perf_counter() - began
    reference = Reconstruction.of_poses(problem.names, best.R, best.t, problem.landmark_ids, best.xyz)
    return Run(
        name, seed, condition, problem.tracks.cameras,
        aucs(initfree.evaluate(result, truth)), aucs(initfree.evaluate(reference, truth)),
        cost(result) / max(robust_cost(problem, best), 1e-300),
        result.certificate.accepted, result.winner, max(len(result.starts), 1), seconds, result.certificate.to_dict(),
    )  # fmt: skip


COLUMNS = (
    "runs", "rotation AUC@{t}, least", "translation, least", "oracle, least", "largest gap", "within 0.5", "within 1.0",
    "accepted", "accepted wrongly", "rejected wrongly", "seconds, median", "most",
)  # fmt: skip


def figures(runs: list[Run], threshold: int) -> list[str]:
    """The columns of a row."""
    first = 0 if threshold == 5 else 2
    gaps = np.array([r.gap(threshold) for r in runs])
    ours = np.array([r.ours[first : first + 2] for r in runs]).min(axis=0)
    oracle = np.array([r.oracle[first : first + 2] for r in runs]).min(axis=0)
    seconds = [r.seconds for r in runs]
    return [
        str(len(runs)), f"{ours[0]:.2f}", f"{ours[1]:.2f}", f"{oracle[0]:.2f} / {oracle[1]:.2f}", f"{gaps.max():.2f}",
        str(np.sum(gaps <= 0.5)), str(np.sum(gaps <= 1.0)), str(sum(r.accepted for r in runs)),
        str(sum(r.wrong and r.accepted for r in runs)), str(sum(not r.wrong and not r.accepted for r in runs)),
        f"{np.median(seconds):.1f}", f"{max(seconds):.1f}",
    ]  # fmt: skip


def tables(runs: list[Run], threshold: int) -> str:
    """A table, and the runs that stay more than 1.0 below the oracle or that the certificate is wrong about."""

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    lines = [f"**{runs[0].condition}**", ""]
    lines.append(line(["set", *(column.format(t=threshold) for column in COLUMNS)]))
    lines.append(line(["---", *("---:" for _ in COLUMNS)]))
    for name in dict.fromkeys(r.set for r in runs):
        lines.append(line([name, *figures([r for r in runs if r.set == name], threshold)]))
    lines += [line(["all", *figures(runs, threshold)]), ""]
    for r in runs:
        if r.gap(threshold) > 1.0 or r.wrong == r.accepted:
            pairs = [f"{a:.2f} / {b:.2f}" for a, b in (r.ours[:2], r.oracle[:2], r.ours[2:], r.oracle[2:])]
            lines.append(
                f"- {r.set} seed {r.seed}: AUC@5 {pairs[0]} (oracle {pairs[1]}), AUC@20 {pairs[2]} ({pairs[3]}), cost "
                f"{r.cost:.4f} of the oracle's, {'accepted' if r.accepted else 'rejected'}, {r.winner} of {r.starts} starts"
            )
    return "\n".join([*lines, *([""] if lines[-1] else [])])


def main(
    sets: tuple[str, ...] = SETS,
    seeds: int = 3,
    noise: tuple[float, ...] = (0.5,),
    outliers: tuple[float, ...] = (0.0,),
    merged: tuple[float, ...] = (0.0,),
    strategy: Strategy = "auto",
    init: str = "spectral",
    threshold: int = 5,
    first_seed: int = 0,
    workers: int = 2,
    details: Path | None = None,
    title: str = "Reliability",
    markdown: Path | None = None,
) -> None:
    """Print a table for each condition.

    Args:
        sets: Presets of the generator; cameras are shuffled.
        seeds: Runs of each.
        noise: Pixel noise, a condition each.
        outliers: Shares of wrong matches, a condition each.
        merged: Shares of merged tracks, a condition each.
        strategy: auto, or single: the pipeline alone, from `init`.
        init: Initial cameras of the first start.
        threshold: AUC threshold, 5 or 20.
        first_seed: Seed of the first run.
        workers: Processes.
        details: JSON file for all figures.
        title: Heading of the section in `markdown`.
        markdown: File whose section of that title is written anew, such as benchmarks/RESULTS.md.
    """
    progress = Console(stderr=True)
    done: list[Run] = []
    shown: list[str] = []
    with ProcessPoolExecutor(workers) as pool:
        for condition in (Condition(n, o, g) for n in noise for o in outliers for g in merged):
            jobs = [
                pool.submit(run, name, seed, condition, initfree.SolveConfig(init=init, seed=seed), strategy)
                for name in sets
                for seed in range(first_seed, first_seed + seeds)
            ]
            for job in as_completed(jobs):
                r = job.result()
                progress.log(r.set, r.seed, f"{r.gap(5):.2f}", r.accepted, f"{r.seconds:.1f} s", log_locals=False)
            runs = [job.result() for job in jobs]
            done += runs
            shown.append(tables(runs, threshold))
            print(shown[-1], flush=True)
    if details is not None:
        details.write_text(json.dumps([asdict(r) for r in done], indent=1))
    if markdown is not None:
        given = sys.argv[1:]
        told = given[: given.index("--title")] if "--title" in given else given
        command = f"OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/reliability.py {' '.join(told)}"
        write_section(markdown, f"reliability {title}", "\n".join([f"### {title}", "", f"`{command}`", "", *shown]))


if __name__ == "__main__":
    tyro.cli(main)
