"""The extension for Blender as a zip that its own installer takes."""

import json
import zipfile
from pathlib import Path

from pydantic import TypeAdapter

from initfree.generator.config import Config
from initfree.generator.presets import as_table, presets
from initfree.io.staged import staged_file

FOLDER = Path(__file__).with_name("extension")
_MOMENT = (2026, 1, 1, 0, 0, 0)
"""of every member: the same sources give the same bytes"""


def contents() -> dict[str, str]:
    """name -> text of every file: the sources, and what the panel mirrors of the generator.

    schema.json is the JSON schema of `Config`: names, defaults, limits and descriptions of the panel's fields.
    presets.json holds the presets that a scene of Blender can have: all but those of an existing model.
    """
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir()) if path.is_file()}
    tables = {name: as_table(one) for name, one in presets().items()}
    usable = {name: table for name, table in tables.items() if table["scene"]["kind"] != "colmap"}
    files["schema.json"] = json.dumps(TypeAdapter(Config).json_schema())
    files["presets.json"] = json.dumps(usable)
    return files


def write_archive(path: Path, *, overwrite: bool = False) -> None:
    """The zip, whole or not at all; a file that was not written here is replaced only with `overwrite`."""
    with staged_file(path, "blender extension", overwrite=overwrite) as staged, zipfile.ZipFile(staged, "w") as archive:
        for name, text in contents().items():
            archive.writestr(zipfile.ZipInfo(name, _MOMENT), text, zipfile.ZIP_DEFLATED)
