# pyright: reportMissingImports=false
"""Runs inside Blender's own Python: meshes, curves and cameras out of a `.blend` file."""

import math

import bpy
import numpy as np


def open_blend(path: str) -> None:
    """Open the file, and have its geometry evaluated as it renders, not as its viewport shows it."""
    bpy.ops.wm.open_mainfile(filepath=path, load_ui=False)
    bpy.context.scene.render.use_simplify = False
    for collection in bpy.data.collections:
        collection.hide_viewport = collection.hide_render
    for thing in bpy.context.view_layer.objects:
        thing.hide_set(False)
        thing.hide_viewport = thing.hide_render
        for modifier in thing.modifiers:
            modifier.show_viewport = modifier.show_render
            if hasattr(modifier, "render_levels"):
                modifier.levels = modifier.render_levels
        if thing.type in {"CURVE", "SURFACE", "FONT"}:
            thing.data.resolution_u = thing.data.render_resolution_u or thing.data.resolution_u
            thing.data.resolution_v = thing.data.render_resolution_v or thing.data.resolution_v
        elif thing.type == "META":
            thing.data.resolution = thing.data.render_resolution


MARK = "initfree"
"""custom property of what the panel made: cameras, reconstructions"""
SAMPLES = 64
"""of each Bezier segment: colder's `samples_per_bezier_segment`"""
SETTINGS = "initfree.toml"
"""text of a `.blend` file in which the panel keeps its settings"""


def saved_settings() -> str:
    """What the panel saved in the open file, as TOML; empty where it saved nothing."""
    text = bpy.data.texts.get(SETTINGS)
    return "" if text is None else text.as_string()


def evaluated_meshes() -> dict:
    """World-space triangles and corner colours (sRGB bytes) of all that renders, instances included, and the vertices of
    meshes without faces as `points`. `owner` and `point_owner` are rows of `names`: of the object, and of the object that
    makes an instance of it (or its own again). Ordered by name: Blender's own order differs from run to run."""
    names = sorted(thing.name for thing in bpy.data.objects)
    place = {name: k for k, name in enumerate(names)}
    surfaces, clouds = [], []
    for instance in bpy.context.evaluated_depsgraph_get().object_instances:
        thing = instance.object
        if thing.type not in {"MESH", "CURVE", "SURFACE", "META", "FONT"} or thing.hide_render or thing.original.get(MARK):
            continue
        try:
            mesh = thing.to_mesh()
        except RuntimeError:
            continue
        own = place[thing.original.name]
        parent = place[instance.parent.original.name] if instance.parent else own
        key = (own, parent, *instance.persistent_id)
        if mesh is not None and mesh.polygons:
            surfaces.append((key, *triangulated(mesh, instance.matrix_world)))
        elif mesh is not None and mesh.vertices and thing.type == "MESH":
            clouds.append((key, world_vertices(mesh, instance.matrix_world), vertex_colors(mesh)))
        thing.to_mesh_clear()
    surfaces.sort(key=lambda one: one[0])
    clouds.sort(key=lambda one: one[0])
    offsets = np.cumsum([0, *(len(vertices) for _, vertices, _, _ in surfaces)])
    faces = [triangles + offset for (_, _, triangles, _), offset in zip(surfaces, offsets, strict=False)]
    return {
        "names": np.array(names, dtype=np.str_),
        "vertices": np.concatenate([np.zeros((0, 3)), *(vertices for _, vertices, _, _ in surfaces)]),
        "faces": np.concatenate([np.zeros((0, 3), np.int64), *faces]),
        "colors": np.concatenate([np.zeros((0, 3, 3), np.uint8), *(colors for *_, colors in surfaces)]),
        "owner": owners((key, len(triangles)) for key, _, triangles, _ in surfaces),
        "points": np.concatenate([np.zeros((0, 3)), *(points for _, points, _ in clouds)]),
        "point_colors": np.concatenate([np.zeros((0, 3), np.uint8), *(colors for *_, colors in clouds)]),
        "point_owner": owners((key, len(points)) for key, points, _ in clouds),
    }


def owners(counted) -> np.ndarray:
    """(n, 2): the first two numbers of each key, as often as it counts."""
    return np.concatenate([np.zeros((0, 2), np.int64), *(np.tile(key[:2], (count, 1)) for key, count in counted)])


