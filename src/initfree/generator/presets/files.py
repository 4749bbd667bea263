"""Presets are TOML files in a folder: found by name, or given by path."""

import tomllib
from pathlib import Path
from typing import Any

from initfree.errors import InputError


def find(folder: Path, name_or_path: str | Path) -> Path:
    """The TOML file of a preset in `folder`, or the file itself."""
    for path in (folder / f"{name_or_path}.toml", Path(name_or_path)):
        if path.is_file():
            return path
    known = ", ".join(sorted(path.stem for path in folder.glob("*.toml")))
    raise InputError(f"no preset or file {name_or_path}; expected a TOML file or one of {known}")


def read(path: Path) -> dict[str, Any]:
    """The table in a TOML file; its name is the file's unless it says otherwise."""
    try:
        return parse(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a TOML file: {error}") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def parse(text: str, path: Path) -> dict[str, Any]:
    """The table in a TOML text that `path` holds."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not a TOML file: {error}") from error
    table.setdefault("name", path.stem)
    return table
