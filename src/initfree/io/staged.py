"""Output that is there whole or not at all: one rename puts all of a result in place.

What is written is staged beside `output`, in a hidden folder `.initfree-...` of its parent, and put in place by one rename:

    nothing at `output`, or an empty directory    rename(staged, output)
    an earlier result and nothing else            exchange(staged, output), one system call (renameat2, renamex_np)

so that no moment, and no kill at any moment, leaves the files of one run beside those of another. Plain directories, no
symlinks: users copy them. Where the directory itself must not be replaced (it also holds files of the user's, it is the
working directory, a mount point, another user's) files are moved into it one by one, those at the top (run.json) taken away
first and put back last: a kill may then leave a model without its run.json, but never beside that of another run.

Only what the same command wrote before is replaced (`initfree.io.written`), unless the user wants it otherwise; all else is
refused, before any work.

A process holds a lock on its staging folder. A folder whose lock is free is what a killed process left: the next run that
writes to the same place removes it. Windows locks no directories and exchanges none: there files are moved one by one, what
a killed process left stays, and two processes must not write to one place at a time.
"""

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from initfree.errors import InputError
from initfree.io.written import RECORD, Written, check_replaceable, is_ours, read_record, write_record, written

fcntl: Any = None
with suppress(ImportError):  # Windows
    import fcntl

_PREFIX = ".initfree-"
_NEW = "new"
_OLD = "old"
_AT_FDCWD = -100
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux's renameat2 and RENAME_SWAP of macOS's renamex_np"""


@contextmanager
def staged_directory(output: Path, by: str, planned: Iterable[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Yield an empty directory; on success what was written there becomes `output`.

    An exception inside the block leaves `output` as it was, parents that were made for it included. A file or a directory
    of files of the same name is replaced; directories of directories are entered, so that a `sparse/1` of the user's stays
    beside our `sparse/0`. What the command wrote there before and does not write again is removed.

    Args:
        output: There or not.
        by: The command that writes.
        planned: What it will write, relative to `output`: nobody else's files may be there. "." is the whole directory.
        overwrite: They may.
    """
    made: list[Path] = []
    done = False
    try:
        place = _real(output)
        if not overwrite:
            check_replaceable(place, planned, by)
        made = [parent for parent in (place, *place.parents) if not parent.exists()]
        with _staging(place) as staging:
            new = staging / _NEW
            new.mkdir()
            yield new
            if not overwrite:
                check_replaceable(place, (str(path) for path in _moves(new, place, Path())), by)
            _put_in_place(new, place, staging / _OLD, by)
            done = True
    except OSError as error:
        raise InputError(f"cannot write to output {output}: {error.strerror or error}") from error
    finally:
        if not done:
            _remove_empty(made)


