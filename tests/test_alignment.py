"""The world from measured things: what was measured comes out, and nothing else changes."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from models import to_reconstruction
from synthetic import ring

from initfree.commands.cli import main
from initfree.drawing.raster import Look, picture
from initfree.errors import InputError
from initfree.io.alignment import Alignment, align
from initfree.io.convert import convert
from initfree.viewer import read_scene

FRAMES, LENGTH = 150, 0.4


def exit_code(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(scope="module")
def array(tmp_path_factory):
    """A table of a wand of two lights, 0.4 long, and three marks on the ground z = -1, solved."""
    folder = tmp_path_factory.mktemp("wand")
    rng = np.random.default_rng(3)
    scene = ring(cameras=6, landmarks=10, shuffle=False)
    first = rng.uniform(-0.6, 0.6, (FRAMES, 3))
    along = rng.normal(size=(FRAMES, 3))
    second = first + LENGTH * along / np.linalg.norm(along, axis=1, keepdims=True)
    marks = {"north": (0.0, 0.7, -1.0), "south": (0.0, -0.7, -1.0), "east": (0.7, 0.0, -1.0)}
    X = [(f, name, xyz) for f in range(FRAMES) for name, xyz in (("tip", first[f]), ("tail", second[f]))]
    X += [(0, name, np.array(xyz)) for name, xyz in marks.items()]
    with (folder / "wand.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["camera", "frame", "point", "x", "y", "width", "height"])
        for k in range(6):
            for frame, name, xyz in X:
                x = scene.R[k] @ (xyz - scene.centres[k])
                u, v = 420.0 * x[:2] / x[2] + (320.0, 240.0) + 0.2 * rng.normal(size=2)
                writer.writerow([f"cam{k}", frame, name, u, v, 640, 480])
    assert exit_code("solve", folder / "wand.csv", "--output", folder / "out") == 0
    return folder, scene


def cameras(folder, *arguments):
    assert exit_code("convert", folder / "out", folder / "cameras.json", *arguments) == 0
    return json.loads((folder / "cameras.json").read_text())["cameras"]


def test_a_wand_gives_the_scale_and_marks_the_ground(array):
    folder, scene = array
    with (folder / "out" / "landmarks.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["point"] for row in rows} == {"tip", "tail", "north", "south", "east"}
    ground = ["--ground", "0/south", "0/east", "0/north"]
    found = cameras(folder, "--scale", LENGTH, "--scale-points", "/tip", "/tail", *ground, "--origin", "0/south")
    centres = np.array([found[f"cam{k}"]["centre"] for k in range(6)])
    # x from south to north, z up: the scene's y and z; y is then against its x.
    moved = scene.centres - (0.0, -0.7, -1.0)
    truth = np.column_stack([moved[:, 1], -moved[:, 0], moved[:, 2]])
    assert np.abs(centres - truth).max() < 0.03
    # Without an origin it lies on the ground below the cameras.
    centres = np.array([one["centre"] for one in cameras(folder, *ground).values()])
    assert np.allclose(centres[:, :2].mean(axis=0), 0.0, atol=1e-9)
    assert np.ptp(centres[:, 2]) < 0.02 * centres[:, 2].mean()


def test_one_option_says_it_all_and_solve_takes_it_too(array, tmp_path):
    """The same world by --align, and written by `solve` at once."""
    folder, _ = array
    scale = ["--scale", LENGTH, "--scale-points", "/tip", "/tail"]
    said = cameras(folder, *scale, "--ground", "0/south", "0/east", "0/north", "--origin", "0/south")
    align = ["--align", "ground=0/south,0/east,0/north", "origin=0/south"]
    assert cameras(folder, *scale, *align) == said
    assert exit_code("solve", folder / "wand.csv", "--output", tmp_path / "out", *scale, *align) == 0
    assert exit_code("convert", tmp_path / "out", tmp_path / "cameras.json") == 0
    solved = json.loads((tmp_path / "cameras.json").read_text())["cameras"]
    for name, one in said.items():
        assert np.allclose(solved[name]["centre"], one["centre"], atol=1e-6)
    told = [("--align", "up=cam0"), ("--align", "floor=cam0"), ("--origin", "9999/tip"), ("--scale", 2.0)]
    for words in told:
        assert exit_code("solve", folder / "wand.csv", "--output", tmp_path / "none", *words) == 2
    assert not (tmp_path / "none").exists()


def test_pictures_show_the_floor_and_the_names_of_the_cameras(array, tmp_path):
    """In the world of the measurements, in which the steps of the solve end too."""
    folder, truth = array
    out, ground = tmp_path / "out", ["--ground", "0/south", "0/east", "0/north"]
    scale = ["--scale", LENGTH, "--scale-points", "/tip", "/tail"]
    assert exit_code("solve", folder / "wand.csv", "--output", out, *scale, *ground, "--origin", "0/tip") == 0
    scene = read_scene(out)
    heights = truth.centres[:, 2] + 1.0  # above the ground z = -1
    order = [f"cam{k}" for k in range(6)]
    centres = scene.model.centres[[scene.model.images.index(name) for name in order]]
    assert scene.up == (0.0, 0.0, 1.0)
    assert scene.floor is not None
    assert np.allclose(centres[:, 2] - scene.floor, heights, atol=0.03)
    ends = np.array(scene.floor_lines())
    assert (ends[..., 2] == scene.floor).all()
    assert (ends[..., :2].min(axis=(0, 1)) <= centres[:, :2].min(axis=0)).all()
    assert (ends[..., :2].max(axis=(0, 1)) >= centres[:, :2].max(axis=0)).all()
    assert scene.frame_words == f"floor, squares of {scene.square:g} (unit of --scale)"
    assert scene.names_shown
    assert scene.steps is not None
    last = scene.steps.centres[-1][[scene.steps.names.index(name) for name in order]]
    assert np.allclose(last, centres, atol=0.02)
    assert scene.frame_words in (out / "summary.html").read_text()
    bare = replace(scene, floor=None, thing="image")
    assert (np.asarray(picture(scene, Look(300, 200))) != np.asarray(picture(bare, Look(300, 200)))).any()
    # Without measurements, none is drawn.
    assert read_scene(folder / "out").floor_lines() == []
    assert read_scene(folder / "out").up == (0.0, -1.0, 0.0)


def test_what_is_not_asked_for_stays(array):
    folder, _ = array
    before, after = cameras(folder), cameras(folder, "--scale", 2.0, "--scale-points", "cam0", "cam3")
    a, b = (np.array([found[f"cam{k}"]["centre"] for k in range(6)]) for found in (before, after))
    assert np.linalg.norm(b[0] - b[3]) == pytest.approx(2.0)
    assert np.allclose(a / np.linalg.norm(a[0] - a[3]), b / 2.0)
    assert np.allclose(before["cam1"]["R"], after["cam1"]["R"])
    upright = cameras(folder, "--up", "0/south", "cam0", "--origin", "cam2")
    assert np.allclose(upright["cam2"]["centre"], 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Alignment(scale=1.0), "belong together"),
        (Alignment(scale=-1.0, scale_points=("image001.jpg", "image002.jpg")), "--scale is -1"),
        (Alignment(scale=1.0, scale_points=("image001.jpg", "image001.jpg")), "the same place"),
        (Alignment(origin="nothing"), "'nothing' is no image"),
        (Alignment(origin="3/tip"), "landmarks.csv, which lists them, is missing"),
        (Alignment(ground=("image001.jpg", "image002.jpg")), "at least three"),
        (
            Alignment(ground=("image001.jpg", "image002.jpg", "image003.jpg"), up=("image001.jpg", "image002.jpg")),
            "one of them",
        ),
        (Alignment(up=("image002.jpg", "image002.jpg")), "the same place"),
        (Alignment(align=("up=image001.jpg",)), "1 places; expected 2"),
        (Alignment(align=("left=image001.jpg",)), "expected origin=PLACE"),
        (Alignment(align=("origin=image001.jpg", "origin=image002.jpg")), "each once"),
        (Alignment(origin="image001.jpg", align=("origin=image002.jpg",)), "say the same thing"),
    ],
)
def test_what_cannot_be_is_said(wanted, told):
    model = to_reconstruction(ring(cameras=4, landmarks=40, min_observations=3), "PINHOLE")
    with pytest.raises(InputError, match=told):
        align(model, wanted, {})


def test_a_table_has_no_scale(array):
    folder, _ = array
    with pytest.raises(InputError, match="no scale"):
        convert(folder / "out", folder / "table.csv", alignment=Alignment(origin="cam0"))


def without(path, rows):
    """The table's rows (after its head) for which `rows` holds."""
    head, *lines = path.read_text().splitlines()
    return "\n".join([head, *(line for line in lines if rows(line.split(",")))]) + "\n"


