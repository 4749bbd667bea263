"""How long the rest of a sweep takes."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from initfree.benchmark.jobs import Job

_FEWEST = 10
"""runs from which on the remaining time is estimated"""
Kind = tuple[str, ...]


class Remaining:
    """Seconds of the missing runs: of each kind (set, method, formulation, linear solver) what its runs took so far on
    average, of kinds that have not run yet the average of all. Compilation, which comes once, is no part of it."""

    def __init__(self, missing: Iterable[Job], workers: int) -> None:
        self._missing = Counter(_kind(job) for job in missing)
        self._workers = max(1, workers)
        self._took: dict[Kind, list[float]] = defaultdict(lambda: [0.0, 0.0])
        """runs and seconds by kind"""

    def ran(self, job: Job, seconds: float | None) -> None:
        """One run less; `seconds` is None where its worker died."""
        self._missing[_kind(job)] -= 1
        if seconds is not None:
            took = self._took[_kind(job)]
            took[0] += 1.0
            took[1] += seconds

    @property
    def seconds(self) -> float | None:
        """None as long as too few runs say something."""
        runs, total = (sum(column) for column in zip(*self._took.values(), strict=True)) if self._took else (0.0, 0.0)
        if runs < _FEWEST:
            return None
        took = {kind: seconds / n for kind, (n, seconds) in self._took.items()}
        left = (n * took.get(kind, total / runs) for kind, n in self._missing.items())
        return sum(left) / self._workers


def _kind(job: Job) -> Kind:
    solver = "" if job.solver is None else job.solver.linear_solver
    return job.data.set, job.method, job.formulation, solver
