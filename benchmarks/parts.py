"""Divide and conquer measured: a survey solved as a whole and in parts, by processes and by Dask's workers.

    python benchmarks/parts.py --cameras 400 --part 100
    python benchmarks/parts.py --preset street-1k --part 200 --executors processes

CPU seconds are those of all processes together. The oracle is a robust adjustment that starts at the truth.
"""

import resource
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import tyro
from survey import NOISE, problem_of, survey, truth_of

import initfree
from initfree.auto.parts import processes
from initfree.benchmark.data import true_reconstruction
from initfree.benchmark.methods import adjust_from_truth
from initfree.engine.threads import threads
from initfree.evaluation import evaluate_models
from initfree.generator import generate

How = Literal["whole", "processes", "dask"]


@dataclass(frozen=True)
class Options:
    """A survey as a whole and in parts."""

    cameras: int = 400
    """of the survey aerial-1k, made smaller or larger"""
    preset: str | None = None
    """a preset as it is, instead"""
    part: int = 100
    """most cameras of a part, without those that it shares"""
    executors: tuple[How, ...] = ("whole", "processes", "dask")
    workers: int = 2
    seed: int = 0


@contextmanager
def executor_of(how: How, workers: int) -> Iterator[Executor]:
    if how == "processes":
        with processes(workers) as executor:
            yield executor
        return
    from distributed import Client, LocalCluster

    one = max(1, threads() // workers)
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.run(initfree.engine.threads.set_threads, one)
        with client.get_executor() as executor:
            yield executor


def cpu() -> float:
    """Seconds of this process and of those that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main(options: Options) -> None:
    initfree.solve(problem_of(generate(survey(20), seed=0, noise=NOISE, outliers=0.1, shuffle=True)))
    config: Any = survey(options.cameras) if options.preset is None else options.preset
    dataset = generate(config, seed=options.seed, noise=NOISE, shuffle=True)
    problem, truth = problem_of(dataset), truth_of(dataset)
    oracle = replace(
        adjust_from_truth(problem, true_reconstruction(problem, truth)), names=problem.names, ids=problem.landmark_ids
    )
    best = evaluate_models(oracle, truth)
    print(f"{problem.tracks}, parts of {options.part}, {options.workers} workers")
    print(f"oracle: AUC@5 {best.rotation_auc5:.2f} / {best.translation_auc5:.2f}")
    print("| how | CPU s | wall s | AUC@5 | parts | verdict |\n|---|---:|---:|---:|---|---|")
    for how in options.executors:
        began, wall = cpu(), time.perf_counter()
        if how == "whole":
            result = initfree.solve(problem)
        else:
            with executor_of(how, options.workers) as executor:
                result = initfree.solve_in_parts(problem, cameras=options.part, executor=executor)
        ours = evaluate_models(result.reconstruction, truth)
        parts = "" if how == "whole" else next(note for note in result.notes if note.startswith("solved in"))
        print(
            f"| {how} | {cpu() - began:.1f} | {time.perf_counter() - wall:.1f} | {ours.rotation_auc5:.2f} / "
            f"{ours.translation_auc5:.2f} | {parts} | {'accepted' if result.accepted else 'rejected'} |",
            flush=True,
        )


if __name__ == "__main__":
    main(tyro.cli(Options))
