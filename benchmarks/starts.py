"""Many starts of one small problem: one after the other, each on all cores, and side by side (`initfree.solve_each`).

    OPENBLAS_NUM_THREADS=1 python benchmarks/starts.py --starts 100

Random affine cameras, another seed each, the pipeline once for each. Processes are started before the clock is: a hundred
starts are as few as anyone asks for. All ways must give the same costs, bit for bit.
"""

import time
from collections.abc import Callable, Iterable

import numpy as np
import tyro

import initfree
from initfree.auto.parts import processes
from initfree.generator import generate
from initfree.result import Result


def small(preset: str) -> initfree.Problem:
    seen = generate(preset, seed=0, noise=0.5)
    o = seen.noisy
    return initfree.Problem.from_tracks(
        o.image.astype(np.int64), o.landmark.astype(np.int64), o.pixel, cameras=seen.cameras[0]
    )  # fmt: skip


def main(starts: int = 100, preset: str = "set7") -> None:
    """Print a table.

    Args:
        starts: How many.
        preset: Of the generator.
    """
    problem = small(preset)
    configs = [initfree.SolveConfig(init="normal-affine", seed=seed, max_iterations=100) for seed in range(starts)]
    initfree.solve(problem, configs[0], "single")
    with processes() as executor:
        list(initfree.solve_each(problem, configs[:4], executor=executor))
        ways: dict[str, Callable[[], Iterable[Result]]] = {
            "one after the other": lambda: (initfree.solve(problem, config, "single") for config in configs),
            "threads": lambda: initfree.solve_each(problem, configs),
            "processes": lambda: initfree.solve_each(problem, configs, executor=executor),
        }
        t = problem.tracks
        print(f"{starts} starts of {preset}: {t.cameras} cameras, {t.observations} observations\n")
        print("| how | seconds | starts a second | ratio | accepted |")
        print("|---|---:|---:|---:|---:|")
        first, costs = 0.0, None
        for name, way in ways.items():
            began = time.perf_counter()
            results = list(way())
            took = time.perf_counter() - began
            first = first or took
            found = [result.stages[-1].cost for result in results]
            assert costs is None or found == costs, name
            costs, accepted = found, sum(result.accepted for result in results)
            print(f"| {name} | {took:.1f} | {starts / took:.1f} | {first / took:.2f} | {accepted} |", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