@contextmanager
def staged_file(output: Path, by: str, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a path to write to, with the name of `output`; on success the file that was written there becomes `output`.

    Files that were written beside it go with it.
    """
    if output.is_dir():
        raise InputError(f"output {output} is a directory; expected a file to write")
    try:
        home = output.parent.resolve()
        if not overwrite:
            check_replaceable(home, [output.name], by)
        home.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(home)
        with _locked_folder(home) as staging:
            yield staging / output.name
            entries = written(staging, by)
            names = sorted((entry.path for entry in entries), key=lambda name: name == output.name)
            with _locked(home):
                if not overwrite:
                    check_replaceable(home, names, by)
                write_record(home, {entry for entry in read_record(home) if entry.path not in names} | entries, staging)
                for name in names:
                    (staging / name).replace(home / name)
    except OSError as error:
        raise InputError(f"cannot write to output {output}: {error.strerror or error}") from error


def _real(output: Path) -> Path:
    """The directory that `output` leads to, there or not."""
    try:
        place = output.resolve()
        is_link = output.is_symlink()
        if place.exists() and not place.is_dir():
            raise InputError(f"output {output} is a file; expected a directory to write into")
        if is_link and not place.exists():
            raise InputError(f"output {output} is a symbolic link to {os.readlink(output)}, which does not exist")
    except (RuntimeError, OSError) as error:
        # A loop of links is a RuntimeError up to Python 3.12.
        reason = "a loop of symbolic links" if isinstance(error, RuntimeError) else error.strerror or error
        raise InputError(f"cannot write to output {output}: {reason}") from error
    if place.exists() and not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to output {output}: {os.strerror(errno.EACCES)}")
    return place


@contextmanager
def _staging(place: Path) -> Iterator[Path]:
    """A locked, hidden folder on the file system of `place`: beside it if that can be, else in it."""
    home = place.parent if _replaceable(place) else place
    home.mkdir(parents=True, exist_ok=True)
    for where in {home, place}:
        _remove_leftovers(where)
    with _locked_folder(home) as staging:
        yield staging


@contextmanager
def _locked_folder(home: Path) -> Iterator[Path]:
    """A new hidden folder in `home`, removed in the end."""
    while True:
        # Another process may take the folder for a leftover before it is locked, or remove the parents that it made itself
        # and found empty: then there is none to open, or none at its path once it is locked.
        home.mkdir(parents=True, exist_ok=True)
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=home))
            lock = _lock(folder)
        except FileNotFoundError:
            continue
        if folder.exists():
            break
        _unlock(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _unlock(lock)


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Files are put into the directory by one process at a time: each adds to the record of the others."""
    lock = _lock(home)
    try:
        yield
    finally:
        _unlock(lock)


def _lock(directory: Path) -> int | None:
    """A descriptor that holds the directory's lock, as far as the file system has one."""
    if fcntl is None:
        return None
    lock = os.open(directory, os.O_RDONLY)
    with suppress(OSError):  # Some network file systems lock no directories: nobody removes the folder there.
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _replaceable(place: Path) -> bool:
    """Whether the directory itself may be exchanged for another one: it is ours, and this process does not stand in it."""
    parent = next(p for p in place.parents if p.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        return False
    if not place.exists():
        return True
    if fcntl is None:
        return False
    status = place.stat()
    in_use = Path.cwd().is_relative_to(place)
    return status.st_uid == os.geteuid() and status.st_dev == parent.stat().st_dev and not in_use


def _remove_leftovers(directory: Path) -> None:
    """Staging folders of processes that were killed."""
    if fcntl is None:
        return
    for folder in _entries(directory):
        if folder.is_symlink() or not folder.is_dir():
            continue
        try:
            lock = os.open(folder, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # Its process lives.
        finally:
            os.close(lock)


def _entries(directory: Path) -> list[Path]:
    """Staging folders in a directory, which another process may remove at any moment."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return list(directory.glob(f"{_PREFIX}*"))
    return []


def _put_in_place(new: Path, place: Path, old: Path, by: str) -> None:
    record, entries, staging = read_record(place), written(new, by), old.parent
    removed = _outdated(place, record, entries, by)
    write_record(new, entries, staging)
    if new.parent.parent != place:
        if not place.exists() or not any(place.iterdir()):
            if place.exists():
                shutil.copymode(place, new)
            new.rename(place)
            return
        if _covered(place, new, removed):
            shutil.copymode(place, new)
            if _exchange(new, place):
                return
    # Whatever a kill leaves of both is known as ours: the record has both until all has moved.
    (new / RECORD).unlink()
    write_record(place, record | entries, staging)
    _move_into(new, place, old)
    for path in removed:
        path.unlink()
        _remove_empty([parent for parent in path.parents if parent.is_relative_to(place) and parent != place])
    write_record(place, entries | {entry for entry in record if _stays(place, entry, entries)}, staging)


def _outdated(place: Path, record: frozenset[Written], entries: frozenset[Written], by: str) -> set[Path]:
    """Files of an earlier run of the same command that this one does not write."""
    names = {entry.path for entry in record if entry.by == by} - {entry.path for entry in entries}
    return {place / name for name in names if is_ours(place, place / name, by, record)}


def _stays(place: Path, entry: Written, entries: frozenset[Written]) -> bool:
    """Whether an earlier entry of the record still describes a file."""
    return (place / entry.path).is_file() and entry.path not in {new.path for new in entries}


def _covered(old: Path, new: Path, removed: set[Path]) -> bool:
    """Whether all that lies in `old` would be replaced by what lies in `new`, so that nothing of the user's is lost."""
    for entry in old.iterdir():
        ours = new / entry.name
        if entry in removed or entry.name == RECORD:
            continue
        if entry.is_symlink():
            return False
        if not ours.exists():
            inside = {path for path in removed if path.is_relative_to(entry)}
            if not inside or not _covered(entry, ours, inside):
                return False
        elif _entered(ours, entry) and not _covered(entry, ours, removed):
            return False
    return True


def _entered(ours: Path, theirs: Path) -> bool:
    """Whether a directory is merged into one of the same name, entry by entry, instead of replacing it."""
    return ours.is_dir() and theirs.is_dir() and all(below.is_dir() for below in ours.iterdir())


def _exchange(a: Path, b: Path) -> bool:
    """Swap two files or directories in one step; False where the system or the file system cannot."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = library.renamex_np(os.fsencode(a), os.fsencode(b), _EXCHANGE)
        else:
            failed = library.renameat2(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _EXCHANGE)
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library without a name
        return False
    return not failed


def _move_into(new: Path, place: Path, old: Path) -> None:
    """Move entries one by one, files at the top last; those they replace are taken away first. All back if a move fails."""
    moves = sorted(_moves(new, place, Path()), key=lambda path: (len(path.parts) == 1 and (new / path).is_file(), path))
    undo: list[tuple[Callable[..., object], Path, Path]] = []

    def move(source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        undo.append((Path.rename, target, source))

    try:
        for path in moves:
            if (new / path).is_file() and os.path.lexists(place / path):
                move(place / path, old / path)
        for path in moves:
            if os.path.lexists(place / path):
                if _exchange(new / path, place / path):
                    undo.append((_exchange, new / path, place / path))
                    continue
                move(place / path, old / path)
            move(new / path, place / path)
    except BaseException:
        for back, now, before in reversed(undo):
            back(now, before)
        raise


def _moves(new: Path, place: Path, below: Path) -> Iterator[Path]:
    """Relative paths of what is moved as one piece."""
    for entry in (new / below).iterdir():
        path = below / entry.name
        if _entered(entry, place / path):
            yield from _moves(new, place, path)
        else:
            yield path


def _remove_empty(made: list[Path]) -> None:
    for directory in made:
        try:
            directory.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return
