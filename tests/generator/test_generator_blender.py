"""Blender: runs where `initfree blender setup` was done, and is skipped by name where it was not."""

import subprocess

import numpy as np
import pytest

from initfree.errors import InputError
from initfree.generator import Config, generate, write
from initfree.generator.blender import client
from initfree.generator.blender.rendering import lens, render_all
from initfree.generator.config import Blend, BlenderPath, LookAt
from initfree.generator.render import render
from initfree.generator.visibility import RayCaster

needs_blender = pytest.mark.skipif(not client.installed(), reason="Blender's Python module bpy is not set up (make blender)")

SCENE = """
import math, sys, bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.mesh.primitive_uv_sphere_add(radius=2, segments=16, ring_count=8)
ball = bpy.context.object
ball.modifiers.new("smooth", "SUBSURF").levels = 2
ball.data.materials.append(bpy.data.materials.new("red"))
ball.data.materials[0].diffuse_color = (1, 0, 0, 1)
bpy.ops.mesh.primitive_plane_add(size=12, location=(0, 0, -2))
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


@needs_blender
@pytest.mark.parametrize("k1", [0.0, -0.15])
def test_depth_agrees_between_the_backends(k1):
    dataset = generate("set7", seed=0, cameras=12, points=300, width=160, height=120, focal=80.0, k1=k1)
    caster = RayCaster(dataset.surface)
    agree = []
    for number, theirs in enumerate(render_all(dataset, samples=1)):
        ours = render(dataset.surface, caster, dataset.cameras[0], dataset.poses, number).depth
        both_miss = (ours == 0) & (theirs.depth == 0)
        agree.append(both_miss | (np.abs(theirs.depth - ours) <= 1e-4 * ours))
        assert theirs.image.std() > 5
    assert np.mean(agree) >= 0.999


@needs_blender
def test_a_blend_files_meshes_curves_and_cameras(blend_file):
    scene = Blend("blend", blend_file, landmarks=200)
    look = LookAt(kind="point", point=(0.0, 0.0, 0.0))
    ring = generate(Config("b", scene, trajectory=BlenderPath("blender", "Path", 12, look_at=look)), seed=0)
    assert np.allclose(np.linalg.norm(ring.poses.centres[:, :2], axis=1), 8, atol=0.02)
    # The subdivided ball, not the 16 x 8 one of the file: modifiers are evaluated.
    assert len(ring.surface.faces) > 1500
    ball = np.linalg.norm(ring.landmarks, axis=1) < 2.01
    assert ball.any()
    assert (~ball).any()
    assert (ring.colors[ball & (ring.landmarks[:, 2] > -1.5)] == [255, 0, 0]).all()
    flight = generate(Config("b", scene, trajectory=BlenderPath("blender", "Flight", 11)), seed=0)
    assert np.allclose(flight.poses.centres[[0, -1]], [[-10, -9, 0], [10, -9, 0]], atol=1e-4)
    assert np.allclose(flight.poses.rotations, [[1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-6)
    with pytest.raises(InputError, match="no curve or camera named Nowhere; the file has: Flight, Path"):
        generate(Config("b", scene, trajectory=BlenderPath("blender", "Nowhere")))


@needs_blender
def test_the_backend_writes_images(tmp_path):
    dataset = generate("set7", seed=0, cameras=12, points=300, width=80, height=60, focal=40.0)
    write(dataset, tmp_path / "out", database=False, figures=False, render=True, backend="blender")
    assert len(list((tmp_path / "out" / "images").glob("*.png"))) == 12
    assert len(list((tmp_path / "out" / "depth").glob("*.exr"))) == 12


def test_without_blender_the_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("INITFREE_BLENDER", str(tmp_path / "nowhere"))
    dataset = generate("set7", seed=0, points=300)
    with pytest.raises(InputError, match="initfree blender setup"):
        write(dataset, tmp_path / "out", database=False, figures=False, render=True, backend="blender")
    assert not (tmp_path / "out").exists()
    (tmp_path / "empty.blend").write_bytes(b"")
    with pytest.raises(InputError, match="initfree blender setup"):
        generate(Config("b", Blend("blend", tmp_path / "empty.blend"), trajectory=BlenderPath("blender", "Path")))


def test_models_that_blender_cannot_render_are_refused():
    fisheye = generate("set7", seed=0, points=300, model="OPENCV_FISHEYE").cameras[0]
    with pytest.raises(InputError, match="not OPENCV_FISHEYE; expected backend = raycast"):
        lens(fisheye)
