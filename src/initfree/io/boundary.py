"""The boundary between untrusted files and the program: exceptions caused by a damaged file become an `InputError`.

A reader reports the errors that it expects in a sentence. Unexpected ones (a missing column, text in place of a number, a
number too large) raise exceptions of many classes inside the reader or a library. Here they become an `InputError` with
the path.

Faults of the program pass. Packages behind the readers (`data`, `two_view`, `engine`) receive checked values only, so an
exception raised there, or of a class that no file can cause, is passed on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb

import numpy as np

from initfree.errors import InputError, in_words
from initfree.io.quiet import quiet

_OURS = (AssertionError, ImportError, NameError, NotImplementedError, SyntaxError)
"""no file brings these about"""
_READERS = ("initfree.io.", "initfree.data.files", "initfree.drawing.steps", "initfree.viewer.reading")
_WORDS = 200
"""characters of what a library says that are repeated"""


@contextmanager
def boundary(path: Path, what: str) -> Iterator[None]:
    """What is raised inside because of the file at `path`, which should be a `what`, becomes an `InputError`.

    Arithmetic with numbers that nobody has checked yet does not warn, and pycolmap does not log.
    """
    try:
        with np.errstate(all="ignore"), quiet(everything=True):
            yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path} takes more memory than there is; expected {what}") from error
    except Exception as error:
        if not of_the_file(error):
            raise
        reason = f"{type(error).__name__}: {in_words(error)[:_WORDS]}"
        raise InputError(f"{path} cannot be read ({reason}); expected {what}") from error


def of_the_file(error: Exception) -> bool:
    """Whether the innermost of our modules that were at work is a reader: then what it read is the cause."""
    if isinstance(error, _OURS):
        return False
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    innermost = next((name for name in reversed(modules) if name.startswith("initfree.")), "")
    return innermost.startswith(_READERS) and innermost != __name__
