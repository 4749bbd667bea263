"""One made-up sweep and its report for all tests that only look at them."""

from pathlib import Path

import pytest
from made import made_sweep

from initfree.benchmark.report import write_report
from initfree.benchmark.report.contents import Contents, assemble
from initfree.benchmark.report.sweep import load_sweep


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_sweep(tmp_path_factory.mktemp("made") / "sweep")


@pytest.fixture(scope="session")
def report(sweep: Path) -> Path:
    return write_report(sweep)


@pytest.fixture(scope="session")
def contents(sweep: Path) -> Contents:
    return assemble(load_sweep(sweep))
