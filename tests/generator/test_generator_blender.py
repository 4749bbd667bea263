"""Blender: runs where `initfree blender setup` was done, and is skipped by name where it was not."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from initfree.errors import InputError
from initfree.generator import Config, generate, write
from initfree.generator.blender import client, rendering
from initfree.generator.blender.rendering import lens, render_all
from initfree.generator.cameras import intrinsics
from initfree.generator.config import Blend, BlenderPath, Camera, LookAt, Render
from initfree.generator.render import render
from initfree.generator.visibility import RayCaster

pytestmark = pytest.mark.slow

needs_blender = pytest.mark.skipif(not client.installed(), reason="Blender's Python module bpy is not set up (make blender)")

SCENE = """
import math, sys, bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.mesh.primitive_uv_sphere_add(radius=2, segments=16, ring_count=8)
ball = bpy.context.object
smooth = ball.modifiers.new("smooth", "SUBSURF")
smooth.levels, smooth.render_levels = 0, 2
ball.data.materials.append(bpy.data.materials.new("red"))
ball.data.materials[0].diffuse_color = (1, 0, 0, 1)
bpy.ops.mesh.primitive_plane_add(size=12, location=(0, 0, -2))
bpy.ops.object.light_add(type="SUN", location=(0, 0, 20))
bpy.ops.curve.primitive_bezier_circle_add(radius=8, location=(0, 0, 3))
bpy.context.object.name = "Path"
camera = bpy.data.objects.new("Flight", bpy.data.cameras.new("Flight"))
bpy.context.scene.collection.objects.link(camera)
bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 21
for frame in (1, 21):
    camera.location = (frame - 11, -9, 0)
    camera.rotation_euler = (math.pi / 2, 0, 0)
    camera.keyframe_insert("location", frame=frame)
    camera.keyframe_insert("rotation_euler", frame=frame)
bpy.ops.wm.save_as_mainfile(filepath=sys.argv[1])
"""


@pytest.fixture(scope="module")
def blend_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("blend") / "scene.blend"
    script = path.with_suffix(".py")
    script.write_text(SCENE)
    subprocess.run([client._python(), script, path], check=True, capture_output=True)
    return path


CENTRE = (80.0, 82.0, 79.0, 61.0)
LENSES = [
    Camera(focal=80.0),
    Camera(focal=80.0, k1=-0.15),
    Camera("OPENCV", params=(*CENTRE, -0.1, 0.02, 0.003, -0.002)),
    Camera("FULL_OPENCV", params=(*CENTRE, -0.1, 0.02, 0.003, -0.002, 0.001, 0.05, 0.02, 0.001)),
    Camera("RADIAL_FISHEYE", params=(80.0, 79.0, 61.0, -0.05, 0.01)),
    Camera("OPENCV_FISHEYE", params=(*CENTRE, -0.05, 0.01, -0.003, 0.001)),
    Camera("THIN_PRISM_FISHEYE", params=(*CENTRE, -0.05, 0.01, 0.003, -0.002, -0.003, 0.001, 0.004, -0.003)),
]


def hall(*cameras, engine="cycles"):
    """Fourteen small images inside the hall, taken with these cameras in turn."""
    options = {"cameras": 14, "points": 300, "width": 160, "height": 120, "focal": 80.0}
    dataset = generate("set7", seed=0, backend="blender", engine=engine, samples=1, **options)
    made = [intrinsics(replace(camera, width=160, height=120), np.zeros(1), 0)[0] for camera in cameras]
    return replace(dataset, cameras=made, camera_of_image=np.arange(14) % len(made))


def shares_that_agree(dataset):
    """By camera: share of pixels whose depth is the ray caster's within 1e-4, or where both see nothing."""
    caster = RayCaster(dataset.surface)
    agree = [[] for _ in dataset.cameras]
    for number, theirs in enumerate(render_all(dataset)):
        which = dataset.camera_of_image[number]
        ours = render(dataset.surface, caster, dataset.cameras[which], dataset.poses, number).depth
        both_miss = (ours == 0) & (theirs.depth == 0)
        agree[which].append(both_miss | (np.abs(theirs.depth - ours) <= 1e-4 * ours))
        assert theirs.image.std() > 5
        assert (ours > 0).mean() > 0.3
    return np.mean(agree, axis=(1, 2, 3))


def graphics_or_skip():
    try:
        return client.graphics()
    except InputError as error:
        pytest.skip(str(error))


@needs_blender
def test_depth_agrees_between_the_backends_for_every_lens():
    assert (shares_that_agree(hall(*LENSES)) >= 0.999).all()


@needs_blender
def test_workbenchs_depth_agrees():
    graphics_or_skip()
    dataset = hall(Camera(focal=80.0), Camera("PINHOLE", params=(74.0, 87.0, 91.0, 51.0)), engine="workbench")
    assert (shares_that_agree(dataset) >= 0.999).all()


@needs_blender
def test_eevee_renders_with_a_gpu_and_is_refused_without(tmp_path):
    found = graphics_or_skip()
    dataset = hall(Camera(focal=80.0), engine="eevee")
    if not found["software"]:
        assert shares_that_agree(dataset).min() >= 0.999
        return
    with pytest.raises(InputError, match=f"EEVEE needs a GPU, and here {re.escape(found['renderer'])}.*engine = cycles"):
        write(dataset, tmp_path / "out", database=False, figures=False, render=True)
    assert not (tmp_path / "out").exists()


