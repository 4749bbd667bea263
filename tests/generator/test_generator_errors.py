"""Bad input: one clear sentence, and nothing half-written."""

import numpy as np
import pytest
import trimesh
from commanding import run

from initfree.errors import InputError
from initfree.generator import Config, generate, load
from initfree.generator.config import Courthouse, LookAt, Mesh, PointCloud, Ring, Rings
from initfree.generator.existing import find_model

AROUND = Rings("rings", 12, (Ring(4.0, 2.0),), look_at=LookAt(kind="point", point=(0.0, 0.0, 0.0)))


@pytest.mark.parametrize("name", ["broken.ply", "broken.obj", "broken.glb", "broken.stl", "broken.what"])
def test_unreadable_meshes(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x00\x01 this is no mesh \xff" * 40)
    with pytest.raises(InputError, match=name):
        generate(Config("x", Mesh("mesh", tmp_path / name), trajectory=AROUND))


def test_absent_and_empty_scenes(tmp_path):
    with pytest.raises(InputError, match=r"no file .*absent\.ply"):
        generate(Config("x", Mesh("mesh", tmp_path / "absent.ply"), trajectory=AROUND))
    trimesh.PointCloud(np.random.default_rng(0).uniform(size=(50, 3))).export(tmp_path / "cloud.ply")
    with pytest.raises(InputError, match="no triangles"):
        generate(Config("x", Mesh("mesh", tmp_path / "cloud.ply"), trajectory=AROUND))
    flat = trimesh.Trimesh(np.zeros((3, 3)), [[0, 1, 2]], process=False)
    flat.export(tmp_path / "flat.stl")
    with pytest.raises(InputError, match=r"no area|no triangles"):
        generate(Config("x", Mesh("mesh", tmp_path / "flat.stl"), trajectory=AROUND))
    (tmp_path / "few.xyz").write_text("0 0 0\n1 1 1\n")
    with pytest.raises(InputError, match="has 2 points"):
        generate(Config("x", PointCloud("pointcloud", tmp_path / "few.xyz"), trajectory=AROUND))


def test_a_camera_inside_a_wall():
    # The side walls reach from x = 44.8 to x = 46, without windows between the storeys.
    trajectory = Rings("rings", 4, (Ring(45.4, 10.0),), look_at=LookAt())
    with pytest.raises(InputError, match=r"camera 0 at \(45\.40, 0\.00, 10\.00\) is inside a wall"):
        generate(Config("x", Courthouse(), trajectory=trajectory))


def test_no_landmark_seen_three_times():
    two = Rings("rings", 2, (Ring(110.0, 30.0),))
    with pytest.raises(InputError, match="no landmark is seen 3 times by the 2 cameras"):
        generate(Config("x", Courthouse(landmarks=50), trajectory=two))
    away = Rings("rings", 10, (Ring(110.0, 30.0),), look_at=LookAt(kind="away"))
    with pytest.raises(InputError, match="no landmark is seen 3 times"):
        generate(Config("x", Courthouse(landmarks=50), trajectory=away))


def test_a_camera_that_sees_nothing():
    lost = Rings("rings", 41, (Ring(110.0, 30.0), Ring(110.0, 3000.0)), look_at=LookAt(kind="point", point=(0, 0, 10)))
    with pytest.raises(InputError, match=r"camera \d+ sees 0 landmarks"):
        generate(Config("x", Courthouse(landmarks=50), trajectory=lost, visibility={"far": 1000.0}))


AERIAL = "[scene]\nkind = 'town'\n[trajectory]\nkind = 'grid'\ncameras = 9\nsize = [9, 9]\naltitude = 50\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[scene]\nkind = 'courthouse'\nlandmark = 3\n", r"scene\.courthouse\.landmark"),
        ("[scene]\nkind = 'castle'\n", "castle"),
        ("[scene]\nkind = 'courthouse'\n", "no trajectory"),
        ("[scene]\nkind = 'courthouse'\nlandmarks = -5\n", r"landmarks = -5.*greater than or equal to 1"),
        ("scene = [", "not a TOML file"),
        (AERIAL + "[render]\nbackend = 'blender'\nengine = 'radiance'\n", r"render\.engine = 'radiance'.*'workbench'"),
        (AERIAL + "[render]\nengine = 'workbench'\n", "engine = workbench is Blender's; expected backend = blender"),
    ],
)
def test_bad_configurations(tmp_path, text, words):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        load(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"noise": -1.0}, "degradation.noise = -1.0"),
        ({"outliers": 1.5}, "degradation.outliers = 1.5"),
        ({"cameras": 0}, "cameras = 0"),
        ({"model": "LENS"}, "camera.model = LENS: expected one of"),
        ({"model": "PINHOLE", "k1": 0.1}, "PINHOLE has no radial term"),
        ({"colour": 3}, "unknown parameter colour"),
        ({"seed": -1}, "seed = -1"),
        ({"engine": "eevee"}, "engine = eevee is Blender's; expected backend = blender"),
    ],
)
def test_bad_flags(flags, words):
    with pytest.raises(InputError, match=words):
        generate("set1", **flags)