def triangulated(mesh, matrix) -> tuple:
    """World vertices, triangles and corner colours."""
    mesh.calc_loop_triangles()
    triangles = np.empty(len(mesh.loop_triangles) * 3, np.int32)
    mesh.loop_triangles.foreach_get("vertices", triangles)
    loops = np.empty(len(mesh.loop_triangles) * 3, np.int32)
    mesh.loop_triangles.foreach_get("loops", loops)
    triangles, loops = triangles.reshape(-1, 3), loops.reshape(-1, 3)
    if np.linalg.det(np.array(matrix)[:3, :3]) < 0:
        triangles, loops = triangles[:, ::-1], loops[:, ::-1]
    return world_vertices(mesh, matrix), triangles, corner_colors(mesh, triangles, loops)


def world_vertices(mesh, matrix):
    points = np.empty(len(mesh.vertices) * 3)
    mesh.vertices.foreach_get("co", points)
    matrix = np.array(matrix)
    return points.reshape(-1, 3) @ matrix[:3, :3].T + matrix[:3, 3]


def vertex_colors(mesh):
    """The colour attribute of the vertices (sRGB), else grey."""
    attribute = mesh.color_attributes.active_color if mesh.color_attributes else None
    if attribute is None or attribute.domain != "POINT":
        return np.full((len(mesh.vertices), 3), 180, np.uint8)
    return color_bytes(attribute)


def color_bytes(attribute):
    values = np.empty(len(attribute.data) * 4, np.float32)
    attribute.data.foreach_get("color_srgb", values)
    return np.clip(values.reshape(-1, 4)[:, :3] * 255 + 0.5, 0, 255).astype(np.uint8)


def corner_colors(mesh, triangles, loops):
    """The active colour attribute (sRGB), else the materials' viewport colours, else grey."""
    attribute = mesh.color_attributes.active_color if mesh.color_attributes else None
    if attribute is not None:
        return color_bytes(attribute)[triangles if attribute.domain == "POINT" else loops]
    slots = np.empty(len(mesh.loop_triangles), np.int32)
    mesh.loop_triangles.foreach_get("material_index", slots)
    linear = [material.diffuse_color[:3] if material else (0.45, 0.45, 0.45) for material in mesh.materials]
    palette = np.array(linear or [(0.45, 0.45, 0.45)])
    srgb = np.where(palette <= 0.0031308, 12.92 * palette, 1.055 * palette ** (1 / 2.4) - 0.055)
    chosen = (srgb * 255 + 0.5).astype(np.uint8)[np.clip(slots, 0, len(palette) - 1)]
    return np.repeat(chosen[:, None], 3, axis=1)


def flight(name: str, cameras: int) -> np.ndarray:
    """An animated camera's camera-to-world matrices, evenly over the scene's frames."""
    scene, thing = bpy.context.scene, bpy.data.objects.get(name)
    if thing is None or thing.type != "CAMERA":
        known = ", ".join(o.name for o in bpy.data.objects if o.type in {"CURVE", "CAMERA"}) or "none"
        raise SystemExit(f"initfree: no curve or camera named {name}; the file has: {known}")
    matrices = []
    for frame in np.linspace(scene.frame_start, scene.frame_end, cameras):
        scene.frame_set(math.floor(frame), subframe=float(frame - math.floor(frame)))
        matrices.append(np.array(thing.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world))
    return np.array(matrices)


def curves() -> dict:
    """Each curve, by its name, as a polyline in world space; its first point comes again at the end of a closed one."""
    lines = {}
    for thing in [thing for thing in bpy.data.objects if thing.type == "CURVE"]:
        # Without bevel and fill, Blender evaluates a curve to a mesh of edges: the polyline.
        data = thing.data
        data.bevel_depth, data.extrude = 0.0, 0.0
        data.fill_mode = "NONE" if data.dimensions == "2D" else "FULL"
        data.resolution_u = max(data.resolution_u, SAMPLES)
        evaluated = thing.evaluated_get(bpy.context.evaluated_depsgraph_get())
        mesh = evaluated.to_mesh()
        line = world_vertices(mesh, evaluated.matrix_world) if mesh is not None else np.zeros((0, 3))
        evaluated.to_mesh_clear()
        closed = bool(data.splines and data.splines[0].use_cyclic_u)
        lines[thing.name] = np.concatenate([line, line[:1]]) if closed else line
    return lines
