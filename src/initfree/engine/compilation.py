"""Which kernels have machine code kept on disk: a person is told before a solve that compiles for a while, and a solve that
does not compile does without what only a compiler needs."""

import sys
from pathlib import Path
from typing import Any

import numba
from numba.core.registry import CPUDispatcher

ABOUT_SECONDS = 40
"""that compiling all kernels of a solve takes on one core of 2024"""
_EVERY_SOLVE = tuple(
    f"initfree.{name}"
    for name in (
        "engine.kernels",
        "engine.elimination",
        "engine.shares",
        "engine.blocks",
        "euclidean.kernels",
        "euclidean.assembly",
        "certificate.coherence",
    )
)
"""modules without whose kernels no solve ends"""
_TRIED = (0, 60), (0, 68)
"""first and last version of Numba with which machine code is loaded by itself: tests/test_machine_code.py ran with each"""


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


def expect_kept() -> bool:
    """From now on kernels of the modules that are loaded take machine code by itself (`machine_code`); whether they do."""
    first, last = _TRIED
    if not first <= numba.version_info.short <= last:
        return False
    # Not at the top: in another version its names may be elsewhere.
    from initfree.engine.machine_code import MachineCode

    for found in kernels().values():
        for kernel in found:
            cache: Any = getattr(kernel, "_cache", None)
            if type(cache) is MachineCode.__base__:
                cache.__class__ = MachineCode
    return True
