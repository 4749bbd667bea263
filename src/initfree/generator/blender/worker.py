# pyright: reportMissingImports=false
"""Runs inside Blender's own Python (bpy, numpy < 2): `python worker.py FOLDER`, with FOLDER/job.json in it.

It knows nothing of initfree: arrays come and go as .npz files, pictures as PNG and multilayer EXR.

job.json, kind "read":   blend, object (or null), cameras -> scene.npz (vertices, faces, colors), path.npz
job.json, kind "render": blend (or null for mesh.npz), images, size, samples, threads -> NAME.png, NAME.exr
"""

import hashlib
import json
import math
import os
import sys
import tempfile

import bpy
import numpy as np

CAMERA = """
shader colmap_camera(output point position = 0, output vector direction = 0, output color throughput = 1)
{
    point raster = camera_shader_raster_position();
    float column = raster[0] * %(width)d.0;
    float row = (1.0 - raster[1]) * %(height)d.0;
    %(snap)s
    float xd = (column - (%(cx)r)) / (%(fx)r);
    float yd = (row - (%(cy)r)) / (%(fy)r);
    float x = xd;
    float y = yd;
    // Newton's method on distort(x, y) = (xd, yd); k1, k2 radial, p1, p2 tangential as in COLMAP's OPENCV.
    for (int i = 0; i < %(iterations)d; ++i) {
        float r2 = x * x + y * y;
        float g = 1.0 + r2 * ((%(k1)r) + (%(k2)r) * r2);
        float dg = (%(k1)r) + 2.0 * (%(k2)r) * r2;
        float ex = x * g + 2.0 * (%(p1)r) * x * y + (%(p2)r) * (r2 + 2.0 * x * x) - xd;
        float ey = y * g + 2.0 * (%(p2)r) * x * y + (%(p1)r) * (r2 + 2.0 * y * y) - yd;
        float xx = g + 2.0 * x * x * dg + 2.0 * (%(p1)r) * y + 6.0 * (%(p2)r) * x;
        float xy = 2.0 * x * y * dg + 2.0 * (%(p1)r) * x + 2.0 * (%(p2)r) * y;
        float yy = g + 2.0 * y * y * dg + 6.0 * (%(p1)r) * y + 2.0 * (%(p2)r) * x;
        float det = xx * yy - xy * xy;
        x -= (yy * ex - xy * ey) / det;
        y -= (xx * ey - xy * ex) / det;
    }
    // Beyond the fold two directions share a pixel, and some pixels have none: no ray.
    float r2 = x * x + y * y;
    float g = 1.0 + r2 * ((%(k1)r) + (%(k2)r) * r2);
    float ex = x * g + 2.0 * (%(p1)r) * x * y + (%(p2)r) * (r2 + 2.0 * x * x) - xd;
    float ey = y * g + 2.0 * (%(p2)r) * x * y + (%(p1)r) * (r2 + 2.0 * y * y) - yd;
    if (!(r2 < (%(fold)r) * (%(fold)r)) || !(ex * ex + ey * ey < 1e-9))
        throughput = color(0);
    direction = normalize(vector(x, -y, 1.0));
}
"""


def open_blend(path: str) -> None:
    bpy.ops.wm.open_mainfile(filepath=path, load_ui=False)


def evaluated_meshes(graph) -> tuple:
    """World-space triangles and corner colours (sRGB bytes) of all that renders, instances included."""
    vertices, faces, colors, offset = [], [], [], 0
    for instance in graph.object_instances:
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


