"""Kernels on all cores: a range of landmarks or cameras cut into parts that threads take in turn.

A kernel `f(begin, end, ...)` writes only what belongs to its own landmarks (or cameras) and runs without the interpreter
lock. No two parts write the same number and sums over parts do not exist, so results do not depend on the number of
threads, bit for bit. (Parts of `tiles` wait for each other's numbers; they are taken in their order.) Threads of our own and
not Numba's parallel loops: those may not be entered from two threads at once, which is what starts that run side by side do.

One pass follows the other within microseconds, so threads that have done their part stay awake for a while (`waiting`).

Python's interpreter lock is relied on: numbers that threads tell each other outside kernels are written under it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock, Thread, get_ident, local
from typing import Any

import numpy as np
from numba.core import config

from initfree.engine.waiting import changed
from initfree.errors import InputError
from initfree.tracks import Index

_PARTS_A_THREAD = 4
"""More parts than threads: one that ends early takes another."""
_SMALL = 10_000
"""Observations, or pairs of them, below which a second thread gains little and is not taken from others"""
_AWAKE = 4e-4
"""Seconds that a thread waits for the next pass before it sleeps"""
_LINE = 8
"""Numbers of a cache line: what two threads write is in two"""

_threads: int = vars(config)["NUMBA_NUM_THREADS"]
_lock = Lock()
_here = local()
_alone = 0
"""threads that keep to themselves now"""


def set_threads(count: int) -> None:
    """From now on; by default all cores, or NUMBA_NUM_THREADS."""
    global _threads, _team
    if count < 1:
        raise InputError(f"the number of threads is {count}; expected at least 1")
    with _lock:
        if _team is not None:
            _team.dismiss()
        _threads, _team = count, None


def threads() -> int:
    """Threads that work started from here may use."""
    return 1 if getattr(_here, "alone", False) else _threads


def free_threads() -> int:
    """Of these, those that a pass may have now: work that keeps to itself has its own."""
    return max(1, threads() - _alone)


@contextmanager
def alone() -> Iterator[None]:
    """What this thread runs inside uses no other: for work that runs side by side already."""
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
    most = count * _PARTS_A_THREAD
    bounds = [total * part // most for part in range(most + 1)]
    if not isinstance(work, int):
        bounds = [0, *np.searchsorted(work, bounds[1:-1]).tolist(), size]
    parts = iter(range(len(bounds) - 1))

    def take() -> None:
        for part in parts:
            if bounds[part] < bounds[part + 1]:
                function(bounds[part], bounds[part + 1], *arguments)

    _gathered().share(take, count - 1)


class _Team:
    """Threads that help with one piece of work at a time.

    The piece is a function that takes parts until there are none: who comes late finds none and nobody waits for him. All
    but the waits happens under the interpreter lock.
    """

    def __init__(self, helpers: int) -> None:
        self._owner: int | None = None
        """the thread that the team works for"""
        self._news = np.zeros((helpers + 1) * _LINE, dtype=np.int64)
        """how many pieces there have been; and, a line each, whether a helper is at one"""
        self._take: Callable[[], None] | None = None
        self._wanted = 0
        """helpers that the piece is for: the first ones"""
        self._over = False
        self._failures: list[BaseException] = []
        self._beds: list[SimpleQueue[None] | None] = [None] * helpers
        """what wakes each helper that sleeps"""
        self._waiting = False
        """whether the thread that the team works for sleeps until a helper is done"""
        self._done: SimpleQueue[None] = SimpleQueue()
        for number in range(helpers):
            Thread(target=self._help, args=(number,), name=f"initfree-{number}", daemon=True).start()

    def share(self, take: Callable[[], None], helpers: int) -> None:
        """take() here and, unless they work for another thread, by so many helpers; all of it is done afterwards."""
        here = get_ident()
        with _lock:
            mine = self._owner is None or (self._owner == here and self._take is None)  # interrupted before it began
            if mine:
                self._owner = here
        if not mine:
            take()
            return
        try:
            self._failures, self._wanted, self._take = [], helpers, take
            self._announce()
            take()
        finally:
            interrupted = self._ended()
        failures, self._failures = self._failures, []
        for failure in failures or interrupted:
            raise failure

    def _ended(self) -> list[BaseException]:
        """Whatever happened, nobody may write into the buffers after this; interrupts are told when that is so."""
        interrupted: list[BaseException] = []
        number = -1
        while number < len(self._beds):
            try:
                if number < 0:
                    self._take = None
                else:
                    self._wait_for(number)
                number += 1
            except KeyboardInterrupt as raised:
                interrupted.append(raised)
        self._owner = None
        return interrupted

    def dismiss(self) -> None:
        """The helpers end."""
        self._over = True
        self._announce()

    def _announce(self) -> None:
        self._news[0] += 1
        for bed in self._beds:
            if bed is not None:
                bed.put(None)

    def _wait_for(self, number: int) -> None:
        at = (number + 1) * _LINE
        if not self._news[at] or changed(self._news, at, 1, _awake()):
            return
        self._waiting = True
        while self._news[at]:
            self._done.get()
        self._waiting = False

    def _help(self, number: int) -> None:
        at, seen = (number + 1) * _LINE, 0
        while True:
            if not changed(self._news, 0, seen, _awake()):
                self._sleep(number, seen)
            seen = int(self._news[0])
            if self._over:
                return
            self._news[at] = 1
            take = self._take
            try:
                if take is not None and number < self._wanted:
                    take()
            except BaseException as raised:  # handed to the thread that waits
                self._failures.append(raised)
            del take  # and with it the buffers
            self._news[at] = 0
            if self._waiting:
                self._done.put(None)

    def _sleep(self, number: int, seen: int) -> None:
        bed: SimpleQueue[None] = SimpleQueue()
        self._beds[number] = bed
        if self._news[0] == seen:
            bed.get()
        self._beds[number] = None


def _awake() -> float:
    return 0.0 if _alone else _AWAKE


_team: _Team | None = None


def _gathered() -> _Team:
    global _team
    with _lock:
        if _team is None:
            _team = _Team(_threads - 1)
        return _team


def _after_fork() -> None:
    """A forked process has the team but none of its threads, and of those that keep to themselves the one that forked."""
    global _team, _lock, _alone
    _team, _lock, _alone = None, Lock(), int(getattr(_here, "alone", False))


os.register_at_fork(after_in_child=_after_fork)
