"""What the fast engine saves: whole solves with both engines (`engine/choice.py`), CPU seconds on one thread.

    INITFREE_DATA=... python benchmarks/engines.py

Each engine has a process of its own. Each problem is solved once before, for what has to be compiled or loaded; the least
of some solves counts.
"""

import json
import os
import subprocess
import sys
import time
from functools import partial

import tyro
from data import bal_file, data_directory

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def seconds(solves: int) -> dict[str, float]:
    """Least CPU seconds of each problem, with the engine of this process."""
    import initfree
    from initfree.generator import generate

    def of_set(name: str, **spoilt: float) -> initfree.Problem:
        return initfree.load(generate(name, seed=5, shuffle=True, noise=0.5, **spoilt).to_colmap(noisy=True))

    problems = {
        "set2": partial(of_set, "set2"),
        "set4, 10% wrong": partial(of_set, "set4", outliers=0.1),
        "South Building": lambda: initfree.load(data_directory() / "south_building" / "sparse"),
        "ladybug-49": lambda: initfree.load(bal_file("ladybug-49")),
    }
    found = {}
    for name, make in problems.items():
        problem = make()
        took = []
        for _ in range(solves + 1):
            began = time.process_time()
            initfree.solve(problem)
            took.append(time.process_time() - began)
        found[name] = min(took[1:])
    return found


def main(solves: int = 3, child: bool = False) -> None:
    """Print a table.

    Args:
        solves: Of each problem with each engine.
        child: Measure one engine and print JSON.
    """
    if child:
        print(json.dumps(seconds(solves)))
        return
    found = {}
    for engine in ("fast", "plain"):
        command = [sys.executable, __file__, "--solves", str(solves), "--child"]
        done = subprocess.run(
            command, env=os.environ | ONE_THREAD | {"INITFREE_ENGINE": engine}, stdout=subprocess.PIPE, text=True, check=True
        )
        found[engine] = json.loads(done.stdout.splitlines()[-1])
    print("| problem | fast | plain | plain / fast |")
    print("|---|---:|---:|---:|")
    for name, fast in found["fast"].items():
        plain = found["plain"][name]
        print(f"| {name} | {fast:.2f} | {plain:.2f} | {plain / fast:.2f} |")


if __name__ == "__main__":
    tyro.cli(main)
