"""What a worker does: one job, from its observations to what is kept of it."""

import gzip
import importlib
import json
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from distributed import WorkerPlugin

from initfree.benchmark.config import SolverConfig
from initfree.benchmark.data import Data, Place, load_data
from initfree.benchmark.jobs import ADJUSTED, PIPELINE, DataSpec, Job
from initfree.benchmark.methods import METHODS
from initfree.benchmark.pictures import reconstruction
from initfree.benchmark.pipeline_run import one_line, pipeline
from initfree.benchmark.rows import row
from initfree.engine.parallel import one_blas_thread
from initfree.errors import InputError


@dataclass(frozen=True)
class Parcel:
    """An outcome as files."""

    job: str
    rows: list[dict[str, Any]]
    history: bytes | None = None
    reconstruction: bytes | None = None
    seconds: float | None = None
    """of the worker, without compilation"""


class Quiet(WorkerPlugin):
    """SIGTERM ends a worker without a word: pycolmap, once it is imported, would answer with a stack trace."""

    name = "quiet"

    def setup(self, worker: Any) -> None:
        import pycolmap  # noqa: F401

        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def run_job(job: Job, place: Place, pictures: bool) -> Parcel:
    """Never raises: what goes wrong in a job is in its rows."""
    data, began = None, time.monotonic()
    try:
        import_modules(job.imports, place.search)
        data = load_data(job.data, place)
        with one_blas_thread():
            warming = time.monotonic()
            _warm(job.method, job.formulation, job.loss, job.data, place)
            began += time.monotonic() - warming
            outcome = METHODS[job.method](job, data, place)
        history = gzip.compress(json.dumps(outcome.history).encode(), mtime=0) if outcome.history else None
        image = reconstruction(data, outcome.models) if pictures and outcome.models else None
        return Parcel(job.key, outcome.rows, history, image, time.monotonic() - began)
    except Exception as error:
        return Parcel(job.key, failures(job, error, data), seconds=time.monotonic() - began)


@cache
def _warmed(method: str, formulation: str, loss: str) -> list[bool]:
    return []


def _warm(method: str, formulation: str, loss: str, spec: DataSpec, place: Place) -> None:
    """Two steps of every stage before the first run of a kind in this process: machine code is made or read now, and the
    times of the runs are those of the solver."""
    once = _warmed(method, formulation, loss)
    if once or method not in (PIPELINE, "auto", "oracle", "classical"):
        return
    once.append(True)
    short = SolverConfig(max_iterations=2)
    # Upgrades have no compiled code; what the refined one imports takes as long as it does.
    importlib.import_module("scipy.optimize")
    upgrades = ("before",) if method == PIPELINE else (ADJUSTED,)
    job = Job(spec, PIPELINE, formulation or "pose", "spectral", loss or "none", "truth", short, upgrades)
    # What goes wrong here goes wrong again in the run itself, or has nothing to do with it.
    with suppress(Exception):
        pipeline(job, load_data(spec, place), place)


def failures(job: Job, error: BaseException, data: Data | None = None) -> list[dict[str, Any]]:
    """The rows of a job that raised."""
    return [row(job, upgrade, data, one_line(error)) for upgrade in job.upgrades]


def import_modules(names: tuple[str, ...], search: tuple[str, ...]) -> None:
    """Modules that register parts of a user's own."""
    sys.path.extend(path for path in search if path not in sys.path)
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise InputError(f"cannot import {name}, which the sweep's imports name: {error}") from error
