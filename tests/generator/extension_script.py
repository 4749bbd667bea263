"""Runs in Blender's own Python: installs the extension as a user would, works with the panel, and says what came out.

Arguments: the extension's zip, a folder to work in, the command that runs the package.
"""

import json
import sys
import time
from pathlib import Path

import bpy
import numpy as np

ZIP, FOLDER, COMMAND = sys.argv[1], Path(sys.argv[2]), sys.argv[3]


def world(thing):
    return np.array(thing.matrix_world).tolist()


def refused(operator, **arguments):
    """What an operator complains of; it must not finish."""
    try:
        outcome = operator(**arguments)
    except RuntimeError as error:
        return str(error).strip().removeprefix("Error: ")
    raise SystemExit(f"{operator} ended with {outcome}")


def cameras():
    return [thing for thing in bpy.data.objects if thing.type == "CAMERA" and thing.get("initfree")]


said = {}
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.extensions.package_install_files(filepath=ZIP, repo="user_default", enable_on_install=True)
addon = next(name for name in map(str, bpy.context.preferences.addons.keys()) if name.endswith("initfree"))
bpy.context.preferences.addons[addon].preferences.command = COMMAND
s = bpy.context.scene.initfree
said["fields"] = {
    table: {name: getattr(group, name) for name, _ in group.bl_rna.properties.items() if name not in ("rna_type", "name")}
    for table in ("camera", "visibility", "density", "degradation", "adversity", "render")
    for group in [getattr(s, table)]
}

# Bad input, before there is anything.
s.folder = "//problem"
said["no curve"] = refused(bpy.ops.initfree.spawn)
bpy.ops.mesh.primitive_uv_sphere_add(radius=2, segments=24, ring_count=12)
ball = bpy.context.object
bpy.ops.mesh.primitive_plane_add(size=12, location=(0, 0, -2))
bpy.ops.object.empty_add(location=(0.5, -0.25, 0.125))
target = bpy.context.object
for z in (1, 3, 5):
    bpy.ops.curve.primitive_bezier_circle_add(radius=8, location=(0, 0, z))
s.look_at.kind = "point"
said["no target"] = refused(bpy.ops.initfree.spawn)
s.target = target
s.camera.params = "420, many"
said["no number"] = refused(bpy.ops.initfree.spawn)
s.camera.params = ""
said["never saved"] = refused(bpy.ops.initfree.export)
s.folder = str(FOLDER / "nothing")
said["nothing exported"] = refused(bpy.ops.initfree.solve)
said["nothing solved"] = refused(bpy.ops.initfree.load)

# colder's defaults: ten cameras a curve, a fifth of what each sees, TRACK_TO a target.
s.path.cameras = 10
s.density.observation_share = 0.2
s.density.min_observations = 2
s.scene.landmarks = 3000
s.camera.focal = 300.0
s.degradation.noise = 0.5
s.seed = 3
bpy.ops.initfree.spawn()
said["figures"] = s.figures
said["spawned"] = [world(one) for one in cameras()]
said["lens"] = cameras()[0].data.lens
tracked = []
for one in cameras():
    follower = bpy.data.objects.new("follower", None)
    bpy.context.scene.collection.objects.link(follower)
    follower.location = one.location
    track = follower.constraints.new("TRACK_TO")
    track.target, track.track_axis, track.up_axis = target, "TRACK_NEGATIVE_Z", "UP_Y"
    bpy.context.view_layer.update()
    tracked.append(world(follower.evaluated_get(bpy.context.evaluated_depsgraph_get())))
    bpy.data.objects.remove(follower)
said["tracked"] = tracked

# To files and back.
bpy.ops.wm.save_as_mainfile(filepath=str(FOLDER / "scene.blend"))
s.folder = "//panel"
bpy.ops.initfree.export()
bpy.ops.initfree.save_settings(filepath=str(FOLDER / "settings.toml"))
s.density.observation_share = 1.0
s.density.use_mean_observations = True
bpy.ops.initfree.load_settings(filepath=str(FOLDER / "settings.toml"))
said["loaded settings"] = [round(s.density.observation_share, 6), s.density.use_mean_observations, s.path.cameras]
said["no settings"] = refused(bpy.ops.initfree.load_settings, filepath=str(FOLDER / "absent.toml"))
for name, text in (
    ("wrong value", "[camera]\nfocal = 99.0\n[visibility]\nkind = 'x-ray'\n"),
    ("wrong name", "[camera]\nk9 = 1.0\n"),
):
    (FOLDER / "wrong.toml").write_text(text, encoding="utf-8")
    said[name] = refused(bpy.ops.initfree.load_settings, filepath=str(FOLDER / "wrong.toml"))
