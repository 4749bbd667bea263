"""The benchmark: many runs of the solver on generated and real data, as rows of one table.

`load("smoke")` reads a sweep's configuration, `run(config, directory)` runs what of it is missing there,
`Store(directory).rows()` is the outcome as a DataFrame. See docs/benchmark.md.
"""

from initfree.errors import InputError

try:
    import distributed as _distributed  # noqa: F401
    import pandas as _pandas  # noqa: F401
    import pyarrow as _pyarrow  # noqa: F401
    import pydantic as _pydantic  # noqa: F401
except ImportError as error:
    from initfree.extras import install

    raise InputError(f"the benchmark needs `{install('bench')}`: {error}") from error

from initfree.benchmark.config import SetConfig, SolverConfig, SweepConfig
from initfree.benchmark.presets import load, presets
from initfree.benchmark.store import Store
from initfree.benchmark.sweep import run

__all__ = ["SetConfig", "SolverConfig", "Store", "SweepConfig", "load", "presets", "run"]
