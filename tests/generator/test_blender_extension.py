"""The extension for Blender: what it mirrors of the generator, and, with bpy, a user's way through it."""

import filecmp
import importlib.util
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import initfree
from initfree.errors import InputError
from initfree.generator.blender import archive, client
from initfree.generator.config import Config
from initfree.generator.presets import as_table, load

pytestmark = pytest.mark.slow

needs_blender = pytest.mark.skipif(not client.installed(), reason="Blender's Python module bpy is not set up (make blender)")
SCRIPT = Path(__file__).with_name("extension_script.py")


def source(name):
    """A module of the extension that needs no Blender."""
    spec = importlib.util.spec_from_file_location(name, archive.FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_archive_is_the_same_each_time_and_complete(tmp_path):
    for name in ("a.zip", "b.zip"):
        archive.write_archive(tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as made:
        assert {"__init__.py", "blender_manifest.toml", "schema.json", "presets.json"} <= set(made.namelist())
        manifest = tomllib.loads(made.read("blender_manifest.toml").decode())
        assert manifest["version"] == initfree.__version__
        assert json.loads(made.read("presets.json"))["set1"] == as_table(load("set1"))
    (tmp_path / "other.zip").write_bytes(b"not ours")
    with pytest.raises(InputError, match=r"other\.zip"):
        archive.write_archive(tmp_path / "other.zip")
    assert (tmp_path / "other.zip").read_bytes() == b"not ours"
    archive.write_archive(tmp_path / "other.zip", overwrite=True)
    assert zipfile.is_zipfile(tmp_path / "other.zip")


_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["name", "scene", "path", "k1"]), _VALUES))
def test_what_is_written_as_toml_is_read_as_it_was(table):
    assert tomllib.loads(source("toml_text").to_toml(table)) == table


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A user's way through the panel, in Blender's Python."""
    folder = tmp_path_factory.mktemp("panel")
    archive.write_archive(folder / "initfree.zip")
    command = folder / "command"
    package = Path(initfree.__file__).parents[1]
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{package}" exec "{sys.executable}" -m initfree "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    (folder / "user").mkdir()
    with zipfile.ZipFile(folder / "initfree-0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("initfree_stub.py", "def main():\n    print('stub')\n")
        wheel.writestr("initfree-0.dist-info/METADATA", "Metadata-Version: 2.1\nName: initfree\nVersion: 0\n")
        wheel.writestr("initfree-0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("initfree-0.dist-info/entry_points.txt", "[console_scripts]\ninitfree = initfree_stub:main\n")
        wheel.writestr("initfree-0.dist-info/RECORD", "")
    done = subprocess.run(
        [client._python(), SCRIPT, folder / "initfree.zip", folder, command],
        capture_output=True, text=True, check=False, env={**os.environ, "BLENDER_USER_RESOURCES": str(folder / "user")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return folder, json.loads((folder / "said.json").read_text(encoding="utf-8"))


@needs_blender
def test_the_panels_fields_are_the_generators(session):
    _, said = session
    expected = as_table(load("set1"))
    assert set(said["fields"]) <= set(expected)
    for table, fields in said["fields"].items():
        default = TypeAdapter(Config).json_schema()["$defs"][table.capitalize()]["properties"]
        shown = {name for name in fields if not name.startswith("use_")}
        assert shown == set(default)
        for name in shown:
            value = default[name]["default"]
            if value is None:
                assert not fields.get(f"use_{name}"), "absent by default"
            else:
                assert fields[name] == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value)


@needs_blender
def test_cameras_are_those_of_colder(session):
    """Ten a curve, evenly by length, turned as Blender's TRACK_TO turns them."""
    _, said = session
    spawned, tracked = np.array(said["spawned"]), np.array(said["tracked"])
    assert spawned.shape == (30, 4, 4)
    assert np.allclose(spawned, tracked, atol=2e-6)
    rings = spawned[:, :3, 3].reshape(3, 10, 3)
    assert np.allclose(rings[:, :, 2], [[1], [3], [5]], atol=1e-6)
    gaps = np.linalg.norm(np.roll(rings, -1, axis=1) - rings, axis=2)
    assert np.ptp(gaps) < 1e-2 * gaps.mean()
    assert said["lens"] == pytest.approx(36.0 * 300.0 / 640.0)
    assert said["figures"].startswith("30 cameras, ")


