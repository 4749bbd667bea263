"""`initfree blender`: the optional Blender worker."""

from typing import Annotated, Literal

import tyro
from rich.console import Console

from initfree.errors import InputError


def blender(action: Annotated[Literal["setup", "status"], tyro.conf.Positional], /) -> int:
    """Set up Blender for `initfree generate --backend blender` and `.blend` scenes.

    Args:
        action: setup: install bpy into an environment of its own; status: say what is there.
    """
    from initfree.generator.blender.client import BPY, environment, graphics, installed, setup, version

    console = Console(markup=False, emoji=False)
    if action == "status":
        if not installed():
            console.print(f"Blender is not set up in {environment()}")
            return 0
        console.print(f"Blender {version()} is set up in {environment()}: engine cycles")
        try:
            found = graphics()
        except InputError as error:
            console.print(f"{error}")
            return 0
        engines = "engine workbench; no GPU for eevee" if found["software"] else "engines workbench and eevee"
        console.print(f"{found['renderer']}: {engines}")
        return 0
    with console.status(f"installing {BPY} into {environment()}"):
        place = setup()
    console.print(f"Blender is set up in {place}")
    return 0