def test_the_command_writes_nothing_on_bad_input(tmp_path, capsys):
    out = tmp_path / "out"
    (tmp_path / "file").write_text("")
    for arguments, words in (
        (("set1", "-o", out, "--density", 90.0), "impossible"),
        (("set1", "-o", out, "--cameras", 20), "expected a density of at most 6 (--density 6)"),
        (("set99", "-o", out), "no preset or file set99; expected a TOML file or one of"),
        (("set1",), "--output"),
        (("set1", "-o", out, "--engine", "eevee"), "--engine eevee is about images and depth maps; expected --render"),
        (("-o", out), "--list"),
        (("thin4", "-o", tmp_path / "file"), "is a file"),
    ):
        assert run("generate", *arguments) == 2
        assert words in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_the_command_writes_and_lists(tmp_path, capsys):
    assert run("generate", "thin4", "-o", tmp_path / "out", "--seed", 2, "--noise", 0.5, "--no-database") == 0
    assert "60 cameras, 344 landmarks" in " ".join(capsys.readouterr().out.split())
    assert (tmp_path / "out" / "noisy" / "0" / "images.bin").is_file()
    assert run("generate", "--list") == 0
    shown = capsys.readouterr().out
    assert all(f"set{k}" in shown for k in range(1, 9))


def test_set5_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("INITFREE_DATA", raising=False)
    with pytest.raises(InputError, match=r"South Building .* INITFREE_DATA"):
        generate("set5")
    monkeypatch.setenv("INITFREE_DATA", str(tmp_path))
    with pytest.raises(InputError, match="no COLMAP model of the South Building"):
        find_model(None)
    with pytest.raises(InputError, match="brings its own"):
        generate("set5", cameras=10)


def test_an_existing_model_is_taken_as_it_is_but_for_its_scale(monkeypatch, tmp_path):
    made = generate("thin3", seed=0, noise=1.0)
    folder = tmp_path / "south_building" / "sparse"
    folder.mkdir(parents=True)
    made.to_colmap(noisy=True).write(folder)
    monkeypatch.setenv("INITFREE_DATA", str(tmp_path))
    loaded = generate("set5", seed=0)
    assert loaded.names == made.names
    assert np.allclose(loaded.observations.pixel, made.noisy.pixel)
    assert np.array_equal(loaded.observations.landmark, made.observations.landmark)
    scale = 41.0 / np.sqrt(made.landmarks.var(axis=0).sum())  # the spread of the paper's sets
    assert np.allclose(loaded.landmarks, scale * made.landmarks)
    shuffled = generate("set5", seed=0, shuffle=True)
    assert shuffled.names != loaded.names
    assert sorted(shuffled.names) == sorted(loaded.names)
