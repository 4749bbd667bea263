"""Kernels on all cores: a range of landmarks or cameras cut into parts that threads take in turn.

A kernel `f(begin, end, ...)` writes only what belongs to its own landmarks (or cameras) and runs without the interpreter
lock. No two parts write the same number and sums over parts do not exist, so results do not depend on the number of
threads, bit for bit. (Parts of `tiles` wait for each other's numbers; they are taken in their order.) Threads of our own and
not Numba's parallel loops: those may not be entered from two threads at once, which is what starts that run side by side do.

One pass follows the other within microseconds, so threads that have done their part stay awake for a while, and take parts
of kernels without the interpreter (`passes`). Functions that need it (those that call BLAS) are shared under its lock, which
is relied on: numbers that threads tell each other outside kernels are written under it.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock, Thread, get_ident, local
from typing import Any

import numpy as np
from numba.core import config
from numba.core.registry import CPUDispatcher

from initfree.data.tracks import Index
from initfree.engine import passes
from initfree.engine.simd import LINE
from initfree.engine.waiting import changed, looks
from initfree.errors import InputError

_PARTS_A_THREAD = 4
"""More parts than threads: one that ends early takes another."""
_AWAKE = 4e-4
"""Seconds that a thread waits for the next pass before it sleeps"""

_small = 2_000
"""Observations, or pairs of them, below which a second thread gains little and is not taken from others"""
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


@contextmanager
def sharing_all() -> Iterator[None]:
    """Inside, passes over the smallest work are shared too: what is compiled for small problems then serves large ones."""
    global _small
    before, _small = _small, 0
    try:
        yield
    finally:
        _small = before


def run(function: Callable[..., Any], work: Index | int, *arguments: Any) -> None:
    """function(begin, end, *arguments) over a range: `work` is its length, or the cumulative work of its members."""
    count = free_threads()
    size, total, work = (work, work, passes.EVEN) if isinstance(work, int) else (len(work) - 1, int(work[-1]), work)
    if count == 1 or total < _small:
        function(0, size, *arguments)
    elif isinstance(function, CPUDispatcher):
        _gathered().pass_over(function, size, work, count, arguments)
    else:
        _gathered().share(_in_turn(function, size, work, count * _PARTS_A_THREAD, arguments), count - 1)


def _in_turn(
    function: Callable[..., Any], size: int, work: Index, most: int, arguments: tuple[Any, ...]
) -> Callable[[], None]:
    """What takes parts of a function that needs the interpreter until there are none."""
    bounds = [passes.bound(size, work, part, most) for part in range(most + 1)]
    parts = iter(range(most))

    def take() -> None:
        for part in parts:
            if bounds[part] < bounds[part + 1]:
                function(bounds[part], bounds[part + 1], *arguments)

    return take


class _Team:
    """Threads that help with one piece of work at a time: with passes of kernels (`passes`), which need no interpreter, and
    with functions that take parts until there are none, who comes late finds none. All of the latter but the waits happens
    under the interpreter lock.
    """

    def __init__(self, helpers: int) -> None:
        self._owner: int | None = None
        """the thread that the team works for"""
        self._mail = passes.make_mail(helpers + 1)
        self._busy = np.zeros(helpers * LINE, dtype=np.int64)
        """whether a helper is at a function, a line each"""
        self._take: Callable[[], None] | None = None
        self._wanted = 0
        """helpers that the function is for: the first ones"""
        self._over = False
        self._failures: list[BaseException] = []
        self._beds: list[SimpleQueue[None] | None] = [None] * helpers
        """what wakes each helper that sleeps"""
        self._waiting = False
        """whether the thread that the team works for sleeps until a helper is done"""
        self._done: SimpleQueue[None] = SimpleQueue()
        for number in range(helpers):
            Thread(target=self._help, args=(number,), name=f"initfree-{number}", daemon=True).start()

    def pass_over(self, function: Any, size: int, work: Index, count: int, arguments: tuple[Any, ...]) -> None:
        """A pass of a kernel here and, unless they work for another thread, by the helpers."""
        if not self._engaged():
            function(0, size, *arguments)
            return
        try:
            self._wake()
            done = passes.pass_over(self._mail, function, size, work, count, arguments)
        finally:
            self._owner = None
        if not done:
            function(0, size, *arguments)  # raises what went wrong, unless that was of one time
            raise RuntimeError(f"{function.__name__} failed in a part and not when it was run again")

    def share(self, take: Callable[[], None], helpers: int) -> None:
        """take() here and, unless they work for another thread, by so many helpers; all of it is done afterwards."""
        if not self._engaged():
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

    def _engaged(self) -> bool:
        """Whether the team works for this thread from now on; what it was at when this thread was interrupted is over."""
        here = get_ident()
        with _lock:
            mine = self._owner is None or (self._owner == here and not self._inside())
            if mine:
                self._owner = here
        if mine:
            self._take = None
            for number in range(len(self._beds)):
                self._wait_for(number)
        return mine

    def _inside(self) -> bool:
        """Whether this thread is inside a piece of work of the team, and not only was until an interrupt: interrupts come
        between any two instructions, also where one is about to say that the work has ended."""
        frame, begun = sys._getframe(), 0
        while frame is not None:
            begun += frame.f_code in (_Team.share.__code__, _Team.pass_over.__code__)
            frame = frame.f_back
        return begun > 1  # one of them asks

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
        self._mail[passes.CALLS] += 1
        self._wake()

    def _wake(self) -> None:
        for bed in self._beds:
            if bed is not None:
                bed.put(None)

    def _wait_for(self, number: int) -> None:
        at = number * LINE
        if not self._busy[at] or changed(self._busy, at, 1, _awake()):
            return
        self._waiting = True
        while self._busy[at]:
            self._done.get()
        self._waiting = False

    def _help(self, number: int) -> None:
        at, calls = number * LINE, 0
        while True:
            passes.serve(self._mail, number + 1, calls, looks(_awake()))
            if self._mail[passes.CALLS] == calls:
                self._sleep(number, calls)
                continue
            calls = int(self._mail[passes.CALLS])
            if self._over:
                return
            self._busy[at] = 1
            take = self._take
            try:
                if take is not None and number < self._wanted:
                    take()
            except BaseException as raised:  # handed to the thread that waits
                self._failures.append(raised)
            del take  # and with it the buffers
            self._busy[at] = 0
            if self._waiting:
                self._done.put(None)

    def _sleep(self, number: int, calls: int) -> None:
        bed: SimpleQueue[None] = SimpleQueue()
        self._beds[number] = bed
        if self._mail[passes.CALLS] == calls and not passes.waits(self._mail, number + 1):
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
