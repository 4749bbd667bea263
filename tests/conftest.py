"""Fixtures of several files, and marks that follow from a test's fixtures."""

from collections.abc import Callable, Iterator

import pytest

from initfree.engine import reduction, threads


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.fixture
def number_of_threads() -> Iterator[Callable[[int], None]]:
    """A function that sets it; in the end it is what it was."""
    before = threads.threads()
    yield threads.set_threads
    threads.set_threads(before)


@pytest.fixture
def any_threads(monkeypatch: pytest.MonkeyPatch, number_of_threads: Callable[[int], None]) -> None:
    """Threads as they are left, and cut up even the smallest work."""
    monkeypatch.setattr(reduction, "_PAYS", 1)
    monkeypatch.setattr(threads, "_SMALL", 0)
