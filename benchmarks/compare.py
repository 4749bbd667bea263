"""Has anything become slower? Ratios of one run against those that are committed; ends with 1 where one fell by 30%.

    INITFREE_DATA=... python benchmarks/compare.py
    INITFREE_DATA=... python benchmarks/compare.py --write

The yardstick is the generic dense-block VarPro iteration of `varpro_iteration.py`, measured beside each: a ratio says how
many of our steps fit into one of those, whatever the machine. `--write` commits what was measured to `ratios.json`; do that
on an idle machine only.
"""

import json
import sys
from pathlib import Path

import tyro
from data import bal_file
from varpro_iteration import PROBLEMS, dense_blocks, in_turns, ours, stages

from initfree.engine.threads import set_threads
from initfree.io.load import load
from initfree.stages.initialization import initialize

COMMITTED = Path(__file__).with_name("ratios.json")
LEAST = 0.7
"""of the committed ratio"""
STEPS = ("refinement", "adjustment", "VarPro, power series", "VarPro, PCG")


def measured(name: str) -> dict[str, float]:
    """Ratios of one problem."""
    problem = load(bal_file(name), min_obs=2)
    P = initialize("normal-affine", problem.tracks, 0)
    set_threads(1)
    iteration, _ = ours(problem, P)
    generic = dense_blocks(problem, P)
    generic()
    iteration()
    steps = stages(problem, P)
    calls = (1, generic, 1), (1, iteration, 10), (2, iteration, 10), *((1, steps[step], 5) for step in STEPS)
    yardstick, one, two, *alone = in_turns(calls, 8.0)
    found = {"dense blocks / VarPro iteration": yardstick / one, "one thread / two": one / two}
    found |= {f"dense blocks / {step} step": yardstick / taken for step, taken in zip(STEPS, alone, strict=True)}
    return {ratio: round(value, 2) for ratio, value in found.items()}


def main(write: bool = False) -> None:
    """Print a table, and compare.

    Args:
        write: Commit what is measured.
    """
    now = {name: measured(name) for name in PROBLEMS}
    before = json.loads(COMMITTED.read_text()) if COMMITTED.is_file() else {}
    fallen = []
    print("| problem | ratio | committed | measured |")
    print("|---|---|---:|---:|")
    for name, ratios in now.items():
        for ratio, value in ratios.items():
            expected = before.get(name, {}).get(ratio)
            print(f"| {name} | {ratio} | {'' if expected is None else expected} | {value} |")
            if expected is not None and value < LEAST * expected:
                fallen.append(f"{name}: {ratio} fell from {expected} to {value}")
    if write:
        COMMITTED.write_text(json.dumps(now, indent=2) + "\n")
    elif not before:
        sys.exit(f"{COMMITTED.name} is missing; write it with --write")
    elif fallen:
        sys.exit("SLOWER than committed:\n" + "\n".join(fallen))


if __name__ == "__main__":
    tyro.cli(main)
