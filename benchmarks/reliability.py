"""How often `auto` reaches the oracle: a robust bundle adjustment of the same observations that starts at the truth.

A run is good if rotation and translation AUC@5 are within `--within` of the oracle's; a wrong one, for the certificate, has
a rotation or translation AUC@20 below 90.

OPENBLAS_NUM_THREADS=1 python benchmarks/reliability.py --sets set2 set7 --seeds 3 --noise 0.5 --outliers 0 0.05 0.2
"""

import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import initfree
from initfree.benchmark.data import truth_metric
from initfree.benchmark.methods import adjust_from_truth
from initfree.evaluation import as_model
from initfree.generator import generate
from initfree.model import MetricModel
from initfree.repair import robust_cost
from initfree.strategy import solve_auto

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
    return won[0] if won else robust_cost(result.problem, result.metric)


def run(name: str, seed: int, condition: Condition, strategy: str) -> Run:
    dataset = generate(name, seed=seed, shuffle=True, **asdict(condition))
    truth, problem = dataset.to_colmap(), initfree.load(dataset.to_colmap(noisy=True))
    best = adjust_from_truth(problem, truth_metric(problem, as_model(truth)))
    began = time.perf_counter()
    result = solve_auto(problem) if strategy == "auto" else initfree.solve(problem)
    seconds = time.perf_counter() - began
    reference = MetricModel(problem.names, best.R, best.t, problem.landmark_ids, best.xyz)
    return Run(
        name, seed, condition, problem.tracks.cameras,
        aucs(initfree.evaluate(result, truth)), aucs(initfree.evaluate(reference, truth)),
        cost(result) / robust_cost(problem, best),
        result.certificate.accepted, result.winner, max(len(result.starts), 1), seconds, asdict(result.certificate),
    )  # fmt: skip


def summary(runs: list[Run], threshold: int) -> str:
    def share(hits: int, of: int) -> str:
        return f"{hits}/{of}"

    n = len(runs)
    gaps = np.array([r.gap(threshold) for r in runs])
    accepted, good = [r for r in runs if r.accepted], [r for r in runs if not r.wrong]
    return (
        f"{runs[0].condition}: within 0.5 of the oracle {share(int(np.sum(gaps <= 0.5)), n)}, "
        f"within 1.0 {share(int(np.sum(gaps <= 1.0)), n)} (AUC@{threshold}), "
        f"wrongly accepted {sum(r.wrong for r in accepted)}/{len(accepted)}, "
        f"wrongly rejected {sum(not r.accepted for r in good)}/{len(good)}, "
        f"seconds median {np.median([r.seconds for r in runs]):.1f}, most {max(r.seconds for r in runs):.1f}"
    )


def show(console: Console, runs: list[Run]) -> None:
    table = Table(title=str(runs[0].condition))
    for column in ("set", "seed", "cameras", "AUC@5", "oracle", "AUC@20", "oracle", "cost", "accepted", "won", "s"):
        table.add_column(column, justify="right", no_wrap=True)
    for r in runs:
        pairs = [f"{a:.2f} / {b:.2f}" for a, b in (r.ours[:2], r.oracle[:2], r.ours[2:], r.oracle[2:])]
        verdict = "yes" if r.accepted else "no"
        won = f"{r.winner} ({r.starts})"
        table.add_row(r.set, str(r.seed), str(r.cameras), *pairs, f"{r.cost:.4f}", verdict, won, f"{r.seconds:.1f}")
    console.print(table)


def main(
    sets: tuple[str, ...] = SETS,
    seeds: int = 3,
    noise: float = 0.5,
    outliers: tuple[float, ...] = (0.0,),
    merged: tuple[float, ...] = (0.0,),
    strategy: str = "auto",
    threshold: int = 5,
    first_seed: int = 0,
    workers: int = 2,
    details: Path | None = None,
    quiet: bool = False,
) -> None:
    """Print a table and a summary for each condition.

    Args:
        sets: Presets of the generator; cameras are shuffled.
        seeds: Runs of each.
        noise: Pixel noise.
        outliers: Shares of wrong matches, a condition each.
        merged: Shares of merged tracks, a condition each.
        strategy: auto or single.
        threshold: AUC threshold of the summary, 5 or 20.
        first_seed: Seed of the first run.
        workers: Processes.
        details: JSON file for all figures.
        quiet: Summaries alone.
    """
    console = Console(width=170)
    conditions = [Condition(noise, o, g) for o in outliers for g in merged]
    done: list[Run] = []
    with ProcessPoolExecutor(workers) as pool:
        for condition in conditions:
            jobs = [
                pool.submit(run, name, seed, condition, strategy)
                for name in sets
                for seed in range(first_seed, first_seed + seeds)
            ]
            for job in as_completed(jobs):
                r = job.result()
                console.log(r.set, r.seed, f"{r.gap(5):.2f}", r.accepted, f"{r.seconds:.1f} s", log_locals=False)
            runs = [job.result() for job in jobs]
            done += runs
            if not quiet:
                show(console, runs)
            console.print(summary(runs, threshold), soft_wrap=True)
    if details is not None:
        details.write_text(json.dumps([asdict(r) for r in done], indent=1))


if __name__ == "__main__":
    tyro.cli(main)
