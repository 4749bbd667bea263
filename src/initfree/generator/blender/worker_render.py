# pyright: reportMissingImports=false
"""Runs inside Blender's own Python: pictures and depth by one of its engines."""

import json
import math
import os

import bpy
import numpy as np
from mathutils.bvhtree import BVHTree
from worker_camera import set_clipping, set_lens, set_pinhole
from worker_scene import evaluated_meshes, open_blend

EEVEE = "BLENDER_EEVEE_NEXT" if (4, 2) <= bpy.app.version < (5, 0) else "BLENDER_EEVEE"
SKY = (0.42, 0.60, 0.85)


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
    world.color = SKY
    background.inputs["Color"].default_value = (*SKY, 1.0)
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


def render(job: dict, folder: str) -> None:
    """All pictures, then all depths: NUMBER.png and NUMBER.exr."""
    if job["blend"]:
        open_blend(job["blend"])
    else:
        build_scene(folder)
    scene = bpy.context.scene
    prepare(scene, job)
    camera = bpy.data.cameras.new("initfree")
    camera.clip_start, camera.clip_end = 1e-3, 1e6
    thing = bpy.data.objects.new("initfree", camera)
    scene.collection.objects.link(thing)
    scene.camera = thing
    cycles = job["engine"] == "cycles"
    reach = [] if cycles else distances([np.array(image["camera_to_world"])[:3, 3] for image in job["images"]])
    for exact in (False, True):
        configure(scene, job, exact)
        for number, image in enumerate(job["images"]):
            # COLMAP's camera looks along +z with y down, Blender's along -z with y up.
            world = np.array(image["camera_to_world"]) @ np.diag([1.0, -1.0, -1.0, 1.0])
            thing.matrix_world = world.T.tolist()
            if cycles:
                set_lens(camera, image["lens"], job["size"], snap=exact)
            else:
                set_pinhole(scene, camera, image["lens"], job["size"])
                set_clipping(camera, image["lens"], job["size"], *reach[number])
            scene.render.filepath = os.path.join(folder, f"{number}.{'exr' if exact else 'png'}")
            bpy.ops.render.render(write_still=True)
            print(f"initfree: {'depth' if exact else 'picture'} {number + 1} of {len(job['images'])}", flush=True)


def distances(centres: list) -> list:
    """Of the nearest and the farthest point of the scene, from every centre."""
    meshes = evaluated_meshes()
    vertices, faces = meshes["vertices"], meshes["faces"]
    tree = BVHTree.FromPolygons(vertices.tolist(), faces.tolist())
    farthest = [np.linalg.norm(vertices - centre, axis=1).max() for centre in centres]
    return [(tree.find_nearest(c.tolist())[3], float(far)) for c, far in zip(centres, farthest, strict=True)]


def prepare(scene, job: dict) -> None:
    """What holds for every engine."""
    scene.render.threads_mode, scene.render.threads = "FIXED", job["threads"]
    scene.render.resolution_x, scene.render.resolution_y = job["size"]
    scene.render.pixel_aspect_x = scene.render.pixel_aspect_y = 1.0
    scene.render.resolution_percentage = 100
    scene.render.use_border = scene.render.use_compositing = scene.render.use_sequencer = False
    scene.view_settings.view_transform = "Standard"
    scene.cycles.device, scene.cycles.seed = "CPU", 0
    scene.cycles.use_denoising = False
    scene.display.shading.color_type = "MATERIAL" if job["blend"] else "VERTEX"


def configure(scene, job: dict, exact: bool) -> None:
    """Settings for pictures, or for depth: one sample through every pixel's centre.

    Cycles' depth comes from its position pass (its depth is not along the axis of a camera with a shader);
    EEVEE jitters its samples, so Workbench draws the depth for it.
    """
    settings, layer = scene.render.image_settings, scene.view_layers[0]
    settings.file_format = "OPEN_EXR_MULTILAYER" if exact else "PNG"
    if exact:
        settings.color_depth = "32"
    else:
        settings.color_mode = "RGB"
    if job["engine"] == "cycles":
        scene.render.engine = "CYCLES"
        layer.use_pass_position = exact
        scene.cycles.samples = 1 if exact else job["samples"]
        scene.cycles.max_bounces = 0 if exact else 4
    elif exact or job["engine"] == "workbench":
        scene.render.engine = "BLENDER_WORKBENCH"
        layer.use_pass_z = exact
        scene.display.render_aa = "OFF" if exact else "8"
    else:
        scene.render.engine = EEVEE
        scene.eevee.taa_render_samples = job["samples"]


def graphics(folder: str) -> None:
    """What draws for Workbench and EEVEE; without a graphics context Blender aborts here."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    scene.collection.objects.link(scene.camera)
    scene.render.engine = "BLENDER_WORKBENCH"
    scene.render.resolution_x = scene.render.resolution_y = 8
    bpy.ops.render.render()
    import gpu

    found = {"renderer": gpu.platform.renderer_get(), "software": gpu.platform.device_type_get() == "SOFTWARE"}
    with open(os.path.join(folder, "graphics.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)
