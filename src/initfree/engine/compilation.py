"""Which kernels have machine code kept on disk: a person is told before a solve that compiles for a while, and a solve that
does not compile does not wait until Numba could."""

import sys
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

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


class _Kept(FunctionCache):
    """Numba's cache, which otherwise loads all that Numba compiles with before it looks for machine code: as long as twenty
    kernels take.

    Machine code needs Numba's runtime only. Where there is none for a signature, Numba's compiler loads the rest by itself.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def expect_kept() -> None:
    """Kernels of modules that are loaded by now take machine code from disk without getting ready to compile first."""
    # Numba has no public way: a version whose cache is made otherwise keeps its own.
    if not (hasattr(FunctionCache, "_load_overload") and hasattr(FunctionCache, "_guard_against_spurious_io_errors")):
        return
    for found in kernels().values():
        for kernel in found:
            cache: Any = getattr(kernel, "_cache", None)
            if type(cache) is FunctionCache:
                cache.__class__ = _Kept
