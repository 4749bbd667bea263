"""Windows by absence: what it lacks is taken away, and a solve from the shell still reads, solves and writes."""

import subprocess
import sys

import pytest
from commanding import write_ring

pytestmark = pytest.mark.slow

WINDOWS = """
import ctypes, os, signal, sys

sys.modules["fcntl"] = sys.modules["resource"] = None
for module, names in {
    os: ("register_at_fork", "fork", "geteuid", "sched_getaffinity"),
    signal: ("pthread_sigmask", "SIGPIPE", "SIG_BLOCK", "SIG_UNBLOCK", "SIG_SETMASK", "SIGHUP"),
}.items():
    for name in names:
        delattr(module, name)

import initfree  # Linux alone needs one zlib

class Library(ctypes.CDLL):
    def __init__(self, name, *arguments, **options):
        if name is None:
            raise TypeError("LoadLibrary() argument 1 must be str, not None")
        super().__init__(name, *arguments, **options)

ctypes.CDLL = Library
"""


def without(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WINDOWS + program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_solve_without_what_windows_lacks(tmp_path):
    given, output = tmp_path / "given", tmp_path / "output"
    given.mkdir()
    write_ring(given)
    program = "from initfree.commands.cli import main; main(sys.argv[1:])"
    for _ in range(2):  # the second replaces what the first wrote
        done = without(program, "solve", given, "--output", output)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        assert (output / "run.json").is_file()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["given", "output"]
    assert not list(output.glob(".initfree-*"))
