"""Compiling: said before it begins, left out of the seconds of a solve, and done once on a machine."""

import logging
import sys
from pathlib import Path
from threading import local
from time import perf_counter
from typing import Any

from numba.core import event

from initfree.engine.machine_code import Kernel, kept, load_alone

__all__ = ["ABOUT_SECONDS", "clock", "expect_kept", "kept", "kernels", "must_compile", "place"]

ABOUT_SECONDS = 40
"""that compiling all kernels of a solve takes on one core of 2024"""
_EVERY_SOLVE = tuple(
    f"initfree.{name}"
    for name in (
        "engine.kernels",
        "engine.elimination",
        "engine.reduction",
        "engine.blocks",
        "stages.euclidean.kernels",
        "stages.euclidean.assembly",
        "certificate.coherence",
    )
)
"""modules without whose kernels no solve ends"""
_log = logging.getLogger("initfree")
_here = local()


class _Compilations(event.Listener):
    """Notes when this package's kernels compile, thread by thread; those compiled on the way to another are a part of it."""

    said = False

    def on_start(self, event: Any) -> None:
        if _is_ours(event):
            if not self.said:
                self.said = True
                _say(f"compiling kernels, once on this machine, about {ABOUT_SECONDS} s in all on an idle machine")
            _here.depth = getattr(_here, "depth", 0) + 1
            if _here.depth == 1:
                _here.began = perf_counter()

    def on_end(self, event: Any) -> None:
        if _is_ours(event):
            _here.depth -= 1
            if _here.depth == 0:
                _here.seconds = getattr(_here, "seconds", 0.0) + perf_counter() - _here.began


def _is_ours(event: Any) -> bool:
    return event.data["dispatcher"].py_func.__module__.startswith("initfree.")


def _say(words: str) -> None:
    """As a message of the logger "initfree"; seen in a terminal and in a notebook also where nobody has set up logging."""
    if not _log.hasHandlers() and (sys.stderr.isatty() or "ipykernel" in sys.modules):
        print(f"initfree: {words}", file=sys.stderr, flush=True)
    _log.info(words)


event.register("numba:compile", _Compilations())


def clock() -> float:
    """Seconds of this thread without those in which it compiled."""
    return perf_counter() - getattr(_here, "seconds", 0.0)


def kernels() -> dict[str, list[Any]]:
    """Compiled functions by module, of the modules that are loaded."""
    found: dict[str, list[Any]] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("initfree."):
            mine = [v for v in vars(module).values() if isinstance(v, Kernel) and v.py_func.__module__ == name]
            if mine:
                found[name] = mine
    return found


def place(kernel: Any) -> Path | None:
    """The directory where Numba keeps a kernel's machine code."""
    path = kernel.stats.cache_path
    return None if path is None else Path(path)


def must_compile() -> bool:
    """Whether a solve has to compile first."""
    loaded = kernels()
    return any(not any(map(kept, loaded[name])) for name in _EVERY_SOLVE if name in loaded)


def expect_kept() -> bool:
    """From now on kernels of the modules that are loaded take machine code by itself (`machine_code`); whether they do."""
    return all([load_alone(kernel) for found in kernels().values() for kernel in found])
