"""The driver: sends the missing jobs of a sweep to Dask's workers and keeps what comes back."""

import logging
import os
import platform
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dask import config as dask_config
from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from initfree.benchmark.config import SweepConfig
from initfree.benchmark.data import Place
from initfree.benchmark.jobs import DataSpec, Job, expand
from initfree.benchmark.pictures import picture_of_set, set_name
from initfree.benchmark.presets import as_table
from initfree.benchmark.remaining import Remaining
from initfree.benchmark.sources import set_title
from initfree.benchmark.store import Store
from initfree.benchmark.worker import Parcel, Quiet, failures, import_modules, run_job
from initfree.errors import InputError
from initfree.system_signals import held

_ONE_THREAD = {
    name: "1"
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS")
}
_LIBRARIES = ("initfree", "numpy", "scipy", "numba", "pycolmap", "dask", "pyarrow")
_DASK = {
    # Memory is the user's to watch: a worker that Dask ends for it would take its job along.
    "distributed.worker.memory.terminate": False,
    # Two workers that died with a job make it a suspect; Dask's four would take a minute each.
    "distributed.scheduler.allowed-failures": 1,
}
_OF_THE_USER = Path("~/.cache/initfree/datasets")
"""where workers of a cluster keep data sets: in a folder that others can write to, they might find those of others"""
_LOOPBACK = "127.0.0.1"
_AHEAD = 8
"""jobs a worker that wait at the scheduler: enough to keep it busy, few enough that a sweep of any size starts at once"""


@dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    jobs: int
    done: int
    """jobs whose rows are all there, those of earlier starts included"""
    rows: int
    """of this start"""
    solved_rows: int
    """of them: those that did not fail by the paper's definition, which is an outcome and no error"""
    errors: int
    """of them: those that ended in an exception"""
    last: str = ""
    seconds_left: float | None = None
    """about; None where too few runs are done to say"""


OnProgress = Callable[[Progress], None]


def run(
    config: SweepConfig,
    output: Path | str,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    data: Path | None = None,
    search: tuple[str, ...] = (),
    on_progress: OnProgress | None = None,
) -> Store:
    """Run what of the sweep is not yet in `output`.

    Without a `scheduler` (tcp://...) a local cluster is started: `workers` processes, by default one a core. `data` holds
    BAL files; `search` are directories in which the sweep's imports are looked for.
    """
    if workers is not None and workers < 1:
        raise InputError(f"--workers is {workers}; expected at least 1")
    import_modules(config.imports, search)
    jobs = expand(config, data)
    store = Store(output)
    with ExitStack() as stack:
        # A cluster that does not answer should not leave a directory behind.
        client = None if scheduler is None else stack.enter_context(_remote(scheduler))
        store.create()
        stack.enter_context(store.driving())
        have = store.keys()
        missing = [job for job in jobs if not have.issuperset(job.row_keys)]
        specs = {set_name(job.data): job.data for job in reversed(jobs)}
        pictures = [spec for name, spec in reversed(specs.items()) if not store.has_set(name)]
        files = None if data is None else data.resolve()
        note = _start(store, config, jobs, missing)
        if missing or pictures:
            cache = store.cache.resolve() if client is None else _OF_THE_USER
            place = Place(cache, files, set_files(config), search)
            client = client or stack.enter_context(_local(workers))
            _drive(client, store, jobs, missing, pictures, place, on_progress or (lambda progress: None))
        note["finished"] = _now()
        _finish(store, note)
    return store


def _drive(
    client: Client,
    store: Store,
    jobs: list[Job],
    missing: list[Job],
    pictures: list[DataSpec],
    place: Place,
    on_progress: OnProgress,
) -> None:
    have, first_seed = store.keys(), _first_seeds(jobs)
    workers = max(1, len(client.scheduler_info()["workers"]))
    ahead, remaining = _AHEAD * workers, Remaining(missing, workers)
    waiting, suspects = deque(_tasks(missing, pictures)), deque[Job]()
    under_way: dict[Any, tuple[Job | DataSpec, bool]] = {}
    finished: Any = as_completed(with_results=True, raise_errors=False)

    def submit(task: Job | DataSpec, alone: bool = False) -> None:
        if isinstance(task, Job):
            future = client.submit(run_job, task, place, task.data.seed == first_seed[task.data.set], pure=False)
        else:
            future = client.submit(picture_of_set, task, place, pure=False)
        under_way[future.key] = task, alone
        finished.add(future)

    def keep_busy() -> None:
        while waiting and len(under_way) < ahead:
            submit(waiting.popleft())
        if suspects and not under_way:
            submit(suspects.popleft(), alone=True)

    done, made, solved, errors = len(jobs) - len(missing), 0, 0, 0
    on_progress(Progress(len(jobs), done, 0, 0, 0))
    keep_busy()
    for future, result in finished:
        task, alone = under_way.pop(future.key)
        if isinstance(task, DataSpec):
            # A picture that could not be made is left out of the report.
            if future.status == "finished" and result[1] is not None:
                store.add_set(*result)
        elif not isinstance(result, Parcel) and not alone:
            # Its worker died with all that it had, so any of them may be to blame: again, when nothing else runs.
            suspects.append(task)
        else:
            parcel = result if isinstance(result, Parcel) else Parcel(task.key, failures(task, _lost(future)))
            rows = [row for row in parcel.rows if row["key"] not in have]
            store.add(Parcel(parcel.job, rows, parcel.history, parcel.reconstruction))
            done += 1
            made += len(rows)
            solved += sum(not row["failed"] for row in rows)
            errors += sum(bool(row["error"]) for row in rows)
            remaining.ran(task, parcel.seconds)
            on_progress(Progress(len(jobs), done, made, solved, errors, str(task), remaining.seconds))
        keep_busy()


