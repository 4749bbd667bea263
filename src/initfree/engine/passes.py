"""A kernel's parts on several threads that need the interpreter lock for none of it.

A thread that wants the lock while another has it goes to sleep, and whoever lets go of it wakes him: 20 to 50 microseconds
each time, at the begin of a pass and again at its end, where a whole pass takes a hundred. So helpers stay in one kernel,
`serve`, and look at the mail. Whoever has a pass to share (`shared`) leaves there how to call the kernel and where its
arguments are, and how many parts nobody has taken; all of them take parts until there are none.

A part is taken by taking one from the number of parts left: who finds that number positive has a part of the pass that the
mail tells of, which cannot end before that part is done. Who comes late finds none, or one of the next pass, complete.

How a kernel is called is Numba's convention for compiled functions, through its address: the kernel is compiled once,
whoever calls it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import typeof
from numba.core import cgutils, types
from numba.extending import intrinsic

from initfree.data.tracks import Index
from initfree.engine.kernels import kernel
from initfree.engine.simd import LINE, aligned
from initfree.engine.waiting import next_of, now, pause, tell, wait_until

_EACH = 4
"""Parts of a thread: one that has done its own takes those of others"""
CALLS, _DONE, _HOW = (LINE * line for line in range(3))
"""In the mail: how many pieces of work there have been that need the interpreter; of a pass how many parts are done; and how
it is called"""
_THREADS, _FAILED, _CALL, _ARGUMENTS = range(_HOW, _HOW + 4)
"""how many threads it is for, whether a part failed, where the function and its arguments are"""
_QUEUES = _HOW + LINE
"""a line for each thread: parts that nobody has taken, and from the next number on where they begin"""


def make_mail(threads: int) -> Index:
    """For passes of so many threads."""
    mail = aligned(_QUEUES + threads * LINE).view(np.int64)
    mail[:] = 0
    return mail


@intrinsic
def _leave(_typing, mail: Any, address: Any, arguments: Any) -> Any:
    """In the mail, how to call the kernel at `address` with begin, end and these arguments, until the caller returns."""
    signature = types.void(mail, types.intp, arguments)

    def generate(context, builder, signature, values):
        mail, address, arguments = values
        word, passed = ir.IntType(64), (types.intp, types.intp, *signature.args[2].types)
        kept = cgutils.alloca_once(builder, ir.LiteralStructType([word, arguments.type]))
        builder.store(cgutils.make_anonymous_struct(builder, [address, arguments]), kept)
        name = f"{builder.function.name}.call"
        call = ir.Function(builder.module, ir.FunctionType(word, [word, word, word]), name)
        call.linkage = "internal"
        inside = ir.IRBuilder(call.append_basic_block())
        found = inside.load(inside.inttoptr(call.args[0], kept.type))
        kind = context.call_conv.get_function_type(types.none, passed)
        target = inside.inttoptr(inside.extract_value(found, 0), kind.as_pointer())
        each = cgutils.unpack_tuple(inside, inside.extract_value(found, 1))
        status, _ = context.call_conv.call_function(inside, target, types.none, passed, [*call.args[1:], *each])
        inside.ret(inside.zext(status.is_error, word))
        data = context.make_array(signature.args[0])(context, builder, mail).data
        for at, value in ((_CALL, call), (_ARGUMENTS, kept)):
            builder.store(builder.ptrtoint(value, word), builder.gep(data, [ir.Constant(word, at)]))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _call(_typing, call: Any, arguments: Any, begin: Any, end: Any) -> Any:
    """What `_leave` left, of a part; 1 where it fails."""

    def generate(_context, builder, _signature, values):
        word = ir.IntType(64)
        call = builder.inttoptr(values[0], ir.FunctionType(word, [word, word, word]).as_pointer())
        return builder.call(call, values[1:])

    return types.int64(*(types.int64,) * 4), generate


@intrinsic
def _take(_typing, numbers: Any, offset: Any) -> Any:
    """numbers[offset], which is one less from then on; no two threads get the same."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("sub", builder.gep(data, [arguments[1]]), one, "seq_cst")

    return types.int64(numbers, types.intp), generate