said["focal"] = s.camera.focal

# Solved, loaded over the truth, evaluated.
bpy.ops.initfree.solve()
said["verdict"] = s.figures
bpy.ops.initfree.load()
result = bpy.data.collections["initfree reconstruction"]
said["result"] = {one.name: world(one) for one in result.objects if one.type == "CAMERA"}
points, pyramids = result.objects["initfree landmarks"], result.objects["initfree pyramids"]
said["verdict's colour"] = list(pyramids.data.color_attributes["colour"].data[0].color_srgb)
# Four rods start at the corners of the image as Blender draws the camera, four end at its centre.
rods = np.array([vertex.co for vertex in pyramids.data.vertices]).reshape(-1, 8, 2, 3, 3).mean(axis=3)
first = next(one for one in result.objects if one.type == "CAMERA")
bpy.context.scene.render.resolution_x, bpy.context.scene.render.resolution_y = 640, 480
frame = np.array(
    [first.matrix_world @ (first.data.display_size * corner) for corner in first.data.view_frame(scene=bpy.context.scene)]
)
near = np.linalg.norm(rods[0, :4, 0][:, None] - frame[None], axis=2).min(axis=1)
said["pyramid off"] = float(max(near.max(), np.linalg.norm(rods[0, 4:, 1] - np.array(first.location), axis=1).max()))
said["display size"] = first.data.display_size
said["landmarks"] = len(points.data.vertices) / 4
said["valid"] = [not points.data.validate(), not pyramids.data.validate()]
bpy.ops.initfree.evaluate()
said["evaluation"] = bpy.data.texts["initfree evaluation"].as_string()
# A run that is cancelled leaves nothing.
package = sys.modules[f"{addon}.package"]
(FOLDER / "run").mkdir()
cancelled = FOLDER / "parent" / "cancelled"
run = package.Run([COMMAND, "solve", str(FOLDER / "panel" / "database.db"), "--output", str(cancelled)], FOLDER / "run")
while run.code is None and not (cancelled.parent.exists() and any(cancelled.parent.iterdir())):
    time.sleep(0.01)
said["cancelled at work"] = run.code is None
run.stop()
said["cancelled"] = [run.code != 0, cancelled.parent.exists()]
# What the panel made is no part of the next problem.
s.folder = "//again"
bpy.ops.initfree.export()

# Bad input, once there is something.
(FOLDER / "file").write_text("", encoding="utf-8")
s.folder = str(FOLDER / "file" / "below")
said["not writable"] = refused(bpy.ops.initfree.export)
(FOLDER / "empty").mkdir()
said["no model"] = refused(bpy.ops.initfree.load, directory=str(FOLDER / "empty"))
s.folder = "//panel"
bpy.context.preferences.addons[addon].preferences.command = str(FOLDER / "no-such-program")
said["no package"] = refused(bpy.ops.initfree.spawn)
bpy.context.preferences.addons[addon].preferences.command = COMMAND

# Presets; clear; the panels draw as far as they can without a window; off again.
bpy.ops.initfree.preset(name="set3")
said["preset"] = [len(bpy.data.collections["initfree curves"].objects), s.path.cameras, s.scene.landmarks]
s.scene.landmarks = 300
bpy.ops.initfree.spawn()
said["preset's figures"] = s.figures
said["preset's pixels"] = [bpy.context.scene.render.resolution_x, cameras()[0].data.lens]
s.preset_scene = False
bpy.ops.initfree.preset(name="paper7")
said["preset's target"] = s.look_at.kind
said["no preset"] = refused(bpy.ops.initfree.preset, name="set99")
bpy.ops.initfree.clear()
bpy.context.preferences.addons[addon].preferences.command = ""
bpy.context.preferences.addons[addon].preferences.source = str(FOLDER / "initfree-0-py3-none-any.whl")
bpy.ops.initfree.install()
said["installed"] = [Path(package.command()[0]).is_relative_to(FOLDER / "user"), package.command()[0]]
bpy.context.preferences.addons[addon].preferences.source = str(FOLDER / "absent.whl")
said["not installed"] = refused(bpy.ops.initfree.install)
said["cleared"] = len([one for one in cameras() if one.name not in said["result"]])
panels = [name for name in dir(bpy.types) if name.startswith("INITFREE_PT_")]
said["panels"] = {name: [getattr(bpy.types, name).bl_category, getattr(bpy.types, name).bl_space_type] for name in panels}
bpy.ops.preferences.addon_disable(module=addon)
said["gone"] = not hasattr(bpy.types.Scene, "initfree") and not [n for n in dir(bpy.types) if n.startswith("INITFREE_")]
(FOLDER / "said.json").write_text(json.dumps(said), encoding="utf-8")
