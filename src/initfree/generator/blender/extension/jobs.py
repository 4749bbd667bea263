# pyright: reportMissingImports=false
"""What the panel has the package do: each an operator that runs in the background, can be cancelled, and reports."""

import json
import shutil
import tempfile
from pathlib import Path

import bpy

from . import spawned
from .package import Run
from .settings import Problem, keep

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


class Job:
    """An operator whose work is a command of the package. `arguments` gives its words, `done` uses what it made.

    Called from a script (EXEC_DEFAULT) it waits; from a button it runs beside, and Escape cancels it.
    """

    bl_options = {"REGISTER"}  # noqa: RUF012
    codes = (0,)
    """exit codes that are no failure"""

    def arguments(self, context: bpy.types.Context) -> list:
        raise NotImplementedError

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
            self.report({"WARNING"}, f"{self.bl_label}: cancelled")
            return self._cleared(context, {"CANCELLED"})
        if event.type != "TIMER":
            return {"PASS_THROUGH"}
        if self.run.code is None:
            self._show(context, f"{self.bl_label}: {self.progress() or 'running'} (Escape cancels)")
            return {"RUNNING_MODAL"}
        return self._end(context)

    def _begin(self, context: bpy.types.Context) -> bool:
        self._timer = None
        self.folder = Path(tempfile.mkdtemp(prefix="initfree-"))
        try:
            self.run = Run(self.arguments(context), self.folder)
        except Problem as problem:
            self.report({"ERROR"}, str(problem))
            shutil.rmtree(self.folder, ignore_errors=True)
            return False
        return True

    def _end(self, context: bpy.types.Context) -> set:
        if self.run.code not in self.codes:
            self.report({"ERROR"}, f"{self.bl_label}: {self.run.words()}")
            return self._cleared(context, {"CANCELLED"})
        self.report({"INFO"}, self.done(context))
        return self._cleared(context, {"FINISHED"})

    def _cleared(self, context: bpy.types.Context, outcome: set) -> set:
        if self._timer is not None:
            context.window_manager.event_timer_remove(self._timer)
        self._show(context, "")
        shutil.rmtree(self.folder, ignore_errors=True)
        return outcome

    def _show(self, context: bpy.types.Context, status: str) -> None:
        context.scene.initfree.status = status
        for area in context.screen.areas if context.screen else ():
            area.tag_redraw()


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
        s, output = context.scene.initfree, folder_of(context.scene)
        words = ["generate", copy_of_file(context.scene, self.folder), "--output", str(output), "--seed", str(s.seed)]
        return words + ["--render"] * s.images + ["--no-database"] * (not s.database)

    def done(self, context: bpy.types.Context) -> str:
        return f"Written: {folder_of(context.scene)}"


class INITFREE_OT_solve(Job, bpy.types.Operator):
    """Reconstruct the exported problem from its observations alone"""

    bl_idname = "initfree.solve"
    bl_label = "Solve"
    codes = (0, 3)

    def arguments(self, context: bpy.types.Context) -> list:
        database = generated(context.scene, "database.db", "solve")
        return ["solve", str(database), "--output", str(folder_of(context.scene) / "solved"), "--json-lines"]

    def progress(self) -> str:
        event = next(iter(reversed(self._events())), {})
        return ", ".join(str(event[key]) for key in ("start", "stage") if event.get(key))

    def done(self, context: bpy.types.Context) -> str:
        reason = next((event["reason"] for event in reversed(self._events()) if "reason" in event), "")
        verdict = f"{'Accepted' if self.run.code == 0 else 'Not accepted'}: {reason}"
        context.scene.initfree.figures = verdict
        return verdict

    def _events(self) -> list:
        """Whole lines; the last may be half written."""
        lines = self.run.printed().split("\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith("{")]


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


_OPERATORS = (INITFREE_OT_spawn, INITFREE_OT_export, INITFREE_OT_solve, INITFREE_OT_evaluate)


def register() -> None:
    for operator in _OPERATORS:
        bpy.utils.register_class(operator)


def unregister() -> None:
    for operator in reversed(_OPERATORS):
        bpy.utils.unregister_class(operator)
