# pyright: reportMissingImports=false
"""What the panel has the package do: each an operator that runs in the background, can be cancelled, and reports."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import bpy

from . import spawned
from .fields import Problem
from .package import Run, command, environment, installing
from .settings import keep

EVALUATION = "initfree evaluation"
"""text of the file that holds the last evaluation"""


def folder_of(scene: bpy.types.Scene) -> Path:
    """Where the problem is, or will be, written."""
    said = scene.initfree.folder
    if not said.strip():
        raise Problem("No folder is chosen to write the problem to")
    if said.startswith("//") and not bpy.data.filepath:
        raise Problem(f"The folder {said} is relative to the file, which was never saved; save it, or choose another folder")
    return Path(bpy.path.abspath(said)).expanduser().resolve()


def generated(scene: bpy.types.Scene, name: str, command: str) -> Path:
    """A file or folder of the problem that `command` needs."""
    found = folder_of(scene) / name
    if not found.exists():
        raise Problem(f"There is no {found}; export the problem before you {command} it")
    return found


def copy_of_file(scene: bpy.types.Scene, folder: Path) -> str:
    """A copy of the open file, settings included, under its own name, for the package to read."""
    keep(scene)
    name = Path(bpy.data.filepath).name or "untitled.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / name), copy=True)
    return name


_running: list = []
"""the Run that is at work, one at a time"""


class Job:
    """An operator whose work is a command of the package. `arguments` gives its words, `done` uses what it made.

    Called from a script (EXEC_DEFAULT) it waits; from a button it runs beside, and Escape or the panel's button cancels it.
    """

    bl_options = {"UNDO"}  # noqa: RUF012
    codes = (0,)
    """exit codes that are no failure; all but 0 are a warning"""

    @classmethod
    def poll(cls, _: bpy.types.Context) -> bool:
        if _running:
            cls.poll_message_set("Something is running: wait for it, or cancel it")
        return not _running

    def arguments(self, context: bpy.types.Context) -> list:
        raise NotImplementedError

    def words(self, context: bpy.types.Context) -> list:
        return [*command(), *self.arguments(context)]

    def done(self, context: bpy.types.Context) -> str:
        raise NotImplementedError

    def progress(self) -> str:
        return ""

    def execute(self, context: bpy.types.Context) -> set:
        if not self._begin(context):
            return {"CANCELLED"}
        self.run.wait()
        return self._end(context)

    def invoke(self, context: bpy.types.Context, _: bpy.types.Event) -> set:
        if not self._begin(context):
            return {"CANCELLED"}
        self._timer = context.window_manager.event_timer_add(0.2, window=context.window)
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set:
        if event.type == "ESC":
            self.run.cancel()
        elif event.type != "TIMER":
            return {"PASS_THROUGH"}
        if self.run.code is not None:
            return self._end(context)
        how_far = "cancelling" if self.run.cancelled else self.progress() or "running"
        self._show(context, f"{self.bl_label}: {how_far}, {time.monotonic() - self._began:.0f} s")
        return {"RUNNING_MODAL"} if event.type == "ESC" else {"PASS_THROUGH"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Blender ends, or opens another file."""
        self.run.stop()
        self._clear(context)

    def _begin(self, context: bpy.types.Context) -> bool:
        self._timer, self._began = None, time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="initfree-"))
        try:
            self.run = Run(self.words(context), self.folder)
        except Problem as problem:
            self.report({"ERROR"}, str(problem))
            shutil.rmtree(self.folder, ignore_errors=True)
            return False
        _running.append(self.run)
        return True

    def _end(self, context: bpy.types.Context) -> set:
        try:
            level, said = self._outcome(context)
        finally:
            self._clear(context)
        self.report({level}, f"{self.bl_label}: {said}")
        return {"FINISHED"} if self.run.code in self.codes else {"CANCELLED"}

    def _outcome(self, context: bpy.types.Context) -> tuple:
        """(level of the report, words)"""
        if self.run.cancelled:
            return "WARNING", "cancelled"
        if self.run.code not in self.codes:
            return "ERROR", self.run.words()
        return "WARNING" if self.run.code else "INFO", self.done(context)

    def _clear(self, context: bpy.types.Context) -> None:
        _running.clear()
        if self._timer is not None:
            context.window_manager.event_timer_remove(self._timer)
        self._show(context, "")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _show(self, context: bpy.types.Context, status: str) -> None:
        context.scene.initfree.status = status
        for area in context.screen.areas if context.screen else ():
            area.tag_redraw()


class INITFREE_OT_cancel(bpy.types.Operator):
    """Cancel what is running; nothing half-written stays"""

    bl_idname = "initfree.cancel"
    bl_label = "Cancel"

    @classmethod
    def poll(cls, _: bpy.types.Context) -> bool:
        return bool(_running)

    def execute(self, _: bpy.types.Context) -> set:
        _running[0].cancel()
        return {"FINISHED"}


