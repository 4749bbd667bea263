"""Signals that wait while work runs that must not be cut in two."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held(signals: set[signal.Signals]) -> Iterator[None]:
    """Inside, these signals of this thread wait; new processes inherit that. Windows holds none back."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
