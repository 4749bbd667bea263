"""Output that is whole or not there: one switch, whatever kills the process, and nothing left behind."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from models import to_reconstruction
from synthetic import ring

from initfree.errors import InputError
from initfree.io import staged
from initfree.io.staged import staged_directory
from initfree.io.written import RECORD

pytestmark = pytest.mark.slow


def write_result(output: Path, tag: str) -> None:
    with staged_directory(output, "test", ["sparse/0", "run.json"]) as staging:
        model = staging / "sparse" / "0"
        model.mkdir(parents=True)
        for name in ("cameras", "images", "points3D"):
            (model / f"{name}.bin").write_text(tag)
        (staging / "run.json").write_text(tag)


def tags(output: Path) -> set[str]:
    return {(output / "run.json").read_text(), *(file.read_text() for file in (output / "sparse" / "0").iterdir())}


def names(directory: Path) -> list[str]:
    """The record of what was written apart."""
    return sorted(path.name for path in directory.iterdir() if path.name != RECORD)


def test_new_empty_and_earlier_outputs_are_switched_by_one_rename(tmp_path):
    out = tmp_path / "a" / "out"
    write_result(out, "first")
    assert tags(out) == {"first"}
    inode = out.stat().st_ino
    write_result(out, "second")
    assert tags(out) == {"second"}
    assert out.stat().st_ino != inode
    (tmp_path / "empty").mkdir(mode=0o750)
    write_result(tmp_path / "empty", "third")
    assert tags(tmp_path / "empty") == {"third"}
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o750
    assert names(tmp_path) == ["a", "empty"]
    assert names(tmp_path / "a") == ["out"]


@pytest.mark.parametrize("exchange", [True, False])
def test_files_of_the_user_stay(tmp_path, monkeypatch, exchange):
    """Also where the system cannot exchange."""
    if not exchange:
        monkeypatch.setattr(staged, "_exchange", lambda a, b: False)
    out = tmp_path / "out"
    write_result(out, "first")
    (out / "notes.txt").write_text("mine")
    (out / "sparse" / "1").mkdir()
    inode = out.stat().st_ino
    write_result(out, "second")
    assert tags(out) == {"second"}
    assert out.stat().st_ino == inode
    assert (out / "notes.txt").read_text() == "mine"
    assert names(out / "sparse") == ["0", "1"]
    assert names(out) == ["notes.txt", "run.json", "sparse"]
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("fails_at", [1, 2, 3, 4, 5])
def test_a_move_that_fails_puts_everything_back(tmp_path, monkeypatch, fails_at):
    out = tmp_path / "out"
    write_result(out, "first")
    (out / "notes.txt").write_text("mine")
    monkeypatch.setattr(staged, "_exchange", lambda a, b: False)
    rename, calls = Path.rename, []

    def failing(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    if fails_at == 5:  # There are four moves.
        write_result(out, "second")
        assert tags(out) == {"second"}
        return
    with pytest.raises(InputError, match="No space left"):
        write_result(out, "second")
    assert tags(out) == {"first"}
    assert names(out) == ["notes.txt", "run.json", "sparse"]


def test_an_exception_leaves_nothing(tmp_path):
    def failing() -> None:
        with staged_directory(tmp_path / "a" / "b", "test", ["."]) as staging:
            (staging / "file").write_text("")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert names(tmp_path) == []


def test_the_working_directory_is_written_in_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for tag in ("first", "second"):
        write_result(Path(), tag)
        assert tags(Path.cwd()) == {tag}
    assert names(tmp_path) == ["run.json", "sparse"]


def test_links(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for output in (tmp_path / "a", tmp_path / "a" / "below"):
        with pytest.raises(InputError, match="loop"):
            write_result(output, "x")
    (tmp_path / "gone").symlink_to(tmp_path / "missing")
    with pytest.raises(InputError, match="does not exist"):
        write_result(tmp_path / "gone", "x")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_result(tmp_path / "link", "x")
    assert tags(tmp_path / "real") == {"x"}
    assert (tmp_path / "link").is_symlink()


def test_folders_of_dead_processes_are_removed_and_those_of_living_ones_kept(tmp_path):
    dead = tmp_path / ".initfree-dead"
    (dead / "new").mkdir(parents=True)
    with staged_directory(tmp_path / "living", "test", ["."]) as staging:
        write_result(tmp_path / "out", "x")
        assert staging.exists()
    assert names(tmp_path) == ["living", "out"]


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from test_staged import write_result
print("ready", flush=True)
for count in range(10**9):
    write_result(Path({out!r}), str(count))
"""


@pytest.mark.parametrize("mine", [False, True])
def test_kills_at_any_time_leave_one_result_whole(tmp_path, mine):
    """Results are written one after the other as fast as it goes, and the process is killed at some moment."""
    out, rng = tmp_path / "out", random.Random(0)
    write_result(out, "first")
    if mine:
        (out / "notes.txt").write_text("mine")
    program = WRITER.format(here=str(Path(__file__).parent), out=str(out))
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.01, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if mine and not (out / "run.json").exists():
            assert (out / "notes.txt").read_text() == "mine"
        else:
            assert len(tags(out)) == 1
    write_result(out, "last")
    assert tags(out) == {"last"}
    assert names(tmp_path) == ["out"]
    assert names(out) == (["notes.txt", "run.json", "sparse"] if mine else ["run.json", "sparse"])


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("model")
    to_reconstruction(ring(cameras=12, landmarks=400, min_observations=3)).write(str(directory))
    return directory


_SIGNAL_AFTER = """
import os, sys
from initfree.commands.cli import main
from initfree.engine import levenberg_marquardt
counted = []
class Iteration(levenberg_marquardt.Iteration):
    def __new__(cls, *_):
        counted.append(1)
        if len(counted) == {iterations}:
            os.kill(os.getpid(), {number})
        return super().__new__(cls)
levenberg_marquardt.Iteration = Iteration
main(["solve", {model!r}, "-o", {out!r}])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("iterations", [1, 8])
def test_signals_in_a_solve_end_it_quietly_and_leave_nothing(tmp_path, model, number, iterations):
    """Sent in the middle of an iteration."""
    out = str(tmp_path / "out")
    program = _SIGNAL_AFTER.format(model=str(model), out=out, number=int(number), iterations=iterations)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    out, err = process.communicate()
    assert process.returncode == 128 + number
    assert out == ""
    quiet = [line for line in err.splitlines() if not line.startswith("compiling kernels")]
    assert quiet == (["initfree: interrupted"] if number == signal.SIGINT else [])
    assert names(tmp_path) == []
