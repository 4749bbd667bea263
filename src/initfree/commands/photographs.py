"""What `initfree solve` does with photographs and videos before it solves: a database, which is read as any other."""

import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from initfree.commands.solve_progress import Shown
from initfree.io.formats import recognised
from initfree.io.load import image_names
from initfree.io.run_json import to_json
from initfree.photographs import Matching, frames_of, is_photographs, is_video, match

DATABASE = "database.db"
FRAMES = "frames"
_LINE_SECONDS = 15.0
"""between lines where the output is no terminal"""


def is_unmatched(path: Path) -> bool:
    """Whether it is a video or a folder of photographs, and nothing that has observations."""
    return is_video(path) or (is_photographs(path) and recognised(path) is None)


def matched(
    source: Path,
    output: Path,
    settings: Matching,
    shown: Shown,
    *,
    image_list: Path | None,
    threads: int | None,
    overwrite: bool,
) -> tuple[Path, tuple[str, ...], Path]:
    """The database in `output`, the names of its photographs, and their folder."""
    with MatchingProgress(shown) as progress:
        folder = frames_of(source, output / FRAMES, settings.frames, progress) if is_video(source) else source
        names = None if image_list is None else image_names(image_list)
        database = output / DATABASE
        placed = match(folder, database, settings, names=names, threads=threads, overwrite=overwrite, on_progress=progress)
    return database, placed, folder


class MatchingProgress:
    """A bar with the remaining time in a terminal, a line now and then elsewhere, JSON for programs."""

    def __init__(self, shown: Shown, console: Console | None = None) -> None:
        self._shown = shown
        self._console = console or Console(stderr=True, highlight=False, markup=False, emoji=False)
        live = self._console.is_terminal and not (shown.quiet or shown.json_lines)
        self._bar = Progress(
            TextColumn("{task.description:<8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(), console=self._console, disable=not live,
        )  # fmt: skip
        self._tasks: dict[str, tuple[TaskID, float]] = {}
        self._told = 0.0

    def __enter__(self) -> "MatchingProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what not in self._tasks:
            # What an earlier run did took no time now: the bar's estimate begins here.
            self._tasks[what] = self._bar.add_task(what, total=total, completed=done), now
            self._told = 0.0
        self._bar.update(self._tasks[what][0], completed=done)
        if self._shown.json_lines:
            sys.stdout.write(to_json({"event": "progress", "stage": what, "done": done, "total": total}) + "\n")
            sys.stdout.flush()
        elif not (self._shown.quiet or self._console.is_terminal) and (now - self._told >= _LINE_SECONDS or done == total):
            self._told = now
            self._console.print(f"{what}: {done} of {total} ({now - self._tasks[what][1]:.0f} s)", soft_wrap=True)