class INITFREE_OT_install(Job, bpy.types.Operator):
    """Install the package initfree with pip, in an environment of its own"""

    bl_idname = "initfree.install"
    bl_label = "Install the package"
    bl_options = set()  # noqa: RUF012

    def words(self, _: bpy.types.Context) -> list:
        return installing()

    def done(self, _: bpy.types.Context) -> str:
        return f"initfree is installed in {environment()}"


class INITFREE_OT_spawn(Job, bpy.types.Operator):
    """Put real cameras along the curves, and say what they would see: nothing is written"""

    bl_idname = "initfree.spawn"
    bl_label = "Spawn cameras"

    def arguments(self, context: bpy.types.Context) -> list:
        name = copy_of_file(context.scene, self.folder)
        return ["blender", "preview", name, "--output", "preview.npz", "--seed", str(context.scene.initfree.seed)]

    def done(self, context: bpy.types.Context) -> str:
        import numpy as np

        cameras = spawned.spawn(self.folder / "preview.npz")
        with np.load(self.folder / "preview.npz", allow_pickle=False) as arrays:
            figures = json.loads(str(arrays["figures"]))
        tracks, shared = figures["observations_a_landmark"], figures["covisibility"]
        lines = [
            f"{cameras} cameras, {figures['landmarks']} landmarks, {figures['observations']} observations",
            f"{tracks['mean']:.2f} observations a landmark ({tracks['min']:.0f} to {tracks['max']:.0f})",
            f"{shared['pairs_that_share']} of {shared['pairs']} pairs share landmarks",
        ]
        if shared["connected_components"] > 1:
            lines.append(f"in {shared['connected_components']} parts that share nothing")
        context.scene.initfree.figures = "\n".join(lines)
        return lines[0]


class INITFREE_OT_export(Job, bpy.types.Operator):
    """Write the problem: COLMAP models, database, statistics, and images where they are wanted"""

    bl_idname = "initfree.export"
    bl_label = "Export problem"

    def arguments(self, context: bpy.types.Context) -> list:
        s, self.output = context.scene.initfree, folder_of(context.scene)
        words = ["generate", copy_of_file(context.scene, self.folder), "--output", str(self.output), "--seed", str(s.seed)]
        return words + ["--render"] * s.images + ["--no-database"] * (not s.database)

    def done(self, _: bpy.types.Context) -> str:
        return f"Written: {self.output}"


class INITFREE_OT_solve(Job, bpy.types.Operator):
    """Reconstruct the exported problem from its observations alone"""

    bl_idname = "initfree.solve"
    bl_label = "Solve"
    codes = (0, 3)

    def arguments(self, context: bpy.types.Context) -> list:
        database = generated(context.scene, "database.db", "solve")
        return ["solve", str(database), "--output", str(folder_of(context.scene) / "solved"), "--json-lines"]

    def progress(self) -> str:
        event = next(self._events(), {})
        return ", ".join(str(event[key]) for key in ("start", "stage") if event.get(key))

    def done(self, context: bpy.types.Context) -> str:
        reason = next((event["reason"] for event in self._events() if "reason" in event), "")
        verdict = f"{'Accepted' if self.run.code == 0 else 'Not accepted'}: {reason}"
        context.scene.initfree.figures = verdict
        return verdict

    def _events(self) -> Iterator[dict]:
        """From the last on. Whole lines: the last may be half written."""
        lines = self.run.printed().split("\n")[:-1]
        return (json.loads(line) for line in reversed(lines) if line.startswith("{"))


class INITFREE_OT_evaluate(Job, bpy.types.Operator):
    """Compare the reconstruction with the exact truth; the figures stand in the text "initfree evaluation" """

    bl_idname = "initfree.evaluate"
    bl_label = "Evaluate"

    def arguments(self, context: bpy.types.Context) -> list:
        solved = generated(context.scene, "solved", "evaluate")
        return ["evaluate", str(solved), str(generated(context.scene, "sparse/0", "evaluate"))]

    def done(self, context: bpy.types.Context) -> str:
        text = bpy.data.texts.get(EVALUATION) or bpy.data.texts.new(EVALUATION)
        text.from_string(self.run.printed())
        context.scene.initfree.figures = self.run.printed().strip()
        return f"The evaluation is in the text {EVALUATION}"


_OPERATORS = (
    INITFREE_OT_cancel,
    INITFREE_OT_install,
    INITFREE_OT_spawn,
    INITFREE_OT_export,
    INITFREE_OT_solve,
    INITFREE_OT_evaluate,
)


def register() -> None:
    for operator in _OPERATORS:
        bpy.utils.register_class(operator)


def unregister() -> None:
    for operator in reversed(_OPERATORS):
        bpy.utils.unregister_class(operator)
