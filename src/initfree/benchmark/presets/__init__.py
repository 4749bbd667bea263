"""Named sweeps: plain TOML files beside this one, to copy and edit."""

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from initfree.benchmark.config import SweepConfig
from initfree.errors import InputError
from initfree.generator.presets import files

_DIRECTORY = Path(__file__).parent


def presets() -> dict[str, SweepConfig]:
    """All presets by name."""
    return {path.stem: load(path.stem) for path in sorted(_DIRECTORY.glob("*.toml"))}


def find(name_or_path: str | Path) -> Path:
    """The TOML file of a preset, or the file itself."""
    return files.find(_DIRECTORY, name_or_path)


def load(name_or_path: str | Path) -> SweepConfig:
    """The sweep of that name, or the one in that TOML file."""
    path = find(name_or_path)
    table = files.read(path)
    return parse(table, str(path))


def parse(table: dict[str, Any], source: str) -> SweepConfig:
    """The configuration in a plain table; a complaint names the field, its value and what was expected."""
    try:
        return TypeAdapter(SweepConfig).validate_python(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        value = "" if first["type"] == "missing" else f" = {repr(first['input'])[:60]}"
        raise InputError(f"{source}: {where}{value}: {first['msg']}") from error


def as_table(config: SweepConfig) -> dict[str, Any]:
    """The configuration as plain JSON values."""
    return TypeAdapter(SweepConfig).dump_python(config, mode="json")
