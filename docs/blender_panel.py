"""The pictures of docs/blender.md: `python docs/pictures.py blender-panel` runs this in a window of Blender 4.2 or newer.

Arguments after --: the extension's zip, the command initfree, a folder to work in. Every button is pressed as a user presses
it, so that jobs run beside the window; panel.png and result.png are the window after Spawn and after Load.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import bpy

ZIP, COMMAND, FOLDER = sys.argv[sys.argv.index("--") + 1 :]
TAB = 940, 246
"""where the panel's tab is, in a window of 1150 x 900"""
CLICK = f"sleep 1; xdotool mousemove 900 {TAB[1]}; sleep 1; xdotool mousemove {TAB[0]} {TAB[1]}; sleep 1; " + (
    "xdotool mousedown 1; sleep 0.5; xdotool mouseup 1; sleep 1; xdotool mousemove 300 700"
)


def view() -> bpy.types.Area:
    return next(area for area in bpy.context.window.screen.areas if area.type == "VIEW_3D")


def pressed(operator: Callable[..., object], **arguments: object) -> Iterator[None]:
    """Press a button and wait until its job is done."""
    with bpy.context.temp_override(window=bpy.context.window_manager.windows[0], area=view()):
        operator("INVOKE_DEFAULT", **arguments)
    yield
    while bpy.ops.initfree.cancel.poll():
        print(bpy.context.scene.initfree.status, flush=True)
        yield
    print(bpy.context.scene.initfree.figures, flush=True)


def wait() -> Iterator[None]:
    for _ in range(16):
        yield


def shot(name: str) -> Iterator[None]:
    yield from wait()
    subprocess.run(["import", "-window", "root", Path(FOLDER) / name], check=True)


def scene() -> None:
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    for colour, add in (
        ((0.1, 0.4, 0.9), lambda: bpy.ops.mesh.primitive_uv_sphere_add(radius=2, segments=64, ring_count=32)),
        ((0.35, 0.6, 0.25), lambda: bpy.ops.mesh.primitive_plane_add(size=12, location=(0, 0, -2))),
        ((0.9, 0.35, 0.1), lambda: bpy.ops.mesh.primitive_monkey_add(size=3, location=(0, 0, 2.5))),
    ):
        add()
        material = bpy.data.materials.new("paint")
        material.diffuse_color = (*colour, 1.0)
        bpy.context.object.data.materials.append(material)
    bpy.ops.object.empty_add(location=(0, 0, 0.5))
    s = bpy.context.scene.initfree
    s.look_at.kind, s.target = "point", bpy.context.object
    for height, radius in ((1, 9), (4, 8), (7, 6)):
        bpy.ops.curve.primitive_bezier_circle_add(radius=radius, location=(0, 0, height))
    bpy.ops.object.select_all(action="DESELECT")
    s.path.cameras, s.density.observation_share, s.degradation.noise = 10, 0.2, 0.5
    s.folder = str(Path(FOLDER) / "problem")


def show() -> None:
    space = view().spaces[0]
    space.show_region_ui = True
    space.region_3d.view_distance, space.region_3d.view_location = 29.0, (2.0, 2.0, 1.5)
    subprocess.Popen(CLICK, shell=True)


def session() -> Iterator[None]:
    yield
    scene()
    show()
    yield from wait()
    yield from pressed(bpy.ops.initfree.spawn)
    yield from shot("panel.png")
    bpy.context.scene.initfree.scene.landmarks = 8000
    yield from pressed(bpy.ops.initfree.export)
    yield from pressed(bpy.ops.initfree.solve)
    yield from pressed(bpy.ops.initfree.clear)
    yield from pressed(bpy.ops.initfree.load)
    for thing in bpy.context.scene.collection.children["Collection"].objects:
        thing.hide_set(True)
    yield from shot("result.png")
    bpy.ops.wm.quit_blender()


def step() -> float | None:
    try:
        return 0.5 if next(STEPS, STEPS) is None else None
    except Exception:
        bpy.ops.wm.quit_blender()
        raise


bpy.context.preferences.view.show_splash = False
bpy.ops.extensions.package_install_files(filepath=ZIP, repo="user_default", enable_on_install=True)
addon = next(name for name in map(str, bpy.context.preferences.addons.keys()) if name.endswith("initfree"))
bpy.context.preferences.addons[addon].preferences.command = COMMAND
STEPS = session()
bpy.app.timers.register(step, first_interval=1.0, persistent=True)
