"""Kept machine code without what only a compiler needs.

Before Numba looks for machine code on disk it loads all that it compiles with, and with the machine code of every kernel it
reads the bitcode that goes into other kernels when they are compiled: together more than half of what it takes to load the
kernels of a solve, and as much as a small solve itself. Here both wait until something is compiled.

Numba has no public way to this: `compilation.expect_kept` leaves versions alone that it was not tried with.
"""

from typing import Any

from llvmlite.binding import parse_bitcode
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.runtime.nrt import rtsys


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
        # Numba asks first whether its list of symbols has the name; what was kept has the function that it was kept for.
        return self._codegen._engine.get_function_address(name)

    def _get_module_for_linking(self) -> Any:
        if self._bitcode:
            self._shared_module = parse_bitcode(self._bitcode)
            self._codegen._engine._load_defined_symbols(self._shared_module)
            self._bitcode = b""
        return super()._get_module_for_linking()


class MachineCode(FunctionCache):
    """Numba's cache of a kernel. Where it has nothing for a signature, Numba's compiler loads what it needs by itself."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        codegen = target_context.codegen()
        codegen._library_class = _Library  # under Numba's lock for compilation, which the caller holds
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        finally:
            del codegen._library_class
