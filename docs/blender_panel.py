"""The picture of the panel in docs/blender.md: `python docs/pictures.py blender-panel` runs it in Blender's window.

Arguments after --: a folder with the extension's sources as the package initfree_panel, the command initfree, the picture.
"""

import subprocess
import sys

import bpy

FOLDER, COMMAND, PICTURE = sys.argv[sys.argv.index("--") + 1 :]
sys.path.insert(0, FOLDER)
import initfree_panel  # noqa: E402

addon = bpy.context.preferences.addons.new()
addon.module = "initfree_panel"
initfree_panel.register()
addon.preferences.command = COMMAND
bpy.context.preferences.view.show_splash = False
for thing in list(bpy.data.objects):
    bpy.data.objects.remove(thing)
bpy.ops.mesh.primitive_uv_sphere_add(radius=2)
bpy.ops.mesh.primitive_plane_add(size=12, location=(0, 0, -2))
bpy.ops.mesh.primitive_monkey_add(size=3, location=(0, 0, 2.5))
bpy.ops.object.empty_add(location=(0, 0, 0.5))
s = bpy.context.scene.initfree
s.look_at.kind, s.target = "point", bpy.context.object
for height, radius in ((1, 9), (4, 8), (7, 6)):
    bpy.ops.curve.primitive_bezier_circle_add(radius=radius, location=(0, 0, height))
s.path.cameras, s.scene.landmarks, s.density.observation_share = 10, 3000, 0.2
bpy.ops.initfree.spawn()
TAB = (936, 248)
"""of the panel, in a window of 1150 x 900"""
CLICK = f"sleep 1; xdotool mousemove 900 {TAB[1]}; sleep 1; xdotool mousemove {TAB[0]} {TAB[1]}; sleep 1; " + (
    "xdotool mousedown 1; sleep 0.5; xdotool mouseup 1; sleep 1; xdotool mousemove 300 700"
)


def look() -> None:
    for area in bpy.context.screen.areas:
        if area.type == "VIEW_3D":
            view = area.spaces[0]
            view.show_region_ui = True
            view.region_3d.view_distance, view.region_3d.view_location = 34.0, (0.0, 0.0, 2.0)
    subprocess.Popen(CLICK, shell=True)
    bpy.app.timers.register(shoot, first_interval=9.0)


def shoot() -> None:
    bpy.ops.screen.screenshot(filepath=PICTURE)
    bpy.ops.wm.quit_blender()


bpy.app.timers.register(look, first_interval=1.0)
