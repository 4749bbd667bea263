"""pycolmap without its log."""

from collections.abc import Iterator
from contextlib import contextmanager

import pycolmap

_ERRORS = 2


@contextmanager
def quiet() -> Iterator[None]:
    """Errors only: what it warns of, we say ourselves."""
    level, pycolmap.logging.minloglevel = pycolmap.logging.minloglevel, _ERRORS
    try:
        yield
    finally:
        pycolmap.logging.minloglevel = level
