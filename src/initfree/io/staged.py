"""Output that is either there whole or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from initfree.errors import InputError


@contextmanager
def staged_directory(output: Path) -> Iterator[Path]:
    """Yield an empty directory; on success what was written there moves into `output`.

    An exception inside the block leaves `output` as it was, parents that were made for it included. A file or a directory
    of files of the same name is replaced; directories of directories are entered, so that a `sparse/1` of the user's stays
    beside our `sparse/0`.
    """
    made = [parent for parent in (output, *output.parents) if not parent.exists()]
    try:
        if output.exists() and not output.is_dir():
            raise InputError(f"output {output} is a file; expected a directory to write into")
        output.mkdir(parents=True, exist_ok=True)
        # Inside the output: on its file system, so that moving is renaming, and writable if it is.
        staging = Path(tempfile.mkdtemp(prefix=".initfree-", dir=output))
    except OSError as error:
        _remove_empty(made)
        raise InputError(f"cannot write to output {output}: {error.strerror or error}") from error
    done = False
    try:
        yield staging
        _move_into(staging, output, staging / ".replaced")
        done = True
    except OSError as error:
        raise InputError(f"cannot write to output {output}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if not done:
            _remove_empty(made)


def _move_into(source: Path, target: Path, aside: Path) -> None:
    """Move the entries of `source` into `target`; what they replace goes to `aside` first, and back if the move fails."""
    for entry in sorted(source.iterdir()):
        place = target / entry.name
        if entry == aside:
            continue
        if entry.is_dir() and place.is_dir() and all(below.is_dir() for below in entry.iterdir()):
            _move_into(entry, place, aside / entry.name)
            continue
        aside.mkdir(parents=True, exist_ok=True)
        old = aside / entry.name
        if place.exists() or place.is_symlink():
            place.replace(old)
        try:
            entry.replace(place)
        except OSError:
            if old.exists():
                old.replace(place)
            raise


def _remove_empty(made: list[Path]) -> None:
    for directory in made:
        try:
            directory.rmdir()
        except OSError:
            return
