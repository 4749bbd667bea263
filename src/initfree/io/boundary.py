"""Where files of strangers end and our own numbers begin: one place for all that a damaged file makes a library raise.

A reader takes a file apart with the words of Python and of libraries, and says in a sentence what it knows can be wrong.
What it does not know of (a column that is missing, a text for a number, a number too large) is an exception of one of many
classes, raised while the reader or a library that it called was at work: here it becomes an `InputError` with the path.

Our own faults stay what they are. A room beyond the readers (`data`, `two_view`, `engine`) gets checked numbers only: what
is raised there, or is of a class that no file brings about, is passed on.
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
        told = f"{type(error).__name__}: {in_words(error)[:_WORDS]}"
        raise InputError(f"{path} cannot be read ({told}); expected {what}") from error


def of_the_file(error: Exception) -> bool:
    """Whether the innermost of our modules that were at work is a reader: then what it read is the cause."""
    if isinstance(error, _OURS):
        return False
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    innermost = next((name for name in reversed(modules) if name.startswith("initfree.")), "")
    return innermost.startswith(_READERS) and innermost != __name__
