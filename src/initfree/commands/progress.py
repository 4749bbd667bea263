"""The bar of a sweep."""

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from initfree.benchmark.sweep import Progress

_LOG_SECONDS = 60.0


class SweepProgress:
    """Runs done, failures, elapsed and remaining time; a line a minute where the output is no terminal."""

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
        self._began = self._logged = time.monotonic()
        self._first = 0

    def __enter__(self) -> "SweepProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, progress: "Progress") -> None:
        now = time.monotonic()
        if self._task is None:
            self._task = self._bar.add_task("sweep", total=progress.jobs, note="")
            self._began, self._first = now, progress.done
        # Of this start alone: what was done before took no time now.
        run, left = progress.done - self._first, progress.jobs - progress.done
        remaining = _duration((now - self._began) / run * left) if run else "?"
        note = f"{progress.failed_rows} rows failed, {progress.errors} errors, {remaining} left"
        self._bar.update(self._task, completed=progress.done, note=note)
        if not self._console.is_terminal and now - self._logged >= _LOG_SECONDS:
            self._logged = now
            self._console.print(f"{progress.done} of {progress.jobs} runs, {note}", highlight=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