def test_cameras_that_cannot_be_placed_are_named(array, tmp_path, capsys):
    """One without detections, two that share nothing with the rest: named and left out; the others are solved."""
    folder, _ = array
    late = [f"cam{k}" for k in (4, 5)]
    table = without(
        folder / "wand.csv", lambda row: row[2] in ("tip", "tail") and ((int(row[1]) >= 120) == (row[0] in late))
    )
    blind = "".join(f"blind,{frame},tip,,,640,480\n" for frame in range(5))
    (tmp_path / "parts.csv").write_text(table + blind)
    assert exit_code("solve", tmp_path / "parts.csv", "--output", tmp_path / "out") == 0
    told = capsys.readouterr().out
    line = next(line for line in told.splitlines() if line.startswith("images left out: "))
    assert {"blind", *late} == set(line.removeprefix("images left out: ").split(", "))
    solved = json.loads((tmp_path / "out" / "run.json").read_text())["cameras"]
    assert list(solved) == ["cam0", "cam1", "cam2", "cam3"]


@pytest.mark.parametrize(
    ("head", "row", "told"),
    [
        (
            "camera,frame,point,x,y,confidence",
            "cam0,1,tip,3,4,1.5",
            "confidence is 1.5 in row 2; expected a number from 0 to 1",
        ),
        ("camera,frame,point,x,y,width,height", "cam0,1,tip,3,4,640,480\ncam0,2,tip,3,4,800,480", "has the widths"),
        ("camera,frame,point,x,y", "cam0,1,tip,,", "no observation that can be used"),
    ],
)
def test_bad_tables_end_with_a_sentence(tmp_path, capsys, head, row, told):
    (tmp_path / "bad.csv").write_text(f"{head}\n{row}\n")
    assert exit_code("solve", tmp_path / "bad.csv", "--output", tmp_path / "out") == 2
    error = capsys.readouterr().err.strip()
    assert told in error
    assert len(error.splitlines()) == 1


def test_a_camera_that_moved_is_named_with_its_frame(array, tmp_path, capsys):
    """cam2 is touched before frame 110: all that it sees is elsewhere from there on. Others, and reflections, are not it."""
    folder, _ = array
    head, *lines = (folder / "wand.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines]
    for n, row in enumerate(rows):
        touched, reflection = row[0] == "cam2" and int(row[1]) >= 110, row[0] == "cam4" and n % 12 == 0
        if touched or reflection:
            row[3] = str(float(row[3]) + 25.0)
    (tmp_path / "moved.csv").write_text("\n".join([head, *map(",".join, rows)]) + "\n")
    assert exit_code("solve", tmp_path / "moved.csv", "--output", tmp_path / "out") in (0, 3)
    cameras = json.loads((tmp_path / "out" / "run.json").read_text())["cameras"]
    assert {name: one["moved"] for name, one in cameras.items() if one["moved"] is not None} == {"cam2": "110"}
    assert cameras["cam4"]["wrong"] >= 20
    assert "cam2 moved, or fell out of step, at frame 110" in capsys.readouterr().out