@needs_blender
@pytest.mark.skipif(sys.platform != "linux", reason="takes OpenGL away as Mesa's and glvnd's loaders allow it")
def test_without_opengl_blenders_abort_becomes_an_error(monkeypatch, tmp_path):
    for name in ("LIBGL_DRIVERS_PATH", "GBM_BACKENDS_PATH", "__EGL_VENDOR_LIBRARY_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"OpenGL, which Blender cannot start .*libegl1.* engine = cycles"):
        write(hall(Camera(focal=80.0), engine="workbench"), tmp_path / "out", database=False, figures=False, render=True)
    assert not (tmp_path / "out").exists()


@needs_blender
def test_a_blend_files_meshes_curves_and_cameras(blend_file):
    scene = Blend("blend", blend_file, landmarks=200)
    look = LookAt(kind="point", point=(0.0, 0.0, 0.0))
    ring = generate(Config("b", scene, trajectory=BlenderPath("blender", "Path", 12, look_at=look)), seed=0)
    assert np.allclose(np.linalg.norm(ring.poses.centres[:, :2], axis=1), 8, atol=0.02)
    # The subdivided ball, not the 16 x 8 one of the file: modifiers are evaluated as they render.
    assert len(ring.surface.faces) > 1500
    ball = np.linalg.norm(ring.landmarks, axis=1) < 2.01
    assert ball.any()
    assert (~ball).any()
    assert (ring.colors[ball & (ring.landmarks[:, 2] > -1.5)] == [255, 0, 0]).all()
    corners = generate(
        Config("b", replace(scene, sampling="vertices"), trajectory=BlenderPath("blender", "Path", 12, look_at=look)), seed=0
    )
    assert np.isin(corners.landmarks, corners.surface.vertices).all()
    flight = generate(Config("b", scene, trajectory=BlenderPath("blender", "Flight", 11)), seed=0)
    assert np.allclose(flight.poses.centres[[0, -1]], [[-10, -9, 0], [10, -9, 0]], atol=1e-4)
    assert np.allclose(flight.poses.rotations, [[1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-6)
    with pytest.raises(InputError, match="no curve or camera named Nowhere; the file has: Flight, Path"):
        generate(Config("b", scene, trajectory=BlenderPath("blender", "Nowhere")))


@needs_blender
@pytest.mark.parametrize("engine", ["cycles", "workbench"])
def test_a_blend_file_renders_as_it_is_ray_cast(blend_file, engine):
    if engine == "workbench":
        graphics_or_skip()
    config = Config(
        "b",
        Blend("blend", blend_file, landmarks=50),
        trajectory=BlenderPath("blender", "Path", 6, look_at=LookAt(kind="point", point=(0.0, 0.0, 0.0))),
        camera=Camera(width=160, height=120, focal=120.0),
        render=Render("blender", engine, samples=1),
    )
    assert shares_that_agree(generate(config)).min() >= 0.999


@needs_blender
def test_the_backend_writes_images(tmp_path):
    options = {"cameras": 12, "points": 300, "width": 80, "height": 60, "focal": 40.0}
    dataset = generate("set7", seed=0, backend="blender", samples=2, **options)
    write(dataset, tmp_path / "out", database=False, figures=False, render=True)
    assert json.loads((tmp_path / "out" / "dataset.json").read_text())["versions"]["bpy"] == client.version()
    assert len(list((tmp_path / "out" / "images").glob("*.png"))) == 12
    assert len(list((tmp_path / "out" / "depth").glob("*.exr"))) == 12


def test_without_blender_the_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("INITFREE_BLENDER", str(tmp_path / "nowhere"))
    dataset = generate("set7", seed=0, points=300, backend="blender")
    with pytest.raises(InputError, match="initfree blender setup"):
        write(dataset, tmp_path / "out", database=False, figures=False, render=True)
    assert not (tmp_path / "out").exists()
    (tmp_path / "empty.blend").write_bytes(b"")
    with pytest.raises(InputError, match="initfree blender setup"):
        generate(Config("b", Blend("blend", tmp_path / "empty.blend"), trajectory=BlenderPath("blender", "Path")))


def test_models_that_blender_cannot_render_are_refused():
    division = generate("set7", seed=0, points=300, model="DIVISION").cameras[0]
    with pytest.raises(InputError, match="THIN_PRISM_FISHEYE, not DIVISION; expected backend = raycast"):
        lens(division)


@pytest.mark.parametrize("engine", ["workbench", "eevee"])
def test_engines_that_draw_refuse_distortion(monkeypatch, engine):
    monkeypatch.setattr(rendering, "require", lambda: None)
    for camera in (Camera(focal=80.0, k1=-0.15), Camera("FISHEYE", focal=80.0)):
        with pytest.raises(InputError, match=rf"{engine} draws pinhole cameras, not {camera.model} .*engine = cycles"):
            rendering.check(hall(camera, engine=engine))


def test_software_is_no_gpu(monkeypatch):
    monkeypatch.setattr(rendering, "require", lambda: None)
    monkeypatch.setattr(rendering, "graphics", lambda: {"renderer": "llvmpipe", "software": True})
    rendering.check(hall(Camera(focal=80.0), engine="workbench"))
    with pytest.raises(InputError, match="EEVEE needs a GPU, and here llvmpipe draws in software"):
        rendering.check(hall(Camera(focal=80.0), engine="eevee"))
    monkeypatch.setattr(rendering, "graphics", lambda: {"renderer": "a card", "software": False})
    rendering.check(hall(Camera(focal=80.0), engine="eevee"))
