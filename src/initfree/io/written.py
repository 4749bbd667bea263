"""The record of what initfree wrote in a directory: it replaces these files, as long as nobody changed them, and no others.

A directory that initfree writes to holds a file `.initfree`, with the command, the digest and the path of every file that
the command wrote there. A file that is not in the record, that was changed since, or that another command wrote (the exact
truth of `initfree generate`) is the user's.
"""

import json
import os
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from initfree.data.files import read_json
from initfree.data.names import is_relative
from initfree.errors import InputError

RECORD = ".initfree"
_ABOUT = "files that initfree wrote here: it replaces these, unless they were changed since, and no others"
_MODE = 0o644
_BLOCK = 1 << 20
"""bytes that are read at once"""


class Written(NamedTuple):
    """A file as it was written."""

    by: str
    """the command"""
    digest: str
    path: str
    """relative to the directory of the record, with slashes"""


def written(folder: Path, by: str) -> frozenset[Written]:
    """All files below `folder`, as the command `by` has just written them."""
    return frozenset(Written(by, _digest(path), path.relative_to(folder).as_posix()) for path in _files(folder))


def read_record(folder: Path) -> frozenset[Written]:
    """The record of a directory; empty where there is none, or none that can be read: nothing there is ours then.

    Folders come from others too: an entry that leads out of this one is none.
    """
    try:
        entries = [Written(*map(str, entry)) for entry in read_json(folder / RECORD)["files"]]
        return frozenset(entry for entry in entries if is_relative(entry.path))
    except (InputError, TypeError, KeyError):
        return frozenset()


def write_record(folder: Path, entries: Iterable[Written], staging: Path) -> None:
    """Replace the record in one step, from a folder that a later command removes if this one is killed."""
    text = json.dumps({"about": _ABOUT, "files": sorted(entries)}, indent=0)
    with NamedTemporaryFile("w", dir=staging, delete=False, encoding="utf-8") as stream:
        stream.write(f"{text}\n")
    os.chmod(stream.name, _MODE)
    os.replace(stream.name, folder / RECORD)


def is_ours(folder: Path, path: Path, by: str, record: frozenset[Written]) -> bool:
    """Whether `by` wrote the file at `path`, below `folder`, and it is still what was written."""
    name = path.relative_to(folder).as_posix()
    digests = {entry.digest for entry in record if (entry.by, entry.path) == (by, name)}
    below = path.is_file() and path.resolve() == folder.resolve() / name
    return bool(digests) and below and _digest(path) in digests


def check_replaceable(folder: Path, planned: Iterable[str], by: str) -> None:
    """Nothing at the paths `planned`, relative to `folder`, may be anybody's but ours."""
    record = read_record(folder)
    for name in planned:
        for path in _files(folder / name):
            if not is_ours(folder, path, by, record):
                raise InputError(
                    f"{path} would be replaced, but `initfree {by}` did not write it, or it was changed since; expected "
                    "another output, or --overwrite"
                )


def _files(path: Path) -> Iterator[Path]:
    """The file at `path` or all files below it, records apart."""
    if path.is_symlink() or not path.is_dir():
        if os.path.lexists(path):
            yield path
        return
    for directory, folders, names in os.walk(path):
        links = [name for name in folders if Path(directory, name).is_symlink()]
        yield from (Path(directory, name) for name in (*names, *links) if name != RECORD)


def _digest(path: Path) -> str:
    state = blake2b(digest_size=16)
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            state.update(block)
    return state.hexdigest()
