"""Which kernels have machine code kept on disk, so that a person can be told before a solve that compiles for a while."""

import sys
from pathlib import Path
from typing import Any

from numba.core.registry import CPUDispatcher

ABOUT_SECONDS = 40
"""that compiling all kernels of a solve takes on one core of 2024"""
_EVERY_SOLVE = ("initfree.engine.kernels", "initfree.engine.blocks", "initfree.euclidean.kernels")
"""modules without whose kernels no solve ends"""


def kernels() -> dict[str, list[CPUDispatcher]]:
    """Compiled functions by module, of the modules that are loaded."""
    found: dict[str, list[CPUDispatcher]] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("initfree."):
            mine = [v for v in vars(module).values() if isinstance(v, CPUDispatcher) and v.py_func.__module__ == name]
            if mine:
                found[name] = mine
    return found


def kept(kernel: CPUDispatcher) -> int:
    """Signatures whose machine code is on disk and fits to the source and this machine."""
    # Numba has no public question for this; without the answer a kernel counts as not kept.
    file: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    try:
        return len(file._load_index())
    except (AttributeError, OSError, EOFError, ValueError):
        return 0


def place(kernel: CPUDispatcher) -> Path | None:
    """The directory where Numba keeps a kernel's machine code."""
    path = getattr(getattr(kernel, "_cache", None), "cache_path", None)
    return None if path is None else Path(path)


def must_compile() -> bool:
    """Whether a solve has to compile first."""
    loaded = kernels()
    return any(not any(map(kept, loaded[name])) for name in _EVERY_SOLVE if name in loaded)
