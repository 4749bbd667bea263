"""What a solve shows while it runs: lines in pipes, JSON for programs, nothing when quiet."""

import io
import json
import re
from pathlib import Path
from threading import Event

import pytest
from commanding import run, write_ring
from rich.console import Console

from initfree.auto.finish import FINISH, MEND
from initfree.commands import solve_progress
from initfree.commands.solve_progress import Shown, SolveProgress
from initfree.engine.levenberg_marquardt import Iteration


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_ring(tmp_path_factory.mktemp("model"))


def test_json_lines(tmp_path, model, capsys):
    out = tmp_path / "out"
    assert run("solve", model, "-o", out, "--json-lines", "--truth", model) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {event["event"] for event in events} >= {"progress", "stage", "verdict"}
    assert [event["elapsed"] for event in events] == sorted(event["elapsed"] for event in events)
    first = next(event for event in events if event["event"] == "progress")
    assert first["number"] == 1
    assert first["stage"]
    assert [event["event"] for event in events].count("verdict") == 1
    verdict = events[-1]
    assert verdict["accepted"] is True
    assert verdict["cameras"] == 10
    assert verdict["metrics"]["after_adjustment"]["rotation_auc5"] == pytest.approx(100.0, abs=0.01)
    assert Path(verdict["output"]) == out


def test_quiet_prints_the_verdict_alone(tmp_path, model, capsys):
    assert run("solve", model, "-o", tmp_path / "out", "--quiet") == 0
    out, err = capsys.readouterr()
    assert out.startswith("accepted: ")
    assert out.count("\n") == 1
    assert err == ""
    assert run("solve", model, "-o", tmp_path / "out", "--quiet", "--verbose") == 2


def test_verbose_tells_every_stage(tmp_path, model, capsys):
    assert run("solve", model, "-o", tmp_path / "out", "--verbose") == 0
    err = capsys.readouterr().err
    words = (
        "start 1 of at most 13 (spectral)",
        "varpro",
        "adjustment",
        "(at most 100 iterations)",
        "outliers, finishing step",
        "0:0",
    )
    for word in words:
        assert word in err


def test_a_pipe_gets_a_line_now_and_then(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(solve_progress.time, "monotonic", lambda: clock[0])
    stream = io.StringIO()
    with SolveProgress(Shown(), Console(file=stream, width=200)) as progress:
        for second in range(61):
            clock[0] = float(second)
            progress(f"normal, seed {second // 31}: varpro", second, Iteration(12.5, 1e-3, 0.1, 1.0, True, 0.1))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("1:00  start 2 (normal, seed 1)  varpro")
    assert "iteration   61  cost 12.5" in lines[-1]


def test_silence_does_not_look_like_a_hang(monkeypatch):
    """A stage that never calls is told of now and then all the same."""
    monkeypatch.setattr(solve_progress, "_WATCH_SECONDS", 0.01)
    monkeypatch.setattr(solve_progress, "_LINE_SECONDS", 0.05)
    thrice = Event()

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            written = super().write(text)
            if self.getvalue().count("\n") >= 3:
                thrice.set()
            return written

    stream = Stream()
    with SolveProgress(Shown(), Console(file=stream, width=200)) as progress:
        progress("spectral: adjustment", 4, None)
        assert thrice.wait(300.0)
    lines = stream.getvalue().splitlines()
    assert all("start 1 (spectral)  adjustment" in line for line in lines)


def test_what_follows_the_adjustment_is_told(monkeypatch):
    """Its last iteration, repeated for a minute, would look like a hang."""
    clock = [0.0]
    monkeypatch.setattr(solve_progress.time, "monotonic", lambda: clock[0])
    stream = io.StringIO()
    progress = SolveProgress(Shown(), Console(file=stream, width=200))
    progress("spectral: adjustment", 4, Iteration(12.5, 1e-3, 0.1, 1.0, True, 0.1))
    assert "adjustment   iteration    5" in progress._line(1.0)
    assert progress._line(30.0) == "0:30  start 1 (spectral)  adjusted; its repair and verdict follow"


def test_compilation_is_told_and_not_a_stage():
    stream = io.StringIO()
    with SolveProgress(Shown(), Console(file=stream, width=200)) as progress, progress.compiling():
        pass
    assert stream.getvalue().splitlines() == [
        "compiling kernels, once, about 40 s on an idle machine",
        "kernels compiled and kept (0 s)",
    ]


def test_the_closing_table_speaks_of_the_result(tmp_path, model, capsys):
    """Figures of stages on the way (a mean over wrong matches too, depths before the adjustment) are for those who ask."""
    assert run("solve", model, "-o", tmp_path / "out", "--no-summary") == 0
    out = capsys.readouterr().out
    assert "result: median error" in out
    assert "mean residual" not in out
    assert "upgrade calibrated" not in out
    assert not (tmp_path / "out" / "summary.html").exists()
    assert run("solve", model, "-o", tmp_path / "out", "--verbose") == 0
    out = capsys.readouterr().out
    assert "mean residual" in out
    assert "before the adjustment" in out
    assert str(tmp_path / "out" / "summary.html") in out.replace("\n", "")


def test_what_is_counted_has_a_bar_in_a_terminal_with_room_for_it():
    shown = {}
    for width in (80, 40):
        stream = io.StringIO()
        with SolveProgress(Shown(), Console(file=stream, width=width, force_terminal=True)) as progress:
            progress("two-view geometry, pair of 435", 86, None)
            progress._tell(progress._began + 200.0, 0.0)
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue()).replace("\r", "\n")
        shown[width] = [line.strip() for line in text.splitlines() if "pair" in line][-1]
    words, bar = shown[80].rsplit("  ", 1)
    assert words.endswith("two-view geometry, pair 87 of 435")
    assert set(bar) == {"━", "─"}
    assert bar.count("━") == len(bar) // 5  # a fifth of the pairs
    assert shown[40].endswith("pair 87 of 435")


def test_the_steps_after_the_starts_are_counted(tmp_path, model, capsys):
    assert run("solve", model, "-o", tmp_path / "out", "--json-lines") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    steps = [event for event in events if "finishing step" in event.get("stage", "")]
    assert steps
    assert {event["total"] for event in steps} == {len(FINISH) + len(MEND)}
    assert [event["iteration"] for event in steps] == sorted(event["iteration"] for event in steps)


def test_the_line_stays_within_the_terminal():
    stream = io.StringIO()
    console = Console(file=stream, width=40, force_terminal=True)
    with SolveProgress(Shown(), console) as progress:
        progress("unit-circle-shuffled, another seed: adjustment", 4, Iteration(12.5, 1e-3, 0.1, 1.0, True, 0.1))
        progress._tell(1e9, 0.0)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue()).replace("\r", "\n")
    assert "…" in shown
    assert max(map(len, shown.splitlines())) <= 40
