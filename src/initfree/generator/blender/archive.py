"""The extension for Blender as a zip that its own installer takes."""

import json
import zipfile
from pathlib import Path

from pydantic import TypeAdapter

from initfree.generator.config import Config, Curve, Groups, Lateral, Parts, Rings
from initfree.generator.presets import as_table, presets
from initfree.io.staged import staged_file

FOLDER = Path(__file__).with_name("extension")
_MOMENT = (2026, 1, 1, 0, 0, 0)
"""of every member: the same sources give the same bytes"""


def contents() -> dict[str, str]:
    """name -> text of every file: the sources, and what the panel mirrors of the generator.

    schema.json is the JSON schema of `Config`: names, defaults, limits and descriptions of the panel's fields.
    presets.json holds the presets that the panel can say.
    """
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir()) if path.is_file()}
    files["schema.json"] = json.dumps(TypeAdapter(Config).json_schema())
    files["presets.json"] = json.dumps({name: as_table(one) for name, one in presets().items() if _in_panel(one)})
    return files


def _in_panel(preset: Config) -> bool:
    """Whether a preset is curves with as many cameras each and one kind of target, around a scene that stays as it is."""
    scene, trajectory = preset.scene, preset.trajectory
    routes = trajectory.groups if isinstance(trajectory, Groups) else (trajectory,)
    if not all(isinstance(route, (Rings, Lateral, Curve)) for route in routes):
        return False
    alike = {(route.cameras, route.jitter, route.look_at) for route in routes if isinstance(route, (Rings, Lateral, Curve))}
    alone = not isinstance(scene, Parts) or all(
        one.equal_to is None and not any((*one.moves, one.turns)) for one in scene.parts
    )
    return len(alike) == 1 and alone


def write_archive(path: Path, *, overwrite: bool = False) -> None:
    """The zip, whole or not at all; a file that was not written here is replaced only with `overwrite`."""
    with staged_file(path, "blender extension", overwrite=overwrite) as staged, zipfile.ZipFile(staged, "w") as archive:
        for name, text in contents().items():
            archive.writestr(zipfile.ZipInfo(name, _MOMENT), text, zipfile.ZIP_DEFLATED)