def build_scene(folder: str) -> None:
    """An empty file with the mesh of mesh.npz in it, a sun and a sky."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    arrays = np.load(os.path.join(folder, "mesh.npz"))
    mesh = bpy.data.meshes.new("scene")
    mesh.from_pydata(arrays["vertices"].tolist(), [], arrays["faces"].tolist())
    attribute = mesh.color_attributes.new("Color", "BYTE_COLOR", "CORNER")
    rgba = np.ones((len(arrays["faces"]) * 3, 4), np.float32)
    rgba[:, :3] = arrays["colors"].reshape(-1, 3) / 255
    attribute.data.foreach_set("color_srgb", rgba.ravel())
    mesh.materials.append(stone(bool(arrays["textured"])))
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("scene", mesh))
    sun = bpy.data.lights.new("sun", "SUN")
    sun.energy, sun.angle = 3.0, math.radians(1.0)
    lamp = bpy.data.objects.new("sun", sun)
    direction = arrays["sun"] / np.linalg.norm(arrays["sun"])
    lamp.rotation_euler = (math.acos(direction[2]), 0.0, math.atan2(direction[1], direction[0]) + math.pi / 2)
    bpy.context.scene.collection.objects.link(lamp)
    world = bpy.data.worlds.new("sky")
    world.use_nodes = True
    background = world.node_tree.nodes["Background"]
    background.inputs["Color"].default_value = (0.42, 0.60, 0.85, 1.0)
    background.inputs["Strength"].default_value = 0.8
    bpy.context.scene.world = world


def stone(textured: bool):
    """The colour attribute, with grain where the scene is textured."""
    material = bpy.data.materials.new("stone")
    material.use_nodes = True
    nodes, links = material.node_tree.nodes, material.node_tree.links
    shader = nodes["Principled BSDF"]
    shader.inputs["Roughness"].default_value = 0.9
    color = nodes.new("ShaderNodeVertexColor")
    color.layer_name = "Color"
    if not textured:
        links.new(color.outputs["Color"], shader.inputs["Base Color"])
        return material
    place = nodes.new("ShaderNodeNewGeometry")
    noise = nodes.new("ShaderNodeTexNoise")
    noise.inputs["Scale"].default_value, noise.inputs["Detail"].default_value = 0.8, 6.0
    ramp = nodes.new("ShaderNodeMapRange")
    ramp.inputs["To Min"].default_value, ramp.inputs["To Max"].default_value = 0.45, 1.5
    mix = nodes.new("ShaderNodeVectorMath")
    mix.operation = "SCALE"
    links.new(place.outputs["Position"], noise.inputs["Vector"])
    links.new(noise.outputs["Fac"], ramp.inputs["Value"])
    links.new(color.outputs["Color"], mix.inputs[0])
    links.new(ramp.outputs["Result"], mix.inputs["Scale"])
    links.new(mix.outputs["Vector"], shader.inputs["Base Color"])
    return material


def set_lens(camera, lens: dict, size: list, snap: bool) -> None:
    """Compile the camera's exact distortion; `snap` sends rays through pixel centres (for depth)."""
    source = CAMERA % {
        **lens,
        "width": size[0],
        "height": size[1],
        "snap": "column = floor(column) + 0.5; row = floor(row) + 0.5;" if snap else "",
        "iterations": 12 if any(lens[name] for name in ("k1", "k2", "p1", "p2")) else 0,
    }
    # Blender's own update of a custom camera needs the module oslquery, which the bpy wheel lacks; a shader
    # without parameters needs only its bytecode.
    import _cycles

    with tempfile.TemporaryDirectory() as place:
        written, compiled = os.path.join(place, "camera.osl"), os.path.join(place, "camera.oso")
        with open(written, "w", encoding="ascii") as file:
            file.write(source)
        if not _cycles.osl_compile(written, compiled):
            raise SystemExit("initfree: Blender cannot compile the camera's shader")
        with open(compiled, encoding="utf-8") as file:
            bytecode = file.read()
    camera.type, camera.custom_mode = "CUSTOM", "INTERNAL"
    camera.custom_shader = bpy.data.texts.get("camera.osl") or bpy.data.texts.new("camera.osl")
    camera.custom_bytecode = bytecode
    camera.custom_bytecode_hash = hashlib.md5(bytecode.encode(), usedforsecurity=False).hexdigest()
    camera.update_tag()


def render(job: dict, folder: str) -> None:
    if job["blend"]:
        open_blend(job["blend"])
    else:
        build_scene(folder)
    scene = bpy.context.scene
    scene.render.engine = "CYCLES"
    scene.cycles.device = "CPU"
    scene.render.threads_mode, scene.render.threads = "FIXED", job["threads"]
    scene.render.resolution_x, scene.render.resolution_y = job["size"]
    scene.render.resolution_percentage = 100
    scene.render.use_border = scene.render.use_compositing = scene.render.use_sequencer = False
    scene.view_settings.view_transform = "Standard"
    scene.cycles.seed = 0
    camera = bpy.data.cameras.new("initfree")
    camera.clip_start, camera.clip_end = 1e-3, 1e6
    thing = bpy.data.objects.new("initfree", camera)
    scene.collection.objects.link(thing)
    scene.camera = thing
    layer = scene.view_layers[0]
    for number, image in enumerate(job["images"]):
        # COLMAP's camera looks along +z with y down, Blender's along -z with y up.
        world = np.array(image["camera_to_world"]) @ np.diag([1.0, -1.0, -1.0, 1.0])
        thing.matrix_world = world.T.tolist()
        set_lens(camera, image["lens"], job["size"], snap=False)
        layer.use_pass_position = False
        scene.cycles.samples, scene.cycles.use_denoising = job["samples"], False
        scene.cycles.max_bounces = 4
        scene.render.image_settings.file_format = "PNG"
        scene.render.image_settings.color_mode = "RGB"
        scene.render.filepath = os.path.join(folder, f"{number}.png")
        bpy.ops.render.render(write_still=True)
        set_lens(camera, image["lens"], job["size"], snap=True)
        layer.use_pass_position = True
        scene.cycles.samples, scene.cycles.max_bounces = 1, 0
        scene.render.image_settings.file_format = "OPEN_EXR_MULTILAYER"
        scene.render.image_settings.color_depth = "32"
        scene.render.filepath = os.path.join(folder, f"{number}.exr")
        bpy.ops.render.render(write_still=True)
        print(f"initfree: image {number + 1}", flush=True)


def main(folder: str) -> None:
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
        job = json.load(file)
    if job["kind"] == "read":
        open_blend(job["blend"])
        if job["object"]:
            np.savez(os.path.join(folder, "path.npz"), **path_of(job["object"], job["cameras"]))
        else:
            vertices, faces, colors = evaluated_meshes(bpy.context.evaluated_depsgraph_get())
            np.savez(os.path.join(folder, "scene.npz"), vertices=vertices, faces=faces, colors=colors)
    else:
        render(job, folder)


if __name__ == "__main__":
    main(sys.argv[1])
