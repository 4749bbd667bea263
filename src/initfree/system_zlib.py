"""The system's zlib, beside the one of pycolmap's wheel for Linux.

That wheel has a zlib of its own and exports its symbols, and its Fortran library needs the system's libz. Where libz is
loaded as a part of pycolmap, the calls of libz to itself go to pycolmap's zlib: deflateInit of one version fills the state
of another, and all that compresses with libz (Python's zlib, Pillow) aborts: "corrupted size vs. prev_size".

Loaded before pycolmap, libz calls itself. After it, a second copy of libz, whose symbols come before all others, serves what
is loaded from then on. Linkers that load wheels one way only (macOS, Windows) do not have the question.
"""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import PurePath

_NAME = "libz.so.1"


class _Loaded(ctypes.Structure):
    """The first fields of `struct dl_phdr_info`."""

    _fields_ = (("address", ctypes.c_void_p), ("path", ctypes.c_char_p))


def load() -> None:
    """Raises ImportError where Python's zlib is linked to a libz that calls pycolmap's already."""
    loaded = _libraries()
    names = [PurePath(path).name for path in loaded]
    pycolmap = next((k for k, path in enumerate(loaded) if "/pycolmap/_core" in path), len(loaded))
    libz = next((k for k, name in enumerate(names) if name.startswith("libz.so")), -1)
    if libz < pycolmap:
        with suppress(OSError):  # a Python that has its zlib inside, on a system that has none
            ctypes.CDLL(_NAME)
        return
    if "zlib" in sys.modules:
        raise ImportError(
            "pycolmap was imported before Python's zlib, which aborts on its first use since; "
            "expected `import initfree`, or `import zlib`, before `import pycolmap`"
        )
    copy = os.memfd_create(_NAME)
    with open(loaded[libz], "rb") as library, open(copy, "wb") as memory:
        memory.write(library.read())
        memory.flush()
        ctypes.CDLL(f"/proc/self/fd/{copy}", mode=os.RTLD_NOW | os.RTLD_GLOBAL | os.RTLD_DEEPBIND)


def _libraries() -> list[str]:
    """Paths of the process' shared libraries, in the order in which they were loaded."""
    paths: list[str] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Loaded), ctypes.c_size_t, ctypes.c_void_p)
    def note(loaded, _size, _data):
        paths.append(os.fsdecode(loaded.contents.path or b""))
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(note, None)
    return paths
