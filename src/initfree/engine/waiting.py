"""What threads tell each other, and waiting for it, without the interpreter lock and without sleep: for microseconds.

Who sleeps takes 50 microseconds and more to wake where the core has gone to sleep as well, and another wake where the
interpreter lock is not free at that moment: as long as a pass over a thousand observations takes. Who looks at a number in
memory again and again goes on at once. That takes a core, so it ends after a while.
"""

import os
import time
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from initfree.data.tracks import Index
from initfree.engine.kernels import kernel

_TRIED, _TIMES = 1000, 5
"""looks, and how often, by which it is measured how long one takes: the fastest counts, others were interrupted"""
_LOOKS = 2000
"""before whoever waits in a kernel lets others have the core, who may be those that he waits for"""


@intrinsic
def _now(_typing, numbers: Any, offset: Any) -> Any:
    """numbers[offset] as it is in memory, whoever wrote it last."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(builder.gep(data, [arguments[1]]), "acquire", 8)

    return types.int64(numbers, types.intp), generate


@intrinsic
def _pause(_typing) -> Any:
    """Tell the core that this is a loop that waits, where it has a word for it."""

    def generate(context, builder, _signature, _arguments):
        if builder.module.triple.startswith("x86_64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _tell(_typing, numbers: Any, offset: Any, value: Any) -> Any:
    """numbers[offset] = value, for others to see after all that was written before."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store_atomic(arguments[2], builder.gep(data, [arguments[1]]), "release", 8)
        return context.get_dummy_value()

    return types.void(numbers, types.intp, types.int64), generate


@intrinsic
def _next(_typing, numbers: Any, offset: Any) -> Any:
    """numbers[offset], which is one more from then on; no two threads get the same."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", builder.gep(data, [arguments[1]]), one, "seq_cst")

    return types.int64(numbers, types.intp), generate


now: Any = _now
tell: Any = _tell
next_of: Any = _next
pause: Any = _pause


_yield = types.ExternalFunction("SwitchToThread" if os.name == "nt" else "sched_yield", types.int32())


@kernel(inline="always")
def wait_until(numbers, offset, value):
    """Until numbers[offset] is `value`."""
    looks = 0
    while now(numbers, offset) != value:
        pause()
        looks += 1
        if looks > _LOOKS:
            _yield()


@kernel()
def _changed(numbers, offset, value, most):
    for _ in range(most):
        if now(numbers, offset) != value:
            return True
        pause()
    return False


@cache
def _looks_a_second() -> float:
    nothing = np.zeros(1, dtype=np.int64)
    _changed(nothing, 0, 0, 1)
    taken = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        _changed(nothing, 0, 0, _TRIED)
        taken.append(time.perf_counter() - began)
    return _TRIED / min(taken)


def looks(seconds: float) -> int:
    """That take so long."""
    return max(1, int(seconds * _looks_a_second()))


def changed(numbers: Index, offset: int, value: int, seconds: float) -> bool:
    """Whether numbers[offset] is, or within so many seconds becomes, another than `value`."""
    return _changed(numbers, offset, value, looks(seconds))


def compile_waiting() -> None:
    """What no small problem needs: these stay on one thread."""
    _changed(np.zeros(1, dtype=np.int64), 0, 1, 1)
