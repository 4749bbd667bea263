# pyright: reportMissingImports=false
"""What the panel sets: one property group of the scene, which mirrors the generator's configuration."""

import bpy
from bpy.props import BoolProperty, IntProperty, PointerProperty, StringProperty
from mathutils import Vector

from . import fields, spawned
from .fields import Problem
from .toml_text import to_toml

TEXT = "initfree.toml"
"""text of the file in which the settings are kept as TOML, for `initfree generate FILE.blend`"""
TABLES = {
    "camera": "Camera",
    "visibility": "Visibility",
    "density": "Density",
    "degradation": "Degradation",
    "adversity": "Adversity",
    "render": "Render",
}
SCENE, LOOK, PATH = "Blend", "LookAt", "BlenderPath"
GROUPS = {**TABLES, "scene": SCENE, "look_at": LOOK, "path": PATH}
"""name of a property group -> table of the configuration that it mirrors"""
LEFT_OUT = {SCENE: ("kind", "path", "objects"), LOOK: ("point",), PATH: ("kind", "object", "look_at")}
"""fields that the panel has another way to say"""
NEAR = 1e-5
"""of a target: closer, it is the same point in single precision"""

_RELATIVE = {"PATH_SUPPORTS_BLEND_RELATIVE"} if bpy.app.version >= (4, 5) else set()
"""paths that begin with // are relative to the file, which Blender 4.5 and newer want said"""


def _group(name: str, table: str) -> type:
    notes = fields.properties(table, LEFT_OUT.get(table, ()))
    return type(name, (bpy.types.PropertyGroup,), {"__annotations__": notes, "__doc__": f"The table {table}."})


_CLASSES = {name: _group(f"INITFREE_PG_{name}", table) for name, table in GROUPS.items()}


def _is_target(_: object, thing: bpy.types.Object) -> bool:
    return thing.type != "CURVE"


class INITFREE_PG_settings(bpy.types.PropertyGroup):
    """The configuration, and where it is written."""

    curves: PointerProperty(
        type=bpy.types.Collection, name="Curves", description="Cameras go along these curves; none: along all of the scene"
    )
    target: PointerProperty(
        type=bpy.types.Object, name="Target", poll=_is_target,
        description="What cameras look at (kind point), or away from (kind away)",
    )  # fmt: skip
    objects: PointerProperty(
        type=bpy.types.Collection, name="Objects",
        description="Landmarks lie on these objects, and all objects hide them; none: on all that render",
    )  # fmt: skip
    preset_scene: BoolProperty(
        name="With their scene", default=True, description="Presets bring their scene, not only curves and settings"
    )
    seed: IntProperty(name="Seed", min=0, description="Same seed and settings, same files")
    shuffle: BoolProperty(name="Shuffle", description="List the cameras in random order instead of along the curves")
    images: BoolProperty(name="Images and depth maps", description="Render them too")
    database: BoolProperty(name="Database", default=True, description="Write database.db, for solve and COLMAP's mappers")
    folder: StringProperty(
        name="Folder",
        subtype="DIR_PATH",
        default="//problem",
        description="Where the problem is written",
        options=_RELATIVE,
    )
    status: StringProperty(options={"SKIP_SAVE"})
    figures: StringProperty(options={"SKIP_SAVE"})

    __annotations__ |= {name: PointerProperty(type=group) for name, group in _CLASSES.items()}


def curves_of(scene: bpy.types.Scene) -> list:
    """The curves that cameras go along, by name."""
    chosen = scene.initfree.curves
    things = chosen.all_objects if chosen else scene.objects
    found = sorted((thing for thing in things if thing.type == "CURVE"), key=lambda thing: thing.name)
    if not found:
        where = f"the collection {chosen.name}" if chosen else "the scene"
        raise Problem(f"There is no curve in {where}; add one (Shift A, Curve, Bezier) for the cameras to go along")
    return found


