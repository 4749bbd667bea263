"""Sweeps small enough for tests."""

from pathlib import Path
from typing import Any

import pandas as pd

from initfree.benchmark import SetConfig, SolverConfig, SweepConfig
from initfree.benchmark.data import Place
from initfree.benchmark.jobs import Job, expand
from initfree.benchmark.rows import SECONDS
from initfree.benchmark.worker import run_job

RING = SetConfig("set2", cameras=10, points=80)
TINY = """
formulations = ["pose", "rose"]
inits = ["normal", "unit-circle", "spectral"]
losses = ["none", "cauchy"]
seeds = [0, 1]
methods = ["oracle"]
upgrades = ["before", "linear1997", "calibrated"]
sets = [{ name = "set2", cameras = 10, points = 80 }]

[solver]
max_iterations = 30
"""


def sweep(**fields: Any) -> SweepConfig:
    """A sweep of one small ring and one run, but for the fields given."""
    return SweepConfig(**{"name": "tiny", "sets": (RING,), "solver": SolverConfig(max_iterations=30), **fields})


def rows_of(jobs: list[Job], cache: Path) -> pd.DataFrame:
    """The rows of jobs that run in this process."""
    return pd.DataFrame([row for job in jobs for row in run_job(job, Place(cache), True).rows])


def rows_of_sweep(cache: Path, **fields: Any) -> pd.DataFrame:
    return rows_of(expand(sweep(**fields)), cache)


def without_seconds(rows: pd.DataFrame) -> pd.DataFrame:
    """What must repeat to the last digit."""
    return rows.drop(columns=list(SECONDS)).sort_values("key").reset_index(drop=True)
