"""Progress of a solve: a live line in a terminal, occasional lines in pipes, JSON for programs.

What is counted (pairs of images, finishing steps, parts) has a bar; starts and iterations end when they are good enough, and
have an upper bound. Nothing says when they will, so no remaining time is shown.
"""

import math
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.live import Live
from rich.text import Text

from initfree.engine.compilation import ABOUT_SECONDS
from initfree.engine.levenberg_marquardt import Iteration
from initfree.errors import InputError
from initfree.io.run_json import to_json
from initfree.result import Result

_REFRESH_SECONDS = 0.1
_LINE_SECONDS = 15.0
"""between lines where the output is no terminal: a log stays short, and silence does not look like a hang"""
_WATCH_SECONDS = 1.0
"""between looks at whether it is time for a line"""
_AFTER_SECONDS = 3.0
"""since the last call of the adjustment: what follows it calls nobody"""
_EVENT_SECONDS = 1.0
"""between JSON events of one stage"""
_COUNTED = re.compile(r"(.*) of (\d+)")
"""the name of a stage that counts"""
_BAR = (8, 30)
"""characters, at least and at most"""

_Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


@dataclass(frozen=True)
class Shown:
    """What is shown while it runs."""

    quiet: _Flag = False
    """Print the verdict alone, and no progress."""
    verbose: _Flag = False
    """Print a line for every stage of every start."""
    json_lines: _Flag = False
    """Print one JSON object a line on stdout, for programs: progress, stages, verdict."""

    def __post_init__(self) -> None:
        if self.quiet and (self.verbose or self.json_lines):
            raise InputError("--quiet shows no progress; expected it without --verbose and --json-lines")


class SolveProgress:
    """Called by the stages, from several threads: time so far, number and name of the start, stage, iteration, cost.

    A thread of its own says now and then where things stand, also while no stage calls.
    """

    def __init__(
        self,
        shown: Shown,
        console: Console | None = None,
        most_starts: int | None = None,
        most_iterations: int | None = None,
    ) -> None:
        self._shown = shown
        self._most = "" if most_starts is None else f" of at most {most_starts}"
        self._most_iterations = "" if most_iterations is None else f"  (at most {most_iterations} iterations)"
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False) if console is None else console
        self._silent = shown.quiet or shown.json_lines
        live = self._console.is_terminal and not self._silent
        self._live = Live(console=self._console, transient=True, auto_refresh=False) if live else None
        self._began = self._told = self._called = time.monotonic()
        self._starts: list[str] = []
        self._now: tuple[str, str, int, Iteration | None] = ("", "reading", -1, None)
        self.compiled = 0.0
        """seconds that compiling took; no stage's, and not the solve's"""
        self._lock = Lock()
        self._ended = Event()
        self._watch = Thread(target=self._watched, daemon=True)

    def __enter__(self) -> "SolveProgress":
        if self._live is not None:
            self._live.start()
        if not self._silent:
            self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._live is not None:
            self._live.stop()

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Say before kernels compile that they do, and afterwards how long it took."""
        began = time.monotonic()
        self._event("compiling", about_seconds=ABOUT_SECONDS)
        if not self._silent:
            self._console.print(f"compiling kernels, once, about {ABOUT_SECONDS} s on an idle machine", soft_wrap=True)
        self._now = ("", "compiling kernels", -1, None)
        yield
        self._now = ("", "solving", -1, None)
        self.compiled = time.monotonic() - began
        self._event("compiled", seconds=round(self.compiled, 3))
        if not self._silent:
            self._console.print(f"kernels compiled and kept ({self.compiled:.0f} s)", soft_wrap=True)

    def __call__(self, stage: str, index: int, step: Iteration | None) -> None:
        if self._shown.quiet:
            return
        with self._lock:
            now = self._called = time.monotonic()
            start, _, what = stage.rpartition(": ")
            new = (start, what) != self._now[:2]
            self._now = (start, what, index, step)
            if start and start not in self._starts:
                self._starts.append(start)
            since = now - self._told
            if self._shown.json_lines:
                if new or since >= _EVENT_SECONDS:
                    self._told = now
                    cost = None if step is None else step.cost
                    number = self._starts.index(start) + 1 if start else None
                    counted = _COUNTED.fullmatch(what)
                    total = {} if counted is None else {"total": int(counted[2])}
                    figures = {"stage": counted[1] if counted else what, "iteration": index + 1, **total, "cost": cost}
                    self._event("progress", start=start or None, number=number, **figures)
                return
            if self._shown.verbose and new:
                self._told = now
                self._console.print(self._line(now), soft_wrap=True)
            else:
                self._tell(now, _REFRESH_SECONDS)

    def _tell(self, now: float, refresh: float) -> None:
        """The line again, if it is time for it."""
        since = now - self._told
        if self._live is None and since >= _LINE_SECONDS:
            self._told = now
            self._console.print(self._line(now), soft_wrap=True)
        elif self._live is not None and since >= refresh:
            self._told = now
            self._live.update(Text(self._with_bar(self._line(now)), no_wrap=True, overflow="ellipsis"), refresh=True)

    def _watched(self) -> None:
        while not self._ended.wait(_WATCH_SECONDS):
            with self._lock:
                self._tell(time.monotonic(), _WATCH_SECONDS)

    def finished(self, result: Result, output: Path, metrics: dict[str, Any] | None = None) -> None:
        """The stages of the result and its verdict, for programs."""
        for stage in result.stages:
            figures = {key: value for key, value in asdict(stage).items() if key != "history"}
            self._event("stage", **figures)
        self._event(
            "verdict",
            accepted=result.accepted,
            reason=result.certificate.reason,
            cameras=result.problem.tracks.cameras,
            landmarks=result.problem.tracks.landmarks,
            starts=len(result.starts),
            metrics=metrics,
            output=str(output),
        )

    def _line(self, now: float) -> str:
        start, what, index, step = self._now
        minutes, seconds = divmod(int(now - self._began), 60)
        number = f"start {self._starts.index(start) + 1}{self._most} ({start})  " if start else ""
        if what == "adjustment" and now - self._called >= _AFTER_SECONDS:
            return f"{minutes}:{seconds:02d}  {number}adjusted; its repair and verdict follow"
        if counted := _COUNTED.fullmatch(what):
            return f"{minutes}:{seconds:02d}  {number}{counted[1]} {index + 1} of {counted[2]}"
        count = f"{index + 1:4d}" if index >= 0 else ""
        figures = count if step is None else f"iteration {count}  cost {step.cost:.4g}{self._most_iterations}"
        return f"{minutes}:{seconds:02d}  {number}{what:<12} {figures}".rstrip()

    def _with_bar(self, line: str) -> str:
        """What is counted also as a bar, where the terminal has room for one."""
        _, what, index, _ = self._now
        counted, room = _COUNTED.fullmatch(what), self._console.width - len(line) - 3
        if counted is None or room < _BAR[0]:
            return line
        width = min(room, _BAR[1])
        done = width * (index + 1) // max(int(counted[2]), 1)
        return f"{line}  {'━' * done}{'─' * (width - done)}"

    def _event(self, event: str, **values: Any) -> None:
        if self._shown.json_lines:
            elapsed = math.floor(1000 * (time.monotonic() - self._began)) / 1000
            # One write a line: events come from several threads.
            sys.stdout.write(to_json({"event": event, "elapsed": elapsed, **values}) + "\n")
            sys.stdout.flush()