@needs_blender
def test_panel_and_command_write_the_same_bytes(session):
    folder, _ = session
    done = subprocess.run(
        [folder / "command", "generate", "scene.blend", "--seed", "3", "--output", "ours"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = [path.relative_to(folder / "ours").as_posix() for path in (folder / "ours").rglob("*") if path.is_file()]
    assert {"sparse/0/images.bin", "noisy/0/points3D.bin", "database.db", "dataset.json"} <= set(names)
    for other in ("panel", "again"):
        _, different, absent = filecmp.cmpfiles(folder / "ours", folder / other, names, shallow=False)
        assert (different, absent) == ([], []), other
    made = json.loads((folder / "ours" / "dataset.json").read_text(encoding="utf-8"))["config"]
    assert made["density"]["observation_share"] == 0.2
    assert [route["cameras"] for route in made["trajectory"]["groups"]] == [10, 10, 10]


@needs_blender
def test_settings_come_back(session):
    folder, said = session
    assert said["loaded settings"] == [0.2, False, 10]
    table = tomllib.loads((folder / "settings.toml").read_text(encoding="utf-8"))
    assert table["scene"]["path"] == str(folder / "scene.blend")
    assert table["trajectory"]["groups"][0]["look_at"]["point"] == [0.5, -0.25, 0.125]
    assert "x-ray" in said["wrong value"]
    assert said["wrong name"].startswith(
        f"{folder}/wrong.toml: camera.k9 is no field of the configuration; expected model, "
    )
    assert said["focal"] == 300.0, "all of a file or nothing"


@needs_blender
def test_presets_bring_their_scene(session):
    _, said = session
    preset = load("set3")
    assert said["preset"] == [3, 20, preset.scene.landmarks]
    assert said["preset's figures"].startswith("60 cameras, ")
    assert said["preset's pixels"] == [preset.camera.width, pytest.approx(36.0 * preset.camera.focal / preset.camera.width)]
    assert said["preset's target"] == "away"


@needs_blender
def test_the_package_is_installed_where_the_panel_finds_it(session):
    _, said = session
    inside, program = said["installed"]
    assert inside
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "stub\n"
    assert "absent.whl" in said["not installed"]


@needs_blender
def test_the_result_lies_over_the_truth(session):
    _, said = session
    assert said["verdict"].startswith("Accepted: ")
    result = np.array([said["result"][name] for name in sorted(said["result"])])
    truth = np.array(said["spawned"])
    assert np.linalg.norm(result[:, :3, 3] - truth[:, :3, 3], axis=1).max() < 0.05
    angle = np.einsum("nij,nij->n", result[:, :3, :3], truth[:, :3, :3])
    assert np.degrees(np.arccos(np.clip((angle - 1) / 2, -1, 1))).max() < 0.5
    red, green, blue, _ = said["verdict's colour"]
    assert green > max(red, blue)
    assert said["valid"] == [True, True]
    assert said["pyramid off"] < 0.05 * said["display size"]
    assert said["landmarks"] > 300
    assert "rotation AUC@5" in said["evaluation"]


@needs_blender
def test_what_a_user_can_do_wrong_is_one_sentence(session):
    folder, said = session
    assert said["no curve"] == "There is no curve in the scene; add one (Shift A, Curve, Bezier) for the cameras to go along"
    assert said["no target"].startswith("No target is chosen; choose an object")
    assert said["never saved"].startswith("The folder //problem is relative to the file, which was never saved")
    assert said["nothing exported"] == f"There is no {folder}/nothing/database.db; export the problem before you solve it"
    assert said["nothing solved"].startswith(f"There is no folder {folder}/nothing/solved")
    assert said["no settings"] == f"{folder}/absent.toml: No such file or directory"
    assert "file/below" in said["not writable"]
    assert said["no package"].startswith(f"There is no program {folder}/no-such-program")
    assert said["no number"].startswith("Params = 420, many: expected numbers")
    assert said["no model"].startswith(f"Load reconstruction: {folder}/empty holds no COLMAP model")
    assert said["no preset"].startswith("There is no preset 'set99'; expected one of ")
    assert not (folder / "nothing").exists()
    assert not (folder / "problem").exists()
    assert all("\n" not in said[name] for name in said if name.startswith(("no", "never")))


@needs_blender
def test_panels_are_in_the_sidebar_and_leave_with_the_extension(session):
    _, said = session
    assert all(place == ["initfree", "VIEW_3D"] for place in said["panels"].values())
    assert len(said["panels"]) == 8
    assert said["cleared"] == 0
    assert said["gone"]


@needs_blender
def test_a_cancelled_run_leaves_nothing(session):
    _, said = session
    assert said["cancelled at work"]
    assert said["cancelled"] == [True, False]


@needs_blender
def test_blenders_own_tool_finds_the_archive_valid(session):
    folder, _ = session
    tool = next(client.environment().glob("lib/python3*/site-packages/bpy/*/scripts/addons_core/bl_pkg/cli/blender_ext.py"))
    done = subprocess.run(
        [client._python(), tool, "validate", folder / "initfree.zip"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_blender
def test_a_file_without_settings_is_refused(tmp_path):
    script = "import bpy, sys; bpy.ops.wm.save_as_mainfile(filepath=sys.argv[1])"
    subprocess.run([client._python(), "-c", script, tmp_path / "plain.blend"], check=True, capture_output=True)
    with pytest.raises(InputError, match=r"plain\.blend was not saved with the panel initfree"):
        load(tmp_path / "plain.blend")
