"""Finding, installing and running the worker."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from initfree.errors import InputError

BPY = "bpy==4.5.*"
"""The long-term release; it has wheels for Python 3.11 alone."""


class WorkerCrash(InputError):
    """The worker was ended by a signal: Blender aborts where a library of the system fails it."""


def environment() -> Path:
    """Where the worker's environment is, or would be: INITFREE_BLENDER (which may name Blender's program too), or the
    user's cache."""
    chosen = os.environ.get("INITFREE_BLENDER")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(cache) / "initfree" / "blender"


def version() -> str | None:
    """The version of Blender, or of bpy in the worker's environment; None where there is none."""
    if environment().is_file():
        return _version_of(environment())
    places = [environment() / "Lib" / "site-packages", *environment().glob("lib/python3*/site-packages")]
    found = next(iter(distributions(name="bpy", path=[str(place) for place in places])), None)
    return found.version if found else None


def installed() -> bool:
    """Whether the worker's environment is there, with bpy in it, or Blender itself."""
    return version() is not None and (environment().is_file() or _python().is_file())


def setup() -> Path:
    """Create the environment and install bpy (about 400 MB) with pip; an existing one is kept."""
    target = environment()
    if target.is_file():
        raise InputError(f"INITFREE_BLENDER is Blender's program {target}, which needs no setup; expected a directory")
    if not _python().is_file():
        python = sys.executable if sys.version_info[:2] == (3, 11) else shutil.which("python3.11")
        if python is None:
            raise InputError("Blender's Python module needs Python 3.11, and no python3.11 is on the PATH")
        _checked([python, "-m", "venv", str(target)], "cannot create the environment")
    _checked([str(_python()), "-m", "pip", "install", "--quiet", BPY], f"cannot install {BPY}")
    _checked([str(_python()), "-c", "import bpy"], "bpy does not start (are libraries of the system missing?)")
    return target


def require() -> None:
    """An error that says what to do where the worker's environment is absent."""
    if not installed():
        raise InputError(
            f"Blender is not set up in {environment()}: run `initfree blender setup` once "
            f"(it installs {BPY}), or set INITFREE_BLENDER to Blender's program or to an environment that has bpy"
        )


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for a job, in memory where the system has such a place: multilayer EXR files are large."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="initfree-", dir=place) as folder:
        yield Path(folder)


def graphics() -> dict[str, Any]:
    """The graphics system that Workbench and EEVEE draw with: its `renderer`, and whether that is `software`."""
    with scratch() as folder:
        try:
            run({"kind": "graphics"}, folder)
        except WorkerCrash as crash:
            raise InputError(
                "Workbench and EEVEE draw with OpenGL, which Blender cannot start on this machine; expected a GPU's "
                "driver or Mesa's software renderer (on Debian: libegl1 libgl1-mesa-dri), or engine = cycles"
            ) from crash
        return json.loads((folder / "graphics.json").read_text(encoding="utf-8"))


def run(job: dict[str, Any], folder: Path, progress: Callable[[str], None] = lambda stage: None) -> None:
    """Have the worker do a job in `folder`, passing on its progress; a failure ends with its last words."""
    require()
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    log = folder / "worker.log"
    worker_file = str(Path(__file__).with_name("worker.py"))
    if environment().is_file():
        options = ["--background", "--factory-startup", "--python-exit-code", "1"]
        command = [str(environment()), *options, "--python", worker_file, "--", str(folder)]
    else:
        command = [str(_python()), worker_file, str(folder)]
    lines = []
    # PYTHON* variables of this environment must not leak into the other.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=clean) as worker,
    ):
        assert worker.stdout is not None
        for line in worker.stdout:
            lines.append(line.rstrip())
            if line.startswith("initfree: "):
                progress(f"Blender, {line.removeprefix('initfree: ').strip()}")
    if worker.returncode < 0:
        raise WorkerCrash(f"Blender's worker was ended by {signal.Signals(-worker.returncode).name}")
    if worker.returncode != 0:
        said = [*lines, *log.read_text(errors="replace").splitlines()]
        words = next((line for line in reversed(said) if line.strip()), "nothing")
        raise InputError(f"Blender's worker failed: {words.removeprefix('initfree: ')}")


@cache
def _version_of(program: Path) -> str | None:
    """What `blender --version` says: "Blender 4.5.3 LTS" in its first line."""
    said = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False).stdout
    words = said.split(maxsplit=2)[:2]
    return words[1] if words[:1] == ["Blender"] else None


def _python() -> Path:
    return environment() / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _checked(command: list[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise InputError(f"{failure}: {words[-1] if words else 'no message'}")
