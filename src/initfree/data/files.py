"""Files of strangers, opened: regular ones alone, and no more in memory than they hold.

A FIFO has no end, a device has no size, and a number in a file is no promise: a reader takes nothing for granted that
the file has not shown. Readers open files here and nowhere else; a library that opens a file by its name gets that from
`regular`.
"""

import json
import os
import stat
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from initfree.errors import InputError, in_words

_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a directory"),
)
_MOST_TOML = 1 << 20
"""bytes; tables of cameras have some hundred each, and a key of n dots costs n tables"""
_MOST_DOTS = 1000
"""in a line of TOML"""
_MOST_UNPACKED, _MOST_RATIO = 32 << 20, 8
"""bytes of arrays in a file, or as a multiple of its size: of numbers that differ, little is lost by packing"""


def regular(path: Path) -> Path:
    """The path, where a regular file lies at it; nothing is opened, so nothing waits."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is {_kind(mode)}; expected a regular file")
    return path


def opened(path: Path) -> IO[bytes]:
    """A regular file, to be read."""
    # Without O_NONBLOCK, opening a FIFO waits for a writer.
    try:
        stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except IsADirectoryError as error:
        raise InputError(f"{path} is a directory; expected a regular file") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    mode = os.fstat(stream.fileno()).st_mode
    if stat.S_ISREG(mode):
        return stream
    stream.close()
    raise InputError(f"{path} is {_kind(mode)}; expected a regular file")


def _kind(mode: int) -> str:
    return next((words for is_one, words in _KINDS if is_one(mode)), "no file")


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """All of a file. One that says it is empty and is not (those of /proc) is empty; `most` bytes where that is given."""
    with opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if most is not None and size > most:
            raise InputError(f"{path} has {size:,} bytes; expected at most {most:,}")
        try:
            return stream.read(size)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def beginning(path: Path, count: int) -> bytes:
    """The first bytes of a file; none where no regular file lies there that can be read."""
    try:
        with opened(path) as stream:
            return stream.read(min(count, os.fstat(stream.fileno()).st_size))
    except (InputError, OSError):
        return b""


def read_text(path: Path, errors: str = "strict") -> str:
    """UTF-8, with or without a mark of that at its beginning; ends of lines as they are everywhere else."""
    try:
        text = read_bytes(path).decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: {in_words(error)}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_json(path: Path, errors: str = "strict") -> Any:
    try:
        return json.loads(read_text(path, errors))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON: {in_words(error)}") from error


def read_toml(path: Path) -> dict[str, Any]:
    text = read_bytes(path, _MOST_TOML)
    if max((line.count(b".") for line in text.splitlines()), default=0) > _MOST_DOTS:
        raise InputError(f"{path} has a line with more than {_MOST_DOTS} dots; expected a table of cameras")
    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as TOML: {in_words(error)}") from error


def read_arrays(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """These members of a .npz, and no others."""
    try:
        return _arrays(path, names)
    except InputError:
        raise
    except (
        Exception
    ) as error:  # zipfile, zlib, NumPy and the tokenizer that it calls raise what a damaged file leads them to
        raise InputError(f"{path} cannot be read as arrays of NumPy: {in_words(error)}") from error


def _arrays(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    with opened(path) as stream, zipfile.ZipFile(stream) as packed:
        members = {name: packed.getinfo(f"{name}.npy") for name in names}
        size = sum(member.file_size for member in members.values())
        most = max(_MOST_UNPACKED, _MOST_RATIO * os.fstat(stream.fileno()).st_size)
        if size > most:
            raise InputError(f"{path} has arrays of {size:,} bytes; expected at most {most:,} in a file of its size")
        return {name: _array(path, name, packed, member) for name, member in members.items()}


def _array(path: Path, name: str, packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with packed.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read_header[version](stream)
        size = float(np.prod(shape, dtype=np.float64)) * dtype.itemsize
    if dtype.hasobject or not size <= member.file_size:
        raise InputError(f"{path}: {name} announces {size:,.0f} bytes of {dtype}; it holds {member.file_size:,}")
    with packed.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)
