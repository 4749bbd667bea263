# pyright: reportMissingImports=false
"""The Python package initfree, which does the work: where it is, and how it is run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bpy
from bpy.props import StringProperty

from .fields import Problem

_NAME = __package__ or "initfree"


def environment() -> Path:
    """Where the panel installs the package."""
    return Path(bpy.utils.extension_path_user(_NAME, path="environment", create=False))


def _program(where: Path) -> Path:
    return where / ("Scripts/initfree.exe" if os.name == "nt" else "bin/initfree")


def installing() -> list:
    """The words that install the package where the preferences say from: Blender's own Python with pip, quietly."""
    return [sys.executable, "-c", _INSTALL, str(environment()), preferences().source]


_INSTALL = """
import os, subprocess, sys, venv
place, source = sys.argv[1:]
venv.create(place, with_pip=True)
python = os.path.join(place, "Scripts" if os.name == "nt" else "bin", "python")
sys.exit(subprocess.call([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", source]))
"""


def command() -> list:
    """The words that run the package: what the preferences name, what was installed from them, or what is on the PATH."""
    said = preferences().command.strip()
    if said:
        path = Path(bpy.path.abspath(said)).expanduser()
        path = _program(path) if path.is_dir() else path
        if not path.is_file():
            raise Problem(f"There is no program {path}; set it in Edit > Preferences > Add-ons > initfree")
        return [str(path), "-m", "initfree"] if path.name.startswith("python") else [str(path)]
    own = _program(environment()) if bpy.app.version >= (4, 2) and _NAME.startswith("bl_ext.") else None
    found = str(own) if own is not None and own.is_file() else shutil.which("initfree")
    if found is None:
        raise Problem("The package initfree is not installed; install it in Edit > Preferences > Add-ons > initfree")
    return [found]


def preferences() -> bpy.types.AddonPreferences:
    return bpy.context.preferences.addons[_NAME].preferences


class Run:
    """A command at work, in a process of its own; what it prints goes to files of a folder."""

    def __init__(self, words: list, folder: Path) -> None:
        self.folder, self.cancelled = folder, False
        # PYTHON* variables of Blender must not leak into the other Python; Blender itself serves as its worker.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        if bpy.app.binary_path:
            clean["INITFREE_BLENDER"] = bpy.app.binary_path
        with (folder / "out.txt").open("wb") as out, (folder / "err.txt").open("wb") as err:
            try:
                self._process = subprocess.Popen(
                    words, cwd=folder, env=clean, stdin=subprocess.DEVNULL, stdout=out, stderr=err
                )
            except OSError as error:
                raise Problem(f"{words[0]} cannot be started: {error.strerror or error}") from error

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        return self._process.wait()

    def cancel(self) -> None:
        """Ask it to end, which it does in a moment; it leaves nothing half-written."""
        self.cancelled = True
        self._process.terminate()

    def stop(self) -> None:
        """Cancel it and wait until it has ended."""
        self.cancel()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def printed(self) -> str:
        return (self.folder / "out.txt").read_text(encoding="utf-8", errors="replace")

    def words(self) -> str:
        """The last line of what it complained of."""
        text = (self.folder / "err.txt").read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1].removeprefix("initfree: error: ") if lines else "no message"


class INITFREE_AP_preferences(bpy.types.AddonPreferences):
    """Where the package is."""

    bl_idname = _NAME

    command: StringProperty(
        name="Program", subtype="FILE_PATH",
        description="The command initfree, a Python that has the package, or the folder of its environment; "
        "empty: what was installed here, or what is on the PATH",
    )  # fmt: skip
    source: StringProperty(
        name="Install from", default="initfree[view,generate]",
        description="What pip installs: the package's name, or the folder of a clone with its extras",
    )  # fmt: skip

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.prop(self, "command")
        row = self.layout.row()
        row.prop(self, "source")
        row.operator("initfree.install")
        if context.scene.initfree.status:
            self.layout.label(text=context.scene.initfree.status, icon="TIME")
            return
        try:
            self.layout.label(text=f"initfree: {' '.join(command())}", icon="CHECKMARK")
        except Problem as problem:
            self.layout.label(text=str(problem), icon="ERROR")


def register() -> None:
    bpy.utils.register_class(INITFREE_AP_preferences)


def unregister() -> None:
    bpy.utils.unregister_class(INITFREE_AP_preferences)
