"""Kernels on all cores: a range of landmarks or cameras cut into parts that threads take in turn.

A kernel `f(begin, end, ...)` writes only what belongs to its own landmarks (or cameras) and runs without the interpreter
lock. No two parts write the same number and sums over parts do not exist, so results do not depend on the number of
threads, bit for bit. Threads of our own and not Numba's parallel loops: those may not be entered from two threads at once,
which is what starts that run side by side do.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock, Thread, local
from typing import Any

import numpy as np
from numba.core import config

from initfree.errors import InputError
from initfree.tracks import Index

_PARTS_A_THREAD = 4
"""More parts than threads: one that ends early takes another."""
_SMALL = 10_000
"""Observations, or pairs of them, below which waking a thread costs more than it gains: 65 microseconds where a core sleeps,
and an iteration over 9,000 observations takes the same time on two threads as on one."""

_threads: int = vars(config)["NUMBA_NUM_THREADS"]
_Task = tuple[Callable[[], None], "SimpleQueue[BaseException | None]"]
_helpers: "SimpleQueue[_Task | None] | None" = None
_lock = Lock()
_here = local()


def set_threads(count: int) -> None:
    """From now on; by default all cores, or NUMBA_NUM_THREADS."""
    global _threads, _helpers
    if count < 1:
        raise InputError(f"the number of threads is {count}; expected at least 1")
    with _lock:
        if _helpers is not None:
            for _ in range(_threads - 1):
                _helpers.put(None)
        _threads, _helpers = count, None


def threads() -> int:
    """Threads that work started from here may use."""
    return 1 if getattr(_here, "alone", False) else _threads


@contextmanager
def alone() -> Iterator[None]:
    """What this thread runs inside uses no other: for work that runs side by side already."""
    before = getattr(_here, "alone", False)
    _here.alone = True
    try:
        yield
    finally:
        _here.alone = before


def run(function: Callable[..., Any], work: Index | int, *arguments: Any) -> None:
    """function(begin, end, *arguments) over a range: `work` is its length, or the cumulative work of its members."""
    count = threads()
    size, total = (work, work) if isinstance(work, int) else (len(work) - 1, int(work[-1]))
    if count == 1 or total < _SMALL:
        function(0, size, *arguments)
        return
    cuts = np.linspace(0, total, count * _PARTS_A_THREAD + 1).astype(np.int64)
    bounds = (cuts if isinstance(work, int) else np.searchsorted(work, cuts)).tolist()
    bounds[0], bounds[-1] = 0, size
    parts = iter(range(len(bounds) - 1))

    def take() -> None:
        for part in parts:
            if bounds[part] < bounds[part + 1]:
                function(bounds[part], bounds[part + 1], *arguments)

    done: SimpleQueue[BaseException | None] = SimpleQueue()
    work_for_helpers = _work(count)
    for _ in range(count - 1):
        work_for_helpers.put((take, done))
    try:
        take()
    finally:
        # Whatever happened here, nobody may write into the buffers after this call.
        failures = [done.get() for _ in range(count - 1)]
    for failure in failures:
        if failure is not None:
            raise failure


def _work(count: int) -> "SimpleQueue[_Task | None]":
    """What the helpers take their work from. A queue and no more: an executor's futures take longer than a small part."""
    global _helpers
    with _lock:
        if _helpers is None:
            _helpers = SimpleQueue()
            for number in range(count - 1):
                Thread(target=_help, args=(_helpers,), name=f"initfree-{number}", daemon=True).start()
        return _helpers


def _help(tasks: "SimpleQueue[_Task | None]") -> None:
    while (task := tasks.get()) is not None:
        take, done = task
        failure: BaseException | None = None
        try:
            take()
        except BaseException as raised:  # handed to the thread that waits
            failure = raised
        done.put(failure)
        del task, take, done  # and with them the buffers


def _after_fork() -> None:
    """A forked process has the pool but none of its threads."""
    global _helpers, _lock
    _helpers, _lock = None, Lock()


os.register_at_fork(after_in_child=_after_fork)
