# pyright: reportMissingImports=false
"""The panel initfree of Blender: problems with exact truth from curves and objects, and reconstructions in the scene.

Nothing is computed here: the Python package initfree does it, in a process of its own, from a copy of the open file.
"""

from . import jobs, package, panel, preset_menu, reconstruction, settings, spawned

_MODULES = (settings, package, spawned, jobs, preset_menu, reconstruction, panel)


def register() -> None:
    for module in _MODULES:
        module.register()


def unregister() -> None:
    for module in reversed(_MODULES):
        module.unregister()
