"""`initfree blender`: the optional Blender worker, and the extension for Blender's own interface."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from initfree.commands.options import OptionalOutput, Overwrite
from initfree.errors import InputError

ARCHIVE = "initfree-blender.zip"
_LANDMARKS = 200_000
"""of a reconstruction that is loaded into Blender, at most"""


def blender(
    action: Annotated[Literal["setup", "status", "extension", "preview", "scene", "arrays"], tyro.conf.Positional],
    source: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="FILE_OR_DIR")] = None,
    /,
    *,
    output: OptionalOutput = None,
    seed: int = 0,
    truth: Path | None = None,
    overwrite: Overwrite = False,
) -> int:
    """Blender for `initfree generate --backend blender` and `.blend` scenes, and its panel initfree.

    setup installs bpy into an environment of its own, status says what is there. extension writes the zip that Blender's
    Preferences > Get Extensions > Install from Disk takes. preview, scene and arrays are what the panel calls: the cameras
    and figures of a configuration, its surface, and a reconstruction, as NumPy arrays.

    Args:
        action: setup, status, extension, preview, scene or arrays.
        source: preview, scene: a .blend or TOML file, or a preset; arrays: what `initfree solve` wrote, or a COLMAP model.
        output: File to write: the zip of extension (by default initfree-blender.zip), the .npz of preview, scene and arrays.
        seed: Seed of preview and scene.
        truth: A model whose world arrays moves the reconstruction to.
        overwrite: Replace also a file that this command did not write.
    """
    console = Console(markup=False, emoji=False)
    if action in ("preview", "scene", "arrays") and (source is None or output is None):
        raise InputError(f"initfree blender {action} needs a source and --output FILE.npz")
    match action:
        case "setup":
            _setup(console)
        case "status":
            _status(console)
        case "extension":
            from initfree.generator.blender.archive import write_archive

            path = output or Path(ARCHIVE)
            write_archive(path, overwrite=overwrite)
            console.print(f"{path}: in Blender (4.2 or newer), Edit > Preferences > Get Extensions > Install from Disk")
        case "preview":
            from initfree.generator import generate
            from initfree.generator.blender.preview import preview

            _save(output, preview(generate(str(source), seed)), overwrite)
        case "scene":
            from initfree.generator.blender.preview import surface
            from initfree.generator.presets import load

            assert source is not None
            _save(output, surface(load(source), seed), overwrite)
        case _:
            from initfree.viewer.arrays import scene_arrays

            assert source is not None
            _save(output, scene_arrays(source, truth, _LANDMARKS), overwrite)
    return 0


def _setup(console: Console) -> None:
    from initfree.generator.blender.client import BPY, environment, setup

    with console.status(f"installing {BPY} into {environment()}"):
        place = setup()
    console.print(f"Blender is set up in {place}")


def _status(console: Console) -> None:
    from initfree.generator.blender.client import environment, graphics, installed, version

    if not installed():
        console.print(f"Blender is not set up in {environment()}")
        return
    console.print(f"Blender {version()} is set up in {environment()}: engine cycles")
    try:
        found = graphics()
    except InputError as error:
        console.print(f"{error}")
        return
    engines = "engine workbench; no GPU for eevee" if found["software"] else "engines workbench and eevee"
    console.print(f"{found['renderer']}: {engines}")


def _save(path: Path | None, arrays: dict[str, Any], overwrite: bool) -> None:
    import numpy as np

    from initfree.io.staged import staged_file

    assert path is not None
    with staged_file(path, "blender", overwrite=overwrite) as staged, staged.open("wb") as file:
        np.savez(file, **arrays)
