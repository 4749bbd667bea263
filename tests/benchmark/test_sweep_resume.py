"""A sweep that is killed, driver and worker, and started again ends with the rows of one that was not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from tiny_sweeps import TINY, without_seconds

from initfree.benchmark import Store, load
from initfree.benchmark.jobs import expand

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")]
_LONGEST = 3600.0
"""seconds: a hang, on the busiest machine too"""


def _start(config: Path, output: Path) -> subprocess.Popen:
    """In a process group of its own, as a terminal starts commands."""
    command = [sys.executable, "-m", "initfree", "bench", "run", str(config), "--output", str(output), "--workers", "2"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def _wait_for_parts(output: Path, more_than: int, process: subprocess.Popen) -> None:
    ends = time.monotonic() + _LONGEST
    while len(list((output / "rows").glob("part-*"))) <= more_than:
        assert process.poll() is None, f"the sweep ended before it could be killed: {process.communicate()}"
        assert time.monotonic() < ends, "no rows came"
        time.sleep(0.01)


def _workers(driver: int) -> list[psutil.Process]:
    """Processes that run jobs; multiprocessing's resource tracker is a child too."""
    return [child for child in psutil.Process(driver).children() if "spawn_main" in " ".join(child.cmdline())]


def _finish(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=_LONGEST)
    assert process.returncode == 0, err
    return out


def test_killed_sweeps_resume_to_the_same_rows(tmp_path: Path):
    config, whole, killed = tmp_path / "tiny.toml", tmp_path / "whole", tmp_path / "killed"
    config.write_text(TINY)
    _finish(_start(config, whole))
    undisturbed = Store(whole).rows()
    jobs = expand(load(config))
    assert len(undisturbed) == sum(len(job.upgrades) for job in jobs)

    driver = _start(config, killed)
    _wait_for_parts(killed, 2, driver)
    workers = _workers(driver.pid)
    assert len(workers) == 2
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    _, alive = psutil.wait_procs(workers, timeout=_LONGEST)
    assert not alive, "workers outlive their driver"
    kept = {part: part.read_bytes() for part in (killed / "rows").glob("part-*")}
    first = Store(killed).rows()
    assert 0 < len(first) < len(undisturbed)

    driver = _start(config, killed)
    _wait_for_parts(killed, len(kept) + 1, driver)
    _workers(driver.pid)[0].send_signal(signal.SIGKILL)
    assert f"all {len(jobs)} runs done" in _finish(driver)
    resumed = Store(killed).rows()
    pd.testing.assert_frame_equal(without_seconds(resumed), without_seconds(undisturbed), check_exact=True)
    # Append-only: what was there is there, byte for byte, and no job ran twice.
    assert all(part.read_bytes() == content for part, content in kept.items())
    assert len(list((killed / "rows").glob("part-*"))) == len(jobs)
    for folder in ("histories", "reconstructions", "sets"):
        names = [sorted(file.name for file in (place / folder).iterdir()) for place in (whole, killed)]
        assert names[0] == names[1]
        assert names[0]

    stamps = [part.stat().st_mtime_ns for part in sorted((killed / "rows").iterdir())]
    _finish(_start(config, killed))
    assert [part.stat().st_mtime_ns for part in sorted((killed / "rows").iterdir())] == stamps


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_sweep_with_one_line(tmp_path: Path, number: int):
    """Defect 14: 28 lines of Dask's tracebacks. A terminal sends Ctrl-C to all processes of the command."""
    config = tmp_path / "tiny.toml"
    config.write_text(TINY)
    driver = _start(config, tmp_path / "out")
    _wait_for_parts(tmp_path / "out", 0, driver)
    family = psutil.Process(driver.pid).children(recursive=True)
    if number == signal.SIGINT:
        os.killpg(driver.pid, number)
    else:
        driver.send_signal(number)
    _, err = driver.communicate(timeout=_LONGEST)
    assert driver.returncode == 128 + number
    counted = [line for line in err.splitlines() if " runs" in line]
    assert [line.startswith("stopped; ") for line in counted] == [False] * (len(counted) - 1) + [True]
    told = [line for line in err.splitlines() if line not in counted]
    assert told == (["initfree: interrupted"] if number == signal.SIGINT else [])
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not alive
    assert list((tmp_path / "out" / "rows").glob("part-*"))
