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


def evaluated_meshes() -> tuple:
    """World-space triangles and corner colours (sRGB bytes) of all that renders, instances included."""
    vertices, faces, colors, offset = [], [], [], 0
    for instance in bpy.context.evaluated_depsgraph_get().object_instances:
        thing = instance.object
        if thing.type not in {"MESH", "CURVE", "SURFACE", "META", "FONT"} or thing.hide_render:
            continue
        try:
            mesh = thing.to_mesh()
        except RuntimeError:
            continue
        if mesh is None or not mesh.polygons:
            thing.to_mesh_clear()
            continue
        mesh.calc_loop_triangles()
        points = np.empty(len(mesh.vertices) * 3)
        mesh.vertices.foreach_get("co", points)
        matrix = np.array(instance.matrix_world)
        points = points.reshape(-1, 3) @ matrix[:3, :3].T + matrix[:3, 3]
        triangles = np.empty(len(mesh.loop_triangles) * 3, np.int32)
        mesh.loop_triangles.foreach_get("vertices", triangles)
        loops = np.empty(len(mesh.loop_triangles) * 3, np.int32)
        mesh.loop_triangles.foreach_get("loops", loops)
        triangles, loops = triangles.reshape(-1, 3), loops.reshape(-1, 3)
        if np.linalg.det(matrix[:3, :3]) < 0:
            triangles, loops = triangles[:, ::-1], loops[:, ::-1]
        vertices.append(points)
        faces.append(triangles + offset)
        colors.append(corner_colors(mesh, triangles, loops))
        offset += len(points)
        thing.to_mesh_clear()
    if not vertices:
        return np.zeros((0, 3)), np.zeros((0, 3), np.int64), np.zeros((0, 3, 3), np.uint8)
    return np.concatenate(vertices), np.concatenate(faces).astype(np.int64), np.concatenate(colors)


def corner_colors(mesh, triangles, loops):
    """The active colour attribute (sRGB), else the materials' viewport colours, else grey."""
    attribute = mesh.color_attributes.active_color if mesh.color_attributes else None
    if attribute is not None:
        values = np.empty(len(attribute.data) * 4, np.float32)
        attribute.data.foreach_get("color_srgb", values)
        index = triangles if attribute.domain == "POINT" else loops
        return np.clip(values.reshape(-1, 4)[index, :3] * 255 + 0.5, 0, 255).astype(np.uint8)
    slots = np.empty(len(mesh.loop_triangles), np.int32)
    mesh.loop_triangles.foreach_get("material_index", slots)
    linear = [material.diffuse_color[:3] if material else (0.45, 0.45, 0.45) for material in mesh.materials]
    palette = np.array(linear or [(0.45, 0.45, 0.45)])
    srgb = np.where(palette <= 0.0031308, 12.92 * palette, 1.055 * palette ** (1 / 2.4) - 0.055)
    chosen = (srgb * 255 + 0.5).astype(np.uint8)[np.clip(slots, 0, len(palette) - 1)]
    return np.repeat(chosen[:, None], 3, axis=1)


def path_of(name: str, cameras: int) -> dict:
    """A curve as a polyline in world space, or an animated camera's camera-to-world matrices."""
    thing = bpy.data.objects.get(name)
    if thing is None or thing.type not in {"CURVE", "CAMERA"}:
        known = ", ".join(o.name for o in bpy.data.objects if o.type in {"CURVE", "CAMERA"}) or "none"
        raise SystemExit(f"initfree: no curve or camera named {name}; the file has: {known}")
    scene = bpy.context.scene
    if thing.type == "CAMERA":
        frames = np.linspace(scene.frame_start, scene.frame_end, cameras)
        matrices = []
        for frame in frames:
            scene.frame_set(math.floor(frame), subframe=float(frame - math.floor(frame)))
            matrices.append(np.array(thing.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world))
        return {"matrices": np.array(matrices)}
    # Without bevel and fill, Blender evaluates a curve to a mesh of edges: the polyline.
    data = thing.data
    data.bevel_depth, data.extrude, data.fill_mode = 0.0, 0.0, "FULL"
    if data.dimensions == "2D":
        data.fill_mode = "NONE"
    data.resolution_u = max(data.resolution_u, 64)
    evaluated = thing.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = evaluated.to_mesh()
    points = np.empty(len(mesh.vertices) * 3)
    mesh.vertices.foreach_get("co", points)
    matrix = np.array(evaluated.matrix_world)
    line = points.reshape(-1, 3) @ matrix[:3, :3].T + matrix[:3, 3]
    evaluated.to_mesh_clear()
    closed = bool(data.splines and data.splines[0].use_cyclic_u)
    return {"line": line, "closed": np.array(closed)}
