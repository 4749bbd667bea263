"""`initfree blender`: the optional Blender worker."""

from typing import Annotated, Literal

import tyro
from rich.console import Console


def blender(action: Annotated[Literal["setup", "status"], tyro.conf.Positional], /) -> int:
    """Set up Blender for `initfree generate --backend blender` and `.blend` scenes.

    Args:
        action: setup: install bpy into an environment of its own; status: say whether it is there.
    """
    from initfree.generator.blender.client import BPY, environment, installed, setup

    console = Console()
    if action == "status":
        console.print(f"Blender is {'set up' if installed() else 'not set up'} in {environment()}")
        return 0
    with console.status(f"installing {BPY} into {environment()}"):
        place = setup()
    console.print(f"Blender is set up in {place}")
    return 0
