# pyright: reportMissingImports=false
"""Presets of the paper and of initfree as a menu; settings from and to TOML files."""

import json
import math
import os
import tomllib
from pathlib import Path

import bpy
import numpy as np
from bpy.props import BoolProperty, StringProperty

from . import spawned
from .fields import Problem
from .jobs import Job
from .settings import from_table, to_table
from .toml_text import to_toml

PRESETS = json.loads(Path(__file__).with_name("presets.json").read_text(encoding="utf-8"))
CURVES, SCENE = "initfree curves", "initfree scene"
_CORNERS = 256
"""of the polygon that stands for a full circle"""


def curves_of_preset(trajectory: dict) -> list:
    """(kind of spline, points, closed) of each curve that a trajectory goes along."""
    if trajectory["kind"] == "rings":
        return [("POLY", _ring(ring, trajectory["centre"]), ring["arc"] >= 360.0) for ring in trajectory["rings"]]
    if trajectory["kind"] == "lateral":
        return [("POLY", [trajectory["start"], trajectory["end"]], False)]
    if trajectory["kind"] == "curve":
        kind = "BEZIER" if trajectory["interpolation"] == "bezier" else "POLY"
        return [(kind, trajectory["points"], trajectory["closed"])]
    return [curve for group in trajectory["groups"] for curve in curves_of_preset(group)]


def _ring(ring: dict, centre: list) -> list:
    corners = _CORNERS if ring["arc"] >= 360.0 else _CORNERS + 1
    angles = [math.radians(ring["start"] + ring["arc"] * k / _CORNERS) for k in range(corners)]
    x, y, z = centre
    return [(x + ring["radius"] * math.cos(a), y + ring["radius"] * math.sin(a), z + ring["height"]) for a in angles]


def make_curve(kind: str, points: list, closed: bool, where: bpy.types.Collection) -> bpy.types.Object:
    data = bpy.data.curves.new("initfree curve", "CURVE")
    data.dimensions = "3D"
    spline = data.splines.new(kind)
    spline.use_cyclic_u = closed
    if kind == "POLY":
        spline.points.add(len(points) - 1)
        spline.points.foreach_set("co", [value for point in points for value in (*point, 1.0)])
    else:
        # Point, handle, handle, point, ...: the handle before the first point mirrors the one after it.
        knots = points[::3]
        spline.bezier_points.add(len(knots) - 1)
        for k, knot in enumerate(spline.bezier_points):
            before = points[3 * k - 1] if k or closed else points[0]
            after = points[3 * k + 1] if 3 * k + 1 < len(points) else points[3 * k]
            knot.handle_left_type = knot.handle_right_type = "FREE"
            knot.co, knot.handle_left, knot.handle_right = knots[k], before, after
    return spawned.marked("initfree curve", data, where)


def take(scene: bpy.types.Scene, name: str) -> None:
    """A preset's settings and curves."""
    if name not in PRESETS:
        raise Problem(f"There is no preset {name!r}; expected one of {', '.join(PRESETS)}")
    from_table(scene, PRESETS[name])
    where = spawned.collection(CURVES)
    for kind, points, closed in curves_of_preset(PRESETS[name]["trajectory"]):
        make_curve(kind, points, closed, where)
    scene.initfree.curves = where


def add_scene(path: Path, scene: bpy.types.Scene) -> int:
    """The arrays of `initfree blender scene` as an object that landmarks lie on; the number of its vertices."""
    with np.load(path, allow_pickle=False) as arrays:
        vertices, faces, colours = arrays["vertices"], arrays["faces"], arrays["colors"].reshape(-1, 3)
    mesh = bpy.data.meshes.new(SCENE)
    mesh.from_pydata(vertices.tolist(), [], faces.tolist())
    spawned.paint(mesh, "colour", colours, "CORNER" if len(faces) else "POINT")
    where = spawned.collection(SCENE)
    spawned.marked(SCENE, mesh, where)[spawned.MARK] = False
    scene.initfree.objects = where
    return len(vertices)


