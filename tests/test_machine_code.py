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
