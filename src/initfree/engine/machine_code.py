"""Kept machine code: damaged files are compiled anew, and loading takes no more than it must.

Before Numba looks for machine code on disk it loads all that it compiles with, and with the machine code of every kernel it
reads the bitcode that goes into other kernels when they are compiled: a sixth of a small solve from the shell. Here both
wait until something is compiled (`MachineCode`).

Numba has no public way to this. Where its names are elsewhere, and in the plain engine (`choice`), Numba keeps machine code
in its own way.
"""

import logging
from contextlib import suppress
from typing import Any

import numba
from llvmlite.binding import parse_bitcode

from initfree.engine.choice import PLAIN

Kernel: Any = type(numba.njit(lambda: None))
"""the type of compiled functions"""
_log = logging.getLogger("initfree")

FunctionCache: Any = object
JITCodeLibrary: Any = object
rtsys: Any = None
with suppress(ImportError):
    from numba.core.caching import FunctionCache
    from numba.core.codegen import JITCodeLibrary
    from numba.core.runtime.nrt import rtsys
_known = rtsys is not None and not PLAIN


class KeptCode(FunctionCache):
    """Numba's cache of a kernel, which survives damaged files."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return self._load(sig, target_context)
        except Exception as error:  # unpickling damaged bytes can raise anything
            name = getattr(self._py_func, "__name__", "a kernel")
            _log.warning("%s: kept machine code of %s is damaged (%r); compiling it anew", self.cache_path, name, error)
            with suppress(OSError):
                self.flush()
            return None

    def _load(self, sig: Any, target_context: Any) -> Any:
        return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # the folder is not ours to write in, or its index is damaged: compiled for this run
            _log.warning("%s: machine code is not kept (%r)", self.cache_path, error)


class _Library(JITCodeLibrary):
    """The machine code of a kernel; its bitcode is read when a kernel is compiled that calls it."""

    _bitcode: bytes = b""

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, data = state
        if kind != "object":
            return super()._unserialize(codegen, state)
        library = cls(codegen, name)
        machine_code, library._bitcode = data
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        return library

    def get_pointer_to_function(self, name: str) -> int:
        # Numba looks the name up in its list of symbols first; what was kept has the function that it was kept for.
        return self._codegen._engine.get_function_address(name)

    def _get_module_for_linking(self) -> Any:
        if self._bitcode:
            self._shared_module = parse_bitcode(self._bitcode)
            self._codegen._engine._load_defined_symbols(self._shared_module)
            self._bitcode = b""
        return super()._get_module_for_linking()


class MachineCode(KeptCode):
    """Where it has nothing for a signature, Numba's compiler loads what it needs by itself."""

    def _load(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        codegen = target_context.codegen()
        codegen._library_class = _Library  # under Numba's lock for compilation, which the caller holds
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        finally:
            del codegen._library_class


def survive_damage(kernel: Any) -> Any:
    """The kernel, whose cache is a `KeptCode` if it is Numba's."""
    _become(kernel, FunctionCache, KeptCode)
    return kernel


def load_alone(kernel: Any) -> bool:
    """From now on machine code is loaded without what only a compiler needs; whether it is."""
    return _known and _become(kernel, KeptCode, MachineCode)


def kept(kernel: Any) -> int:
    """Signatures whose machine code is on disk and fits to the source; none where that cannot be known."""
    file: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    try:
        return len(file._load_index())
    except Exception:  # damaged files too: they are compiled anew
        return 0


def _become(kernel: Any, before: type, after: type) -> bool:
    cache: Any = getattr(kernel, "_cache", None)
    if type(cache) is before and before is not object:
        cache.__class__ = after
    return type(cache) is after
