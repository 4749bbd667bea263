"""Output that is either there whole or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from initfree.errors import InputError


@contextmanager
def staged_directory(output: Path) -> Iterator[Path]:
    """Yield an empty directory beside `output`; on success its entries move into `output`.

    An exception inside the block leaves `output` as it was. Entries of an earlier run that have
    the same name are replaced, others are kept.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        if output.exists() and not output.is_dir():
            raise InputError(f"output {output} is a file; expected a directory to write into")
        staging = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    except OSError as error:
        raise InputError(f"cannot write to output {output}: {error.strerror or error}") from error
    try:
        yield staging
        output.mkdir(exist_ok=True)
        for entry in sorted(staging.iterdir()):
            target = output / entry.name
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            entry.replace(target)
    except OSError as error:
        raise InputError(f"cannot write to output {output}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
