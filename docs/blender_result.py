"""The picture of a loaded result in docs/blender.md, by Cycles: `python docs/pictures.py blender-result` runs it with bpy.

Arguments: the extension's zip, the command initfree, a folder to work in, the picture.
"""

import math
import sys
from pathlib import Path

import bpy

ZIP, COMMAND, FOLDER, PICTURE = sys.argv[1:]
EDGES = ((0, 1, 2, 3, 0), (0, 4, 1), (2, 4, 3))
"""of a camera's pyramid: four corners of the image, and the centre"""


def pyramid(camera: bpy.types.Object, material: bpy.types.Material) -> None:
    """Cameras do not render: thin tubes along the edges of their pyramids do."""
    corners = [*(tuple(corner) for corner in camera.data.view_frame(scene=bpy.context.scene)), (0.0, 0.0, 0.0)]
    data = bpy.data.curves.new("pyramid", "CURVE")
    data.dimensions, data.bevel_depth = "3D", 0.025
    size = camera.data.display_size
    for path in EDGES:
        spline = data.splines.new("POLY")
        spline.points.add(len(path) - 1)
        spline.points.foreach_set("co", [value for k in path for value in (*(size * x for x in corners[k]), 1.0)])
    data.materials.append(material)
    thing = bpy.data.objects.new("pyramid", data)
    thing.matrix_world = camera.matrix_world
    bpy.context.scene.collection.objects.link(thing)


def glowing(name: str, colour: tuple[float, ...]) -> bpy.types.Material:
    made = bpy.data.materials.new(name)
    made.use_nodes = True
    nodes = made.node_tree.nodes
    nodes.clear()
    light, output = nodes.new("ShaderNodeEmission"), nodes.new("ShaderNodeOutputMaterial")
    light.inputs["Color"].default_value = colour
    made.node_tree.links.new(light.outputs[0], output.inputs["Surface"])
    return made


bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.extensions.package_install_files(filepath=ZIP, repo="user_default", enable_on_install=True)
addon = next(name for name in map(str, bpy.context.preferences.addons.keys()) if name.endswith("initfree"))
bpy.context.preferences.addons[addon].preferences.command = COMMAND
bpy.ops.mesh.primitive_monkey_add(size=3, location=(0, 0, 2.5))
bpy.context.object.color = (0.8, 0.4, 0.1, 1.0)
bpy.ops.mesh.primitive_uv_sphere_add(radius=2, segments=64, ring_count=32)
bpy.ops.mesh.primitive_plane_add(size=12, location=(0, 0, -2))
for thing, colour in zip(bpy.data.objects, ((0.9, 0.35, 0.1), (0.1, 0.4, 0.9), (0.35, 0.6, 0.25)), strict=True):
    material = bpy.data.materials.new("paint")
    material.diffuse_color = (*colour, 1.0)
    thing.data.materials.append(material)
scenery = list(bpy.data.objects)
bpy.ops.object.empty_add(location=(0, 0, 0.5))
s = bpy.context.scene.initfree
s.look_at.kind, s.target = "point", bpy.context.object
for height, radius in ((1, 9), (4, 8), (7, 6)):
    bpy.ops.curve.primitive_bezier_circle_add(radius=radius, location=(0, 0, height))
s.path.cameras, s.scene.landmarks, s.density.observation_share, s.degradation.noise = 10, 12000, 0.4, 0.5
s.folder = str(Path(FOLDER) / "problem")
for step in (bpy.ops.initfree.export, bpy.ops.initfree.solve, bpy.ops.initfree.load):
    step()
for thing in scenery:
    thing.hide_render = True
bpy.data.node_groups["initfree landmarks"].nodes["Mesh to Points"].inputs["Radius"].default_value = 0.05
green = glowing("accepted", (0.05, 0.45, 0.12, 1.0))
for thing in bpy.data.collections["initfree reconstruction"].objects:
    if thing.type == "CAMERA":
        pyramid(thing, green)
eye = bpy.data.objects.new("eye", bpy.data.cameras.new("eye"))
bpy.context.scene.collection.objects.link(eye)
eye.location, eye.rotation_euler = (0.0, -32.0, 21.0), (math.radians(60.0), 0.0, 0.0)
scene = bpy.context.scene
scene.camera = eye
scene.world = bpy.data.worlds.new("white")
scene.world.use_nodes = True
scene.world.node_tree.nodes["Background"].inputs["Color"].default_value = (1.0, 1.0, 1.0, 1.0)
scene.view_settings.view_transform = "Standard"
scene.render.engine, scene.cycles.samples = "CYCLES", 16
scene.render.resolution_x, scene.render.resolution_y = 1000, 600
scene.render.filepath = PICTURE
bpy.ops.render.render(write_still=True)