def to_table(scene: bpy.types.Scene) -> dict:
    """The configuration of the generator that the settings stand for; the scene's path is the file's own."""
    s = scene.initfree
    look = fields.to_table(s.look_at, LOOK, LEFT_OUT[LOOK])
    if s.target is not None:
        look["point"] = [fields.plain(one) for one in s.target.matrix_world.translation]
    elif s.look_at.kind == "point":
        raise Problem("No target is chosen; choose an object for the cameras to look at, or another kind of target")
    path = fields.to_table(s.path, PATH, LEFT_OUT[PATH])
    routes = [{"kind": "blender", "object": curve.name, **path, "look_at": look} for curve in curves_of(scene)]
    objects = sorted(thing.name for thing in s.objects.all_objects if thing.type != "CURVE") if s.objects else []
    if s.objects and not objects:
        raise Problem(f"There is no object in the collection {s.objects.name} for landmarks to lie on")
    return {
        "shuffle": s.shuffle,
        "scene": {"kind": "blend", "objects": objects, **fields.to_table(s.scene, SCENE, LEFT_OUT[SCENE])},
        "trajectory": routes[0] if len(routes) == 1 else {"kind": "groups", "groups": routes},
        **{name: fields.to_table(getattr(s, name), table) for name, table in TABLES.items()},
    }


def from_table(scene: bpy.types.Scene, table: dict) -> None:
    """The settings from a configuration, all or none; its curves and objects are those of the file.

    Where cameras look at a point, the target is the object there: an empty, unless the target was there before.
    """
    s = scene.initfree
    values = _values(table)
    before = {name: fields.to_table(getattr(s, name), of, LEFT_OUT.get(of, ())) for name, of in GROUPS.items()}
    try:
        _set(s, values)
        s.shuffle = table.get("shuffle", False)
    except (TypeError, ValueError) as error:
        _set(s, before)
        raise Problem(str(error).replace("\n", " ")) from error
    point = values["look_at"].get("point")
    if point is None:
        s.target = None
    elif s.target is None or (s.target.matrix_world.translation - Vector(point)).length > NEAR:
        s.target = spawned.target(point)


def _values(table: dict) -> dict:
    """name of a property group -> its values in a configuration."""
    trajectory = table.get("trajectory") or {}
    tables = {**{name: table.get(name, {}) for name in TABLES}, "scene": table.get("scene", {}), "trajectory": trajectory}
    wrong = next((name for name, one in tables.items() if not isinstance(one, dict)), None)
    if wrong is not None:
        raise Problem(f"{wrong} = {tables[wrong]}: expected a table")
    for name, of in TABLES.items():
        unknown = next(iter(set(tables[name]) - set(fields.schema(of))), None)
        if unknown is not None:
            raise Problem(f"{name}.{unknown} is no field of the configuration; expected {', '.join(fields.schema(of))}")
    routes = trajectory.get("groups") or [trajectory]
    cameras = sum(route.get("cameras", 0) for route in routes)
    curves = len(trajectory.get("rings", ())) or len(routes)
    path = routes[0] | ({"cameras": max(1, cameras // curves)} if cameras else {})
    return {**tables, "look_at": routes[0].get("look_at") or {}, "path": path}


def _set(s: INITFREE_PG_settings, values: dict) -> None:
    for name, of in GROUPS.items():
        fields.from_table(getattr(s, name), of, values[name], LEFT_OUT.get(of, ()))


def keep(scene: bpy.types.Scene) -> None:
    """Write the settings into the file's text initfree.toml."""
    text = bpy.data.texts.get(TEXT) or bpy.data.texts.new(TEXT)
    text.from_string(to_toml(to_table(scene)))


@bpy.app.handlers.persistent
def _before_saving(*_: object) -> None:
    """Files that do not use the panel have no curves or target; they are saved as they are."""
    try:
        keep(bpy.context.scene)
    except Problem:
        return


def register() -> None:
    for group in (*_CLASSES.values(), INITFREE_PG_settings):
        bpy.utils.register_class(group)
    bpy.types.Scene.initfree = PointerProperty(type=INITFREE_PG_settings)
    bpy.app.handlers.save_pre.append(_before_saving)


def unregister() -> None:
    bpy.app.handlers.save_pre.remove(_before_saving)
    del bpy.types.Scene.initfree
    for group in (INITFREE_PG_settings, *reversed(_CLASSES.values())):
        bpy.utils.unregister_class(group)
