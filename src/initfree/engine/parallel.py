"""Work side by side on all cores: kernels and pycolmap's estimators run without the interpreter lock.

Results come in the order of the work, whatever ends first, so that they do not depend on the number of cores. As many
threads as the kernels have (`engine.threads`), each of which then keeps to itself; one in a worker of a sweep.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Event, Lock
from typing import Any, TypeVar

from threadpoolctl import OpenBLASController, threadpool_limits

from initfree.engine.threads import alone, threads

Item = TypeVar("Item")
Value = TypeVar("Value")


_lock = Lock()
_held = 0
_limits: threadpool_limits | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS works in the thread that calls it: its own would spin while they wait, and ours share the work (`threads`).

    The limit is one of the process. Where several threads hold it, the last to leave lifts it: lifted by the first, it would
    let the others go on with sums in another order.
    """
    global _held, _limits
    with _lock:
        _held += 1
        if _limits is None:
            _limits = threadpool_limits(1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _held -= 1
            if _held == 0:
                _lift(_limits)
                _limits = None


def _lift(limits: threadpool_limits) -> None:
    """Since its version 3.8, threadpoolctl lets only the thread that set a limit lift it, unless that thread is cleared."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
    limits.restore_original_limits()
    if clear is not None:
        clear(force=True)


class AbandonedError(Exception):
    """Raised inside work that nobody waits for any more."""


def in_order(
    function: Callable[[Item], Value], items: Sequence[Item], abandoned: Event | None = None
) -> Generator[Value, None, None]:
    """function(item) for every item, in order. Closing the iterator drops what has not begun and abandons the rest."""
    count = min(threads(), len(items))
    if count <= 1:
        yield from map(function, items)
        return

    def work(item: Item) -> Value:
        with alone():
            return function(item)

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            for future in futures:
                yield future.result()
        finally:
            # Before the pool waits for its threads.
            if abandoned is not None:
                abandoned.set()
            for future in futures:
                future.cancel()


@contextmanager
def beside(function: Callable[[], Value]) -> Iterator[Callable[[], Value]]:
    """The function in a thread of its own, which uses no other, while the body of the `with` runs here; both end with it.

    The returned function waits for the value; with one thread it computes it, at the first call.
    """
    if threads() == 1:
        yield cache(function)
        return

    def work() -> Value:
        with alone():
            return function()

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work).result


def abandonable(callback: Callable[..., None] | None, abandoned: Event) -> Callable[..., None]:
    """A callback for long work that ends it once it is abandoned."""

    def watching(*arguments: Any) -> None:
        if abandoned.is_set():
            raise AbandonedError
        if callback is not None:
            callback(*arguments)

    return watching
