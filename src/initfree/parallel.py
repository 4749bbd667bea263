"""Work side by side on all cores: kernels and pycolmap's estimators run without the interpreter lock.

Results come in the order of the work, whatever ends first, so that they do not depend on the number of cores. As many
threads as the kernels have (`engine.threads`), each of which then keeps to itself; one in a worker of a sweep.
"""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from initfree.engine.threads import alone, threads

Item = TypeVar("Item")
Value = TypeVar("Value")


def one_blas_thread() -> threadpool_limits:
    """BLAS works in the thread that calls it: its own would spin while they wait, and ours share the work (`panels`)."""
    return threadpool_limits(1, user_api="blas")


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


def abandonable(callback: Callable[..., None] | None, abandoned: Event) -> Callable[..., None]:
    """A callback for long work that ends it once it is abandoned."""

    def watching(*arguments: Any) -> None:
        if abandoned.is_set():
            raise AbandonedError
        if callback is not None:
            callback(*arguments)

    return watching
