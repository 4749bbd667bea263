"""What tests of several files ask for."""

from collections.abc import Callable, Iterator

import pytest

from initfree.engine import threads


@pytest.fixture
def number_of_threads() -> Iterator[Callable[[int], None]]:
    """A function that sets it; in the end it is what it was."""
    before = threads.threads()
    yield threads.set_threads
    threads.set_threads(before)