def _tasks(missing: list[Job], pictures: list[DataSpec]) -> Iterator[Job | DataSpec]:
    """The picture of a set just before its first job."""
    pending = {set_name(spec): spec for spec in pictures}
    for job in missing:
        spec = pending.pop(set_name(job.data), None)
        if spec is not None:
            yield spec
        yield job
    yield from pending.values()


def _first_seeds(jobs: list[Job]) -> dict[str, int]:
    seeds: dict[str, int] = {}
    for job in jobs:
        seeds.setdefault(job.data.set, job.data.seed)
    return seeds


def _lost(future: Future) -> BaseException:
    """Why a job has no result, in words that are the same each time."""
    # Dask's annotation is that of an asynchronous client too.
    error: Any = future.exception()
    if isinstance(error, KilledWorker):
        return InputError("every worker that ran this job died of it")
    return error or RuntimeError("the job was cancelled")


@contextmanager
def _remote(scheduler: str) -> Iterator[Client]:
    """A client of a cluster that is there."""
    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {scheduler}: {' '.join(str(error).split())}") from error
    with client:
        yield client


@contextmanager
def _local(workers: int | None) -> Iterator[Client]:
    """A client of a cluster of our own, of single-threaded processes."""
    # Set here too: workers are started with this process's environment, before their own is applied.
    for name, value in _ONE_THREAD.items():
        os.environ.setdefault(name, value)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Any free port for Dask's own pages, so that two sweeps do not meet at one; they ask for no password.
    options: Any = {
        "processes": True,
        "threads_per_worker": 1,
        "host": _LOOPBACK,
        "dashboard_address": f"{_LOOPBACK}:0",
        "env": _ONE_THREAD,
    }
    with dask_config.set(_DASK), ExitStack() as stack:
        # Ctrl-C reaches every process of a terminal. Those that are started with it blocked leave it to the driver.
        with held({signal.SIGINT}):
            started = LocalCluster(n_workers=workers or cores, silence_logs=logging.ERROR, **options)
            cluster = stack.enter_context(started)
        client = stack.enter_context(Client(cluster))
        client.register_plugin(Quiet())
        try:
            yield client
        except (KeyboardInterrupt, SystemExit):
            _kill(cluster)
            raise


def _kill(cluster: Any) -> None:
    """End the workers in the middle of their runs, which nobody waits for any more."""
    # Dask lifts `silence_logs` when the cluster closes, and then reports each connection that broke.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        if nanny.process is not None and nanny.process.pid is not None:
            os.kill(nanny.process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def set_files(config: SweepConfig) -> tuple[tuple[str, str], ...]:
    """What sets with a title or a TOML file of their own are made from, for workers whose directory is another."""
    if config.source == "bal":
        return ()
    named = {set_title(one): str(Path(one.name).resolve()) if Path(one.name).is_file() else one.name for one in config.sets}
    return tuple((title, name) for title, name in named.items() if title != name)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _start(store: Store, config: SweepConfig, jobs: list[Job], missing: list[Job]) -> dict[str, Any]:
    """Note the start in sweep.json; the configuration there is that of the latest."""
    about = store.about()
    note = {
        "started": _now(),
        "finished": None,
        "missing": len(missing),
        "cores": os.cpu_count(),
        "platform": platform.platform(),
        "python": sys.version.split()[0],
        "versions": {library: version(library) for library in _LIBRARIES},
    }
    about |= {
        "name": config.name,
        "config": as_table(config),
        "jobs": len(jobs),
        "rows": sum(len(job.upgrades) for job in jobs),
        "cores": os.cpu_count(),
        "started": about.get("started") or note["started"],
        "finished": None,
        "starts": [*about.get("starts", []), note],
    }
    store.plan(jobs)
    store.describe(about)
    return note


def _finish(store: Store, note: dict[str, Any]) -> None:
    about = store.about()
    about["starts"][-1] = note
    about["finished"] = note["finished"]
    store.describe(about)