leave: Any = _leave
call_part: Any = _call
take: Any = _take


@kernel(strict=True)
def _take_parts(mail, number):
    """Of thread `number` first, then of those after it."""
    threads = now(mail, _THREADS)
    for other in range(threads):
        at = _QUEUES + LINE * ((number + other) % threads)
        while True:
            left = take(mail, at)
            if left <= 0:
                break
            begin, end = now(mail, at + 1 + _EACH - left), now(mail, at + 2 + _EACH - left)
            if begin < end and call_part(now(mail, _CALL), now(mail, _ARGUMENTS), begin, end) != 0:
                tell(mail, _FAILED, 1)
            next_of(mail, _DONE)


@kernel(strict=True)
def bound(size, work, part, parts):
    """Where a part begins, or the last ends, of a range of this size: equal parts of the work, if there is any."""
    if part == 0 or part == parts:
        return size if part else 0
    return np.searchsorted(work, work[-1] * part // parts) if work.size else size * part // parts


@kernel(strict=True)
def _finish(mail, size, work, threads):
    """Begin the pass that was left, take part in it, and wait for others to end theirs; whether none failed."""
    for thread in range(threads):
        for part in range(_EACH + 1):
            mail[_QUEUES + LINE * thread + 1 + part] = bound(size, work, _EACH * thread + part, _EACH * threads)
    mail[_THREADS], mail[_FAILED] = threads, 0
    tell(mail, _DONE, 0)
    for thread in range(threads - 1, -1, -1):
        tell(mail, _QUEUES + LINE * thread, _EACH)
    _take_parts(mail, 0)
    wait_until(mail, _DONE, _EACH * threads)
    return now(mail, _FAILED) == 0


@kernel(strict=True)
def shared(mail, address, size, work, threads, arguments):
    """Whether the kernel at `address` did kernel(begin, end, *arguments) for all parts of a range, here and by helpers."""
    leave(mail, address, arguments)
    return _finish(mail, size, work, threads)


@kernel(strict=True)
def serve(mail, number, calls, looks):
    """Thread `number` takes parts of passes until there has been none for so many looks, or the interpreter is needed: until
    there have been other than so many calls."""
    idle = 0
    while idle < looks and now(mail, CALLS) == calls:
        if now(mail, _QUEUES + LINE * number) > 0:
            _take_parts(mail, number)
            idle = 0
        pause()
        idle += 1


def waits(mail: Index, number: int) -> bool:
    """Whether thread `number` has parts left."""
    return mail[_QUEUES + LINE * number] > 0


EVEN = np.empty(0, dtype=np.int64)
"""work of members that are all alike"""
_addresses: dict[tuple[Any, Any], int] = {}


def address(function: Any, arguments: tuple[Any, ...]) -> int:
    """Of a kernel's machine code for (begin, end, *arguments), compiled if need be."""
    key = function, _kind()(arguments)
    found = _addresses.get(key)
    if found is None:
        kinds = (types.intp, types.intp, *map(typeof, arguments))
        function.compile(kinds)
        compiled = function.overloads[kinds]
        if compiled.signature.return_type != types.none:
            raise TypeError(
                f"{function.__name__} returns {compiled.signature.return_type}; a kernel in parts returns nothing"
            )
        found = _addresses[key] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return found


@cache
def _kind() -> Callable[[Any], Any]:
    """What tells types of arguments apart, as Numba itself does it."""
    from numba import _dispatcher

    return _dispatcher.compute_fingerprint


def pass_over(mail: Index, function: Any, size: int, work: Index, threads: int, arguments: tuple[Any, ...]) -> bool:
    """function(begin, end, *arguments) of a kernel over a range, by this thread, number 0, and others that serve; whether it
    did."""
    return shared(mail, address(function, arguments), size, work, threads, arguments)
