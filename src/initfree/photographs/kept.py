"""What a database was made of, in photographs.json beside it: whether it is ours, and whether it can be completed."""

import json
from pathlib import Path
from typing import Any

from initfree.errors import InputError
from initfree.photographs.settings import Matching

FILE = "photographs.json"


def open_kept(database: Path, folder: Path, names: list[str], settings: Matching, *, overwrite: bool) -> None:
    """Keep the database where it can be completed, and note what it is made of from now on."""
    beside = database.with_name(FILE)
    asked = {"photographs": str(folder.resolve()), **settings.of_features()}
    now = {name: _stamp(folder / name) for name in names}
    before = _read(beside)
    against = _against(database, beside, before, asked, now)
    if against and not overwrite:
        raise InputError(f"{against}; expected another output, or --overwrite, which makes the database anew")
    if against:
        before = {}
        for path in (database, *(database.with_name(f"{database.name}-{end}") for end in ("wal", "shm"))):
            path.unlink(missing_ok=True)
    about = {**asked, "files": {**before.get("files", {}), **now}}
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        staged = beside.with_name(f".{FILE}.writing")
        staged.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        staged.replace(beside)
    except OSError as error:
        raise InputError(f"cannot write to output {database.parent}: {error.strerror or error}") from error


def _against(database: Path, beside: Path, before: dict[str, Any], asked: dict[str, Any], now: dict[str, Any]) -> str:
    """Why what is there cannot be completed; empty if it can, or if there is nothing."""
    if not database.exists() and not beside.exists():
        return ""
    if not before:
        return f"{database if database.exists() else beside} would be replaced, but no solve wrote it"
    for name, value in asked.items():
        if before.get(name) != value:
            return f"{database} was made with {name.replace('_', ' ')} {before.get(name)}, not {value}"
    changed = next((name for name, stamp in now.items() if before["files"].get(name, stamp) != stamp), None)
    return f"{changed} was changed since {database} was made" if changed else ""


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _read(beside: Path) -> dict[str, Any]:
    try:
        found = json.loads(beside.read_text(encoding="utf-8"))
        return found if isinstance(found["files"], dict) else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
