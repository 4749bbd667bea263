"""pycolmap without its log."""

from collections.abc import Iterator
from contextlib import contextmanager

import pycolmap

_ERRORS, _NOTHING = 2, 3


@contextmanager
def quiet(everything: bool = False) -> Iterator[None]:
    """Errors only, or `everything` quiet: what it says, we say ourselves."""
    level, pycolmap.logging.minloglevel = pycolmap.logging.minloglevel, _NOTHING if everything else _ERRORS
    try:
        yield
    finally:
        pycolmap.logging.minloglevel = level
