# pyright: reportMissingImports=false
"""Objects that the panel makes: cameras, the lines of covisibility, point clouds, which are no part of the problem, and the
scenes of presets, which are."""

from pathlib import Path

import bpy
import numpy as np
from mathutils import Matrix

MARK = "initfree"
"""custom property of all that the panel makes; what generates problems passes over those where it is true"""
CAMERAS, COVISIBILITY, TARGET = "initfree cameras", "initfree covisibility", "initfree target"
NEIGHBOURS = 2
"""lines of covisibility that every camera has at least"""
SENSOR = 36.0
"""mm, Blender's own; the focal length in pixels is lens / SENSOR times the width"""
_FLIP = np.diag([1.0, -1.0, -1.0, 1.0])
"""COLMAP's cameras look along z with y down, Blender's along -z with y up"""


def collection(name: str) -> bpy.types.Collection:
    """An empty collection of the scene; what was in it before is removed."""
    remove(name)
    made = bpy.data.collections.new(name)
    bpy.context.scene.collection.children.link(made)
    return made


def remove(name: str) -> int:
    """Remove a collection with all that the panel put into it; the number of objects."""
    old = bpy.data.collections.get(name)
    if old is None:
        return 0
    things = [thing for thing in old.all_objects if MARK in thing]
    for thing in things:
        data = thing.data
        bpy.data.objects.remove(thing)
        if data is not None and data.users == 0:
            bpy.data.batch_remove([data])
    if not old.all_objects:
        bpy.data.collections.remove(old)
    return len(things)


def marked(name: str, data: bpy.types.ID | None, where: bpy.types.Collection) -> bpy.types.Object:
    thing = bpy.data.objects.new(name, data)
    thing[MARK] = True
    where.objects.link(thing)
    return thing


def target(point: list) -> bpy.types.Object:
    """An empty at a point."""
    thing = marked(TARGET, None, collection(TARGET))
    thing.matrix_world = Matrix.Translation(point)
    return thing


def strongest(pairs: np.ndarray) -> np.ndarray:
    """Of pairs (first, second, landmarks shared), those that are among the NEIGHBOURS strongest of either image."""
    kept: dict = {}
    chosen = []
    for first, second, _ in pairs[np.argsort(-pairs[:, 2], kind="stable")].tolist():
        if min(kept.get(first, 0), kept.get(second, 0)) < NEIGHBOURS:
            chosen.append((first, second))
            kept[first], kept[second] = kept.get(first, 0) + 1, kept.get(second, 0) + 1
    return np.array(chosen, int).reshape(-1, 2)


def paint(mesh: bpy.types.Mesh, name: str, colours: np.ndarray, domain: str) -> None:
    """A colour attribute: sRGB bytes (n, 3) of the corners or vertices of a mesh."""
    attribute = mesh.color_attributes.new(name, "BYTE_COLOR", domain)
    values = np.concatenate([colours / 255.0, np.ones((len(colours), 1))], axis=1).astype(np.float32)
    attribute.data.foreach_set("color_srgb", values.ravel())
    mesh.color_attributes.active_color = attribute


def shown_size(centres: np.ndarray) -> float:
    """Of the cameras' pyramids: small against the way from one camera to the next."""
    if len(centres) < 2:
        return 1.0
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2) + np.diag(np.full(len(centres), np.inf))
    return 0.5 * float(np.median(apart.min(axis=0)))


def camera(
    name: str, world: np.ndarray, focal: float, width: float, size: float, where: bpy.types.Collection
) -> bpy.types.Object:
    """A camera at a COLMAP pose (camera to world), `focal` and `width` in pixels."""
    data = bpy.data.cameras.new(name)
    data.sensor_fit, data.sensor_width, data.lens = "HORIZONTAL", SENSOR, SENSOR * focal / width
    data.display_size = size
    thing = marked(name, data, where)
    thing.matrix_world = Matrix((world @ _FLIP).tolist())
    return thing


def spawn(path: Path) -> int:
    """The cameras of `initfree blender preview`, and edges between those that share most landmarks; their number."""
    with np.load(path, allow_pickle=False) as arrays:
        world, names, pairs = arrays["camera_to_world"], arrays["names"].tolist(), arrays["pairs"]
        intrinsics, size = arrays["intrinsics"], arrays["size"].astype(float)
    where, shown = collection(CAMERAS), shown_size(world[:, :3, 3])
    for k, name in enumerate(names):
        fx, _, cx, cy = intrinsics[k]
        data = camera(name, world[k], fx, size[k, 0], shown, where).data
        data.shift_x, data.shift_y = (0.5 * size[k] - (cx, cy)) * (1.0, -1.0) / size[k, 0]
    render = bpy.context.scene.render
    render.resolution_x, render.resolution_y, render.resolution_percentage = int(size[0, 0]), int(size[0, 1]), 100
    mesh = bpy.data.meshes.new(COVISIBILITY)
    mesh.from_pydata(world[:, :3, 3].tolist(), strongest(pairs).tolist(), [])
    lines = marked(COVISIBILITY, mesh, where)
    lines.hide_render = lines.hide_select = True
    return len(names)


class INITFREE_OT_clear(bpy.types.Operator):
    """Remove the cameras that the panel spawned"""

    bl_idname = "initfree.clear"
    bl_label = "Clear cameras"
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012

    def execute(self, context: bpy.types.Context) -> set:
        remove(CAMERAS)
        context.scene.initfree.figures = ""
        return {"FINISHED"}


def register() -> None:
    bpy.utils.register_class(INITFREE_OT_clear)


def unregister() -> None:
    bpy.utils.unregister_class(INITFREE_OT_clear)
