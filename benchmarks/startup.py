"""What a command takes from the shell and back, kernels compiled and bytecode kept: wall and CPU seconds, and where they go.

    INITFREE_DATA=... OPENBLAS_NUM_THREADS=1 python benchmarks/startup.py

`initfree --help`, and `initfree solve` of a tiny problem that is made here and of real/house where INITFREE_DATA is set. All
run three times unseen, then by turns. The split is of runs of their own, with a clock at what a solve calls. Run it with
another version's `src` on PYTHONPATH to compare.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import tyro
from data import data_directory

import initfree
from initfree.commands.warmup import _K, _SIZE, _ring

PARTS = ("interpreter", "imports", "options", "reading", "kernels", "solve", "writing", "printing", "end")
_UNSEEN = 3
_CLOCKED = """
import json, os, sys, time

began, file = float(sys.argv[1]), sys.argv[2]
sys.argv[1:3] = []
parts = dict.fromkeys(("kernels", "reading", "solve", "writing", "printing"), 0.0)

from initfree.commands import cli


def clocked(part, function):
    def wrapper(*arguments, **named):
        since, kernels = time.monotonic(), parts["kernels"]
        try:
            return function(*arguments, **named)
        finally:
            parts[part] += time.monotonic() - since - (parts["kernels"] - kernels)
    return wrapper


def load(place, load=cli._load):
    parts["interpreter"] = time.monotonic() - began
    function = load(place)
    parts["imports"] = time.monotonic() - began - parts["interpreter"]
    from numba.core.dispatcher import Dispatcher

    import initfree.commands.solve as command

    Dispatcher.compile = clocked("kernels", Dispatcher.compile)
    command.load = clocked("reading", command.load)
    command.solve_problem = clocked("solve", command.solve_problem)
    command.write_into = clocked("writing", command.write_into)
    command._show = clocked("printing", command._show)
    return function


def ended(leave):
    parts["options"] = time.monotonic() - began - sum(parts.values())
    with open(file, "w") as stream:
        json.dump([parts, time.monotonic()], stream)
    leave(0)


cli._load, cli._leave = load, lambda code: ended(os._exit)
sys.exit = lambda code, leave=sys.exit: ended(leave)
cli.main()
"""
"""the command with a clock; "options" is all that no clock is at, most of it the command line"""
IMPORTS = {
    "NumPy": ("numpy",),
    "pycolmap": ("pycolmap",),
    "Numba": ("numba",),
    "SciPy": ("scipy.spatial.transform", "scipy.sparse.linalg", "scipy.sparse.csgraph"),
    "tyro": ("tyro",),
    "Rich": ("rich.console", "rich.table", "rich.live"),
    "Jinja": ("jinja2",),
    "initfree": ("initfree.commands.solve",),
}
"""what a solve imports, one after the other: what comes first pays for what it shares with others"""
_IMPORTED = """
import gc, importlib, json, sys, time, zlib

gc.disable()
taken = {}
for name, modules in json.loads(sys.argv[1]).items():
    since = time.process_time()
    for module in modules:
        importlib.import_module(module)
    taken[name] = time.process_time() - since
print(json.dumps(taken))
"""


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"OPENBLAS_NUM_THREADS": "1"}


def run(arguments: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "initfree", *arguments], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    _, status, used = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        _, told = process.communicate()
        sys.exit(f"initfree {' '.join(arguments)} ended with {process.returncode}: {told.decode()}")
    return took, used.ru_utime + used.ru_stime


def split(arguments: list[str], folder: Path) -> dict[str, float]:
    """Seconds of each part of a solve."""
    file = folder / "parts.json"
    command = [sys.executable, "-c", _CLOCKED, str(time.monotonic()), str(file), *arguments]
    subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL, check=True)
    ended = time.monotonic()
    parts, last = json.loads(file.read_text())
    return parts | {"end": ended - last}


def imported() -> dict[str, float]:
    """CPU seconds of each import."""
    command = [sys.executable, "-c", _IMPORTED, json.dumps(IMPORTS)]
    return json.loads(subprocess.run(command, env=environment(), capture_output=True, check=True).stdout)


def tiny(folder: Path) -> Path:
    """Ten cameras on a ring, as a COLMAP model."""
    image, landmark, xy = _ring(cameras=10)
    problem = initfree.Problem.from_tracks(image, landmark, xy, cameras=_K, sizes=_SIZE)
    initfree.solve(problem).write(folder)
    return folder / "sparse" / "0"


def main(runs: int = 10) -> None:
    """Print three tables.

    Args:
        runs: Of each command.
    """
    with TemporaryDirectory(prefix="initfree-") as scratch:
        folder = Path(scratch)
        problems = {"tiny": tiny(folder / "made")}
        if "INITFREE_DATA" in os.environ:
            problems["house"] = data_directory() / "real" / "house" / "input"
        solves = {name: ["solve", str(path), "--output", str(folder / name)] for name, path in problems.items()}
        commands = {"`initfree --help`": ["--help"]}
        for name, path in problems.items():
            t = initfree.load(path).tracks
            commands[f"`initfree solve`, {name}: {t.cameras} cameras, {t.observations} observations"] = solves[name]
        for arguments in [*commands.values()] * _UNSEEN:
            run(arguments)
        taken = [[run(arguments) for arguments in commands.values()] for _ in range(runs)]
        print("| command | wall, least | median | CPU, least | median |\n|---|---:|---:|---:|---:|")
        for name, figures in zip(commands, zip(*taken, strict=True), strict=True):
            wall, cpu = zip(*figures, strict=True)
            print(f"| {name} | {min(wall):.3f} | {median(wall):.3f} | {min(cpu):.3f} | {median(cpu):.3f} |", flush=True)
        print(f"\n| milliseconds | {' | '.join(PARTS)} |\n|---|{'---:|' * len(PARTS)}")
        for name, arguments in solves.items():
            parts = [split(arguments, folder) for _ in range(runs)]
            figures = [1000.0 * median(one.get(part, 0.0) for one in parts) for part in PARTS]
            print(f"| {name} | {' | '.join(f'{figure:.0f}' for figure in figures)} |", flush=True)
        taken = [imported() for _ in range(runs)]
        print(f"\n| CPU milliseconds | {' | '.join(IMPORTS)} |\n|---|{'---:|' * len(IMPORTS)}")
        print(f"| imports, least | {' | '.join(f'{1000.0 * min(one[name] for one in taken):.0f}' for name in IMPORTS)} |")


if __name__ == "__main__":
    tyro.cli(main)
