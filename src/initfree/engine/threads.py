"""Kernels on all cores: a range of landmarks or cameras cut into parts that threads take in turn.

A kernel `f(begin, end, ...)` writes only what belongs to its own landmarks (or cameras) and runs without the interpreter
lock. No two parts write the same number and no sum crosses from one part to another, so results do not depend on the number
of threads, bit for bit. A pool of Python's threads and not Numba's parallel loops: its one threading layer that every
installation has (workqueue) must not be entered from two threads at once, which starts that run side by side would do.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock, local
from typing import Any

import numpy as np
from numba import config

from initfree.data.tracks import Index
from initfree.errors import InputError

_PARTS_A_THREAD = 4
"""More parts than threads: one that ends early takes another."""
_SMALL = 5_000
"""Observations, or pairs of them, below which a second thread takes longer to wake than to help"""

_threads: int = vars(config)["NUMBA_NUM_THREADS"]
_lock = Lock()
_here = local()
_alone = 0
"""threads that use no other now"""
_pool: ThreadPoolExecutor | None = None


def set_threads(count: int) -> None:
    """From now on; by default all cores, or NUMBA_NUM_THREADS."""
    global _threads, _pool
    if count < 1:
        raise InputError(f"the number of threads is {count}; expected at least 1")
    with _lock:
        if _pool is not None:
            _pool.shutdown(wait=False)
        _threads, _pool = count, None


def threads() -> int:
    """Threads that work started from here may use."""
    return 1 if getattr(_here, "alone", False) else _threads


def free_threads() -> int:
    """Those of them that a pass may have now: a thread that uses no other has its own core."""
    return max(1, threads() - _alone)


@contextmanager
def alone() -> Iterator[None]:
    """Inside, this thread uses no other: for work that runs side by side already."""
    if getattr(_here, "alone", False):
        yield
        return
    try:
        _keep_alone(True)
        yield
    finally:
        _keep_alone(False)


def _keep_alone(alone: bool) -> None:
    global _alone
    with _lock:
        if getattr(_here, "alone", False) != alone:
            _here.alone = alone
            _alone += 1 if alone else -1


def run(function: Callable[..., Any], work: Index | int, *arguments: Any) -> None:
    """function(begin, end, *arguments) over a range: `work` is its length, or the cumulative work of its members."""
    count = free_threads()
    size, total = (work, work) if isinstance(work, int) else (len(work) - 1, int(work[-1]))
    if count == 1 or total < _SMALL:
        function(0, size, *arguments)
        return
    edges = bounds(work, min(_PARTS_A_THREAD * count, max(count, total // max(_SMALL, 1))))
    parts = iter(range(len(edges) - 1))

    def take() -> None:
        for part in parts:
            if edges[part] < edges[part + 1]:
                function(edges[part], edges[part + 1], *arguments)

    _joined(_under_way())
    helpers = _here.helpers = []
    try:
        helpers += [_executor().submit(take) for _ in range(count - 1)]
        take()
    finally:
        for _ in parts:  # after a failure or an interrupt, nobody takes another
            pass
        failures = _joined(helpers)
    for failure in failures:
        raise failure


def bounds(work: Index | int, parts: int) -> list[int]:
    """Where parts of equal work begin, and where the last ends."""
    if isinstance(work, int):
        return [work * part // parts for part in range(parts + 1)]
    inner = np.searchsorted(work, int(work[-1]) * np.arange(1, parts) // parts)
    return [0, *inner.tolist(), len(work) - 1]


def _under_way() -> "list[Future[None]]":
    """Helpers for whom an interrupt did not let this thread wait."""
    return getattr(_here, "helpers", [])


def _joined(helpers: "list[Future[None]]") -> list[BaseException]:
    """Wait until none of them writes into the caller's arrays any more; what went wrong, interrupts of the wait included."""
    failures: list[BaseException] = []
    while helpers:
        try:
            if not helpers[-1].cancel() and (failure := helpers[-1].exception()) is not None:
                failures.append(failure)
            helpers.pop()
        except KeyboardInterrupt as interrupt:
            failures.append(interrupt)
    return failures


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_threads, thread_name_prefix="initfree")
        return _pool


def _after_fork() -> None:
    """A forked process has the pool but none of its threads; of those that use no other, the one that forked."""
    global _pool, _lock, _alone
    _pool, _lock, _alone = None, Lock(), int(getattr(_here, "alone", False))
    _here.helpers = []


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_fork)