class INITFREE_OT_preset(Job, bpy.types.Operator):
    """Take a preset's settings and its curves, and its scene if wanted"""

    bl_idname = "initfree.preset"
    bl_label = "Preset"

    name: StringProperty()

    def execute(self, context: bpy.types.Context) -> set:
        return super().execute(context) if context.scene.initfree.preset_scene else self._alone(context)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set:
        return super().invoke(context, event) if context.scene.initfree.preset_scene else self._alone(context)

    def arguments(self, context: bpy.types.Context) -> list:
        take(context.scene, self.name)
        return ["blender", "scene", self.name, "--output", "scene.npz"]

    def done(self, context: bpy.types.Context) -> str:
        return f"{self.name}, with a scene of {add_scene(self.folder / 'scene.npz', context.scene)} vertices"

    def _alone(self, context: bpy.types.Context) -> set:
        try:
            take(context.scene, self.name)
        except Problem as problem:
            self.report({"ERROR"}, str(problem))
            return {"CANCELLED"}
        return {"FINISHED"}


def _draw_presets(layout: bpy.types.UILayout, adversarial: bool) -> None:
    for name, table in PRESETS.items():
        if name.startswith("adversarial-") == adversarial:
            said = table.get("description") or ""
            layout.operator(INITFREE_OT_preset.bl_idname, text=f"{name}: {said}" if said else name).name = name


class INITFREE_MT_adversarial(bpy.types.Menu):
    """Presets that are hard on purpose"""

    bl_idname = "INITFREE_MT_adversarial"
    bl_label = "Adversarial"

    def draw(self, _: bpy.types.Context) -> None:
        _draw_presets(self.layout, adversarial=True)


class INITFREE_MT_presets(bpy.types.Menu):
    """Presets of the paper and of initfree"""

    bl_idname = "INITFREE_MT_presets"
    bl_label = "Presets"

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.prop(context.scene.initfree, "preset_scene")
        _draw_presets(self.layout, adversarial=False)
        self.layout.menu(INITFREE_MT_adversarial.bl_idname)


class _File:
    """An operator on a TOML file that the user chooses."""

    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012
    filename_ext = ".toml"

    def invoke(self, context: bpy.types.Context, _: bpy.types.Event) -> set:
        self.filepath = self.filepath or "initfree.toml"
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set:
        try:
            self.work(context, Path(bpy.path.abspath(self.filepath)))
        except (Problem, OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
            said = error.strerror if isinstance(error, OSError) and error.strerror else error
            self.report({"ERROR"}, f"{self.filepath}: {said}")
            return {"CANCELLED"}
        return {"FINISHED"}


class INITFREE_OT_save_settings(_File, bpy.types.Operator):
    """Save the settings as a TOML file that `initfree generate` takes"""

    bl_idname = "initfree.save_settings"
    bl_label = "Save settings"

    filepath: StringProperty(subtype="FILE_PATH")
    check_existing: BoolProperty(default=True, options={"HIDDEN"})

    def work(self, context: bpy.types.Context, path: Path) -> None:
        if not bpy.data.filepath:
            raise Problem("the settings name the file that they belong to, which was never saved; save it first")
        table = to_table(context.scene)
        table["scene"]["path"] = bpy.data.filepath
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(to_toml(table), encoding="utf-8")
        os.replace(beside, path)


class INITFREE_OT_load_settings(_File, bpy.types.Operator):
    """Take the settings of a TOML file"""

    bl_idname = "initfree.load_settings"
    bl_label = "Load settings"

    filepath: StringProperty(subtype="FILE_PATH")

    def work(self, context: bpy.types.Context, path: Path) -> None:
        from_table(context.scene, tomllib.loads(path.read_text(encoding="utf-8")))


_CLASSES = (
    INITFREE_OT_preset,
    INITFREE_MT_adversarial,
    INITFREE_MT_presets,
    INITFREE_OT_save_settings,
    INITFREE_OT_load_settings,
)


def register() -> None:
    for one in _CLASSES:
        bpy.utils.register_class(one)


def unregister() -> None:
    for one in reversed(_CLASSES):
        bpy.utils.unregister_class(one)
