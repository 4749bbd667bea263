"""Kept machine code is loaded by itself, and what only a compiler needs is there once something is compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

KERNELS = """
import numpy as np
from initfree.engine.kernels import kernel

@kernel(strict=True, allocates=True)
def total(x):
    sums = np.zeros(len(x) + 1)
    for k in range(len(x)):
        sums[k + 1] = sums[k] + x[k]
    return sums[-1]

@kernel()
def twice(x):
    return 2.0 * total(x)
"""
PROGRAM = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
import numpy as np
from initfree.engine.compilation import expect_kept

spec = spec_from_file_location("initfree.made", sys.argv[1])
made = sys.modules["initfree.made"] = module_from_spec(spec)
spec.loader.exec_module(made)
assert expect_kept()
for call in sys.argv[2:]:
    name, kind = call.split()
    kernel = getattr(made, name)
    value = kernel(np.arange(5, dtype=kind))
    print(value, sum(kernel.stats.cache_hits.values()), "numba.typed.typeddict" in sys.modules)
"""


def told(folder: Path, *calls: str) -> list[str]:
    """Of each kernel that is called: its value, how many signatures came from disk, whether Numba is ready to compile."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "made.py"), *calls],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_machine_code_is_loaded_by_itself_and_goes_into_what_is_compiled_later(tmp_path):
    (tmp_path / "made.py").write_text(KERNELS)
    assert told(tmp_path, "total float64") == ["10.0 0 True"]
    # Loaded; compiled with the bitcode of what was loaded; another signature of what was loaded; loaded again.
    calls = ("total float64", "twice float64", "total int32")
    assert told(tmp_path, *calls) == ["10.0 1 False", "20.0 0 True", "10.0 1 True"]
    assert told(tmp_path, *calls) == ["10.0 1 False", "20.0 1 False", "10.0 2 False"]


SOLVE = """
import logging
import initfree
from initfree.commands.warmup import _ring
messages = []
handler = logging.Handler()
handler.emit = lambda record: messages.append(f"{record.levelname} {record.getMessage()}")
logging.getLogger("initfree").addHandler(handler)
logging.getLogger("initfree").setLevel(logging.INFO)
initfree.solve(initfree.Problem.from_tracks(*_ring(8, 60)), strategy="single")
from initfree.engine import compilation
print(getattr(compilation._here, "seconds", 0.0) > 0.0, *messages, sep="\\n")
"""


def solved(folder: Path) -> list[str]:
    """Whether there are seconds that the clock of stages leaves out, and the messages."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", SOLVE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_compilation_is_announced_and_no_part_of_the_stages_and_damaged_files_are_made_anew(tmp_path):
    compiled, notice = solved(tmp_path)
    assert compiled == "True"
    assert notice.startswith("INFO compiling kernels, once on this machine")
    index, data = (sorted(tmp_path.rglob(f"blocks.assemble*.{kind}"))[0] for kind in ("nbi", "nbc"))
    for file in (index, data):
        file.write_bytes(file.read_bytes()[:100])
        _, *messages = solved(tmp_path)
        assert messages[0].startswith("WARNING")
        assert "kept machine code of assemble is damaged" in messages[0]
        assert messages[1].startswith("INFO compiling kernels")
        assert solved(tmp_path) == ["False"]
