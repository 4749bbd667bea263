"""What parts of the engine save: whole solves with and without them, CPU seconds on one thread.

    INITFREE_DATA=... python benchmarks/engines.py

plain: tuples in place of vector registers (`engine/choice.py`); band, dissection: every system factorised in a band, or by a
dissection; one-range: all landmarks in one range (`engine/reduction.py`); numeric: derivatives of all lenses by differences
(`stages/euclidean/opencv_lenses.py`). Each has a process of its own. The least of some solves counts, so that compiling and
loading does not.
"""

import json
import math
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from typing import Literal
from unittest.mock import patch

import tyro
from data import bal_file, data_directory
from survey import problem_of, survey

import initfree
from initfree.engine import factorisation, reduction
from initfree.generator import generate
from initfree.stages.euclidean import opencv_lenses

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
Engine = Literal["default", "plain", "band", "dissection", "one-range", "numeric"]
CHANGED = {
    "band": (factorisation, {"_SPARSE": math.inf}),
    "dissection": (factorisation, {"_SPARSE": 0, "_WORTHWHILE": math.inf}),
    "numeric": (opencv_lenses, {"PLACES": {}}),
    "one-range": (reduction, {"_IN_CACHE": 10**12, "_LARGE": 10**12, "_MOST": (1, 1)}),
}
"""constants of a module"""


def of_set(name: str, **spoilt: float) -> initfree.Problem:
    return initfree.load(generate(name, seed=5, shuffle=True, noise=0.5, **spoilt).to_colmap(noisy=True))


def of_survey(cameras: int) -> initfree.Problem:
    return problem_of(generate(survey(cameras), seed=5, shuffle=True, noise=0.5))


PROBLEMS = {
    "set2": partial(of_set, "set2"),
    "set4, 10% wrong": partial(of_set, "set4", outliers=0.1),
    "castle-p19": lambda: initfree.load(data_directory() / "real" / "castle-p19" / "input"),
    "South Building": lambda: initfree.load(data_directory() / "south_building" / "sparse"),
    "ladybug-49": lambda: initfree.load(bal_file("ladybug-49")),
    "survey of 500": partial(of_survey, 500),
    "survey of 1000": partial(of_survey, 1000),
}


def least_seconds(problem: initfree.Problem, solves: int) -> float:
    took = []
    for _ in range(solves):
        began = time.process_time()
        initfree.solve(problem)
        took.append(time.process_time() - began)
    return min(took)


def main(
    problems: tuple[str, ...] = tuple(PROBLEMS),
    engines: tuple[Engine, ...] = ("default", "plain", "band", "one-range"),
    solves: int = 3,
    child: bool = False,
) -> None:
    """Print a table.

    Args:
        problems: By name.
        engines: The default engine, and others.
        solves: Of each problem with each engine.
        child: Measure one engine and print JSON.
    """
    if child:
        module, constants = CHANGED.get(engines[0], (reduction, {}))
        with patch.multiple(module, **constants) if constants else nullcontext():
            print(json.dumps({name: least_seconds(PROBLEMS[name](), solves) for name in problems}))
        return
    seconds = {}
    for engine in engines:
        options = "--solves", str(solves), "--engines", engine, "--problems", *problems, "--child"
        environment = os.environ | ONE_THREAD | {"INITFREE_ENGINE": "plain" if engine == "plain" else "fast"}
        command = [sys.executable, __file__, *options]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        seconds[engine] = json.loads(done.stdout.splitlines()[-1])
    print("| problem |", " | ".join(engines), "|", " | ".join(f"{name} / {engines[0]}" for name in engines[1:]), "|")
    print("|---|" + "---:|" * (2 * len(engines) - 1))
    for name in problems:
        each = [seconds[engine][name] for engine in engines]
        cells = [f"{one:.2f}" for one in (*each, *(one / each[0] for one in each[1:]))]
        print(f"| {name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    tyro.cli(main)
