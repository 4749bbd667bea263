"""Where the time of a solve goes: seconds of every stage, defaults, one thread, so that they add up.

    INITFREE_DATA=... OPENBLAS_NUM_THREADS=1 python benchmarks/stages.py

Functions of the stages are wrapped wherever a module has them; what one of them calls counts for it. Run it with another
version's `src` on PYTHONPATH to compare. Each problem is solved once before, for what has to be compiled or loaded.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from typing import Any

import tyro
from data import bal_file, data_directory

import initfree
from initfree.data.problem import Problem
from initfree.engine.threads import set_threads

PROBLEMS = ("fountain-p11", "castle-p19", "uwo", "dubrovnik-16", "ladybug-49", "south-building")
STAGES = {
    "two-view": ("two_view.given:two_view_geometries_of", "two_view.focal:guess_focals", "two_view.voting:vote"),
    "stage 1": ("stages.pipeline:minimise_ose", "auto.trimming:trim"),
    "refinement": ("stages.pipeline:refine_projective",),
    "upgrade": ("stages.pipeline:upgrade_metric",),
    "adjustment": ("stages.euclidean.adjustment:adjust",),
    "repair": ("auto.repair:repair",),
    "certificate": ("certificate.verdict:certify", "certificate.baseline:baselines"),
    "intrinsics": ("auto.calibration:recalibrate", "auto.doubt:doubt_intrinsics"),
    "completion": ("auto.completion:without_outliers", "auto.consistent_part:consistent_part"),
}
_WHOLE = frozenset({"repair", "certificate", "intrinsics", "completion"})
"""stages whose own adjustments are theirs"""


class Clock:
    """Seconds by stage; only what runs innermost counts."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._stack = ["other"]
        self._since = time.perf_counter()

    def _switch(self) -> None:
        now = time.perf_counter()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **named: Any) -> Any:
            if self._stack[-1] in _WHOLE and stage != "certificate":
                return function(*arguments, **named)
            self._switch()
            self._stack.append(stage)
            try:
                return function(*arguments, **named)
            finally:
                self._switch()
                self._stack.pop()

        return wrapper

    def restart(self) -> None:
        self.seconds.clear()
        self._since = time.perf_counter()

    def stop(self) -> dict[str, float]:
        self._switch()
        return dict(self.seconds)


def watch() -> Clock:
    """Every stage's functions wrapped, in every module and tuple of functions that has them."""
    clock = Clock()
    for stage, names in STAGES.items():
        for name in names:
            module, function = name.split(":")
            before = getattr(import_module(f"initfree.{module}"), function)
            after = clock.timed(stage, before)
            for loaded in [m for n, m in sys.modules.items() if n.startswith("initfree.")]:
                for key, value in list(vars(loaded).items()):
                    if value is before:
                        setattr(loaded, key, after)
                    elif isinstance(value, tuple) and any(one is before for one in value):
                        setattr(loaded, key, tuple(after if one is before else one for one in value))
    return clock


def load(name: str) -> Problem:
    """A set of real/, a problem of bal/ or the South Building."""
    if name == "south-building":
        return initfree.load(data_directory() / "south_building" / "sparse")
    if (data_directory() / "real" / name).is_dir():
        return initfree.load(data_directory() / "real" / name / "input")
    return initfree.load(bal_file(name))


def main(problems: tuple[str, ...] = PROBLEMS, warm: bool = True) -> None:
    """Print a table.

    Args:
        problems: Folders of real/, problems of bal/ such as dubrovnik-16, or south-building.
        warm: Solve each once before.
    """
    import_module("initfree.api")
    set_threads(1)
    clock = watch()
    columns = ("problem", "verdict", "seconds", *STAGES, "other")
    print("| " + " | ".join(columns) + " |")
    print("|---|---|" + "---:|" * (len(columns) - 2))
    for name in problems:
        problem = load(name)
        if warm:
            initfree.solve(problem)
        problem = load(name)
        clock.restart()
        result = initfree.solve(problem)
        seconds = clock.stop()
        cells = [f"{seconds.get(stage, 0.0):.2f}" for stage in (*STAGES, "other")]
        verdict = "accepted" if result.accepted else "not accepted"
        print("| " + " | ".join([name, verdict, f"{sum(seconds.values()):.1f}", *cells]) + " |", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
