"""The bar of a sweep."""

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from initfree.benchmark.sweep import Progress

_LOG_SECONDS = (5.0, 60.0)
"""between two lines, at first and at last: each waits twice as long as the one before"""


class SweepProgress:
    """Runs done, solved and remaining time; lines, ever more rarely, where the output is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._logged = time.monotonic()
        self._wait = _LOG_SECONDS[0]
        self._done = ""

    def __enter__(self) -> "SweepProgress":
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._bar.stop()
        if kind in (KeyboardInterrupt, SystemExit) and self._done:
            self._print(f"stopped; {self._done} runs are there, and the same command goes on from them")

    def __call__(self, progress: "Progress") -> None:
        now, self._done = time.monotonic(), f"{progress.done} of {progress.jobs}"
        if self._task is None:
            self._task = self._bar.add_task("sweep", total=progress.jobs, note="")
            if not self._console.is_terminal:
                self._print(f"{progress.done} of {progress.jobs} runs are there; the first ones wait for kernels to compile")
                self._logged = now
        note = f"{progress.solved_rows} of {progress.rows} rows solved"
        note += f", {progress.errors} errors" if progress.errors else ""
        note += f", {about(progress.seconds_left)} left" if progress.seconds_left else ""
        self._bar.update(self._task, completed=progress.done, note=note)
        if not self._console.is_terminal and now - self._logged >= self._wait:
            self._logged, self._wait = now, min(2.0 * self._wait, _LOG_SECONDS[1])
            self._print(f"{progress.done} of {progress.jobs} runs, {note}")

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)


def about(seconds: float) -> str:
    """As coarse as it is sure: what runs cost differs from set to set."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"about {round(seconds / size)} {unit}"
    return f"about {max(10, 10 * round(seconds / 10.0))} s"
