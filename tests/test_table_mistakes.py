"""Mistakes in a table of detections: each is said in one sentence, before the solve where it can be, after it where not."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commanding import run, write_ring

import initfree

Row = tuple[str, str, str, float, float, str, str]
HEAD = ("camera", "frame", "point", "x", "y", "width", "height")


def detections(frames: int = 120) -> list[Row]:
    """Six cameras around a volume, two lights 0.4 apart, as in examples/05_array.py; the cameras are rolled."""
    rng, rows = np.random.default_rng(0), []
    # A path that the eye could follow: lights move on from frame to frame.
    steps = np.linspace(0.0, 12.0, frames)
    tip = 0.8 * np.column_stack([np.sin(steps), np.sin(1.7 * steps + 1.0), np.sin(2.3 * steps)])
    along = np.column_stack([np.cos(0.9 * steps), np.sin(1.3 * steps), np.cos(0.7 * steps + 2.0)])
    tail = tip + 0.4 * along / np.linalg.norm(along, axis=1, keepdims=True)
    for k, angle in enumerate(np.linspace(0.0, 2.0 * np.pi, 6, endpoint=False)):
        centre = np.array([4.0 * np.cos(angle), 4.0 * np.sin(angle), 1.5 + 0.3 * (k % 2)])
        z, x = -centre / np.linalg.norm(centre), np.array([-np.sin(angle), np.cos(angle), 0.0])
        for name, X in (("tip", tip), ("tail", tail)):
            p = (X - centre) @ np.stack([x, np.cross(z, x), z]).T
            xy = 900.0 * p[:, :2] / p[:, 2:] + (640.0, 360.0) + rng.normal(scale=0.3, size=(frames, 2))
            rows += [(f"cam{k}", str(f), name, u, v, "1280", "720") for f, (u, v) in enumerate(xy.tolist())]
    return rows


ROWS = detections()


def write(path: Path, rows: list[Row], without: tuple[str, ...] = (), separator: str = ",", comma: bool = False) -> Path:
    kept = [k for k, name in enumerate(HEAD) if name not in without]

    def text(value: object) -> str:
        said = f"{value:.3f}" if isinstance(value, float) else str(value)
        return said.replace(".", ",") if comma else said

    lines = [separator.join(HEAD[k] for k in kept), *(separator.join(text(row[k]) for k in kept) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def changed(change: Callable[[Row], Row], camera: str | None = None) -> list[Row]:
    return [change(row) if camera in (None, row[0]) else row for row in ROWS]


def exchanged(r: Row) -> Row:
    return (*r[:3], r[4], r[3], *r[5:])


BEFORE = {
    "x and y exchanged": (changed(exchanged), (), "are the columns x and y exchanged, or width and height?"),
    "in one camera": (changed(exchanged, "cam3"), (), "of camera 'cam3' lie outside its image of 1280 x 720 pixels"),
    "half-size video": (changed(lambda r: (*r[:3], r[3] / 2, r[4] / 2, *r[5:])), (), "the first quarter of their images"),
    "0 to 1": (changed(lambda r: (*r[:3], r[3] / 1280, r[4] / 720, *r[5:])), (), "multiply x by the width"),
    "0 to 1, no size": (
        changed(lambda r: (*r[:3], r[3] / 1280, r[4] / 720, *r[5:])),
        ("width", "height"),
        "expected pixels",
    ),
    "two of one name": (changed(lambda r: ("cam0", *r[1:]), "cam1"), (), "have two cameras one name?"),
    "no point": (ROWS, ("point",), "or is a column point missing?"),
}


@pytest.mark.parametrize("mistake", BEFORE)
def test_what_can_be_seen_before_the_solve_is_refused(tmp_path, mistake, capsys):
    rows, without, says = BEFORE[mistake]
    table = write(tmp_path / "table.csv", rows, without)
    assert run("solve", table, "-o", tmp_path / "out") == 2
    err = capsys.readouterr().err
    assert says in err
    assert str(table) in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("separator", "comma"), [(";", False), (";", True), ("\t", False), ("\t", True)])
def test_spreadsheets_of_any_country(tmp_path, separator, comma):
    ours = initfree.load(write(tmp_path / "ours.csv", ROWS))
    theirs = initfree.load(write(tmp_path / "theirs.csv", ROWS, separator=separator, comma=comma))
    assert np.array_equal(ours.m, theirs.m)
    assert ours.names == theirs.names


def test_a_few_repeats_are_said_and_left_out(tmp_path):
    problem = initfree.load(write(tmp_path / "table.csv", [*ROWS, ROWS[5], ROWS[9]]))
    (note,) = problem.observations.notes
    assert note == "2 repeated detections were left out: camera 'cam0' has frame 5 point tip twice, in rows 7 and 1442"


def test_a_few_detections_outside_of_the_image_are_no_mistake(tmp_path):
    far = ("cam0", "999", "tip", 1500.0, 100.0, "1280", "720")
    assert initfree.load(write(tmp_path / "table.csv", [*ROWS, far])).observations.notes == ()


def test_a_guessed_size_is_a_note_and_in_the_deviations(tmp_path, capsys):
    full = initfree.solve(initfree.load(write(tmp_path / "full.csv", ROWS)))
    guessed = initfree.solve(initfree.load(write(tmp_path / "guessed.csv", ROWS, ("width", "height"))))
    assert "are a guess from where the detections lie" in guessed.problem.observations.notes[0]
    assert not full.problem.observations.notes
    assert np.median(full.uncertainty.rotation) < 0.1
    # The principal point may be 2.5% of the width from the middle of a guessed image, seen over a focal length of 900 px.
    assert np.median(guessed.uncertainty.rotation) == pytest.approx(np.degrees(0.025 * 1280 / 900), rel=0.3)
    assert guessed.cameras[0].rotation_degrees > 1.0


AFTER = {
    "x and y are exchanged": lambda r: (*r[:3], r[4] + 280.0, r[3] - 280.0, *r[5:]),
    "y is counted from the other side": lambda r: (*r[:4], 720.0 - r[4], *r[5:]),
    "tail and tip are exchanged": lambda r: (*r[:2], {"tip": "tail", "tail": "tip"}[r[2]], *r[3:]),
    "it has 2 times the frame rate of the others": lambda r: (r[0], str(2 * int(r[1])), *r[2:]),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", AFTER)
def test_what_only_a_solve_shows_is_tried_and_said(tmp_path, mistake, capsys):
    """In one camera of six: the sentence says what to mend."""
    change = AFTER[mistake]
    rows = changed(change, "cam3")
    if mistake.startswith("x and y"):
        # A square image, in which nothing lies outside.
        rows = [(*r[:3], r[3], r[4] + (280.0 if r[0] != "cam3" else 0.0), "1280", "1280") for r in ROWS if r[0] != "cam3"]
        rows += [(*r[:3], r[4] + 280.0, r[3], "1280", "1280") for r in ROWS if r[0] == "cam3"]
    run("solve", write(tmp_path / "table.csv", rows), "-o", tmp_path / "out")
    printed = capsys.readouterr().out
    verdict = next(line for line in printed.splitlines() if line.startswith(("accepted", "not accepted")))
    assert f"cam3 fits if {mistake}" in verdict


def test_places_of_the_points_and_a_known_length_frame_by_frame(tmp_path, capsys):
    out, scale = tmp_path / "out", ("--scale", 0.4, "--scale-points", "/tip", "/tail")
    assert run("solve", write(tmp_path / "table.csv", ROWS), "-o", out, *scale) == 0
    printed = capsys.readouterr().out
    assert "/tip to /tail is 0.4; single frames differ by" in printed
    assert "centre, unit of --scale" in printed
    twice = tmp_path / "twice"
    assert run("solve", tmp_path / "table.csv", "-o", twice, "--scale", 0.8, "--scale-points", "/tip", "/tail") == 0
    capsys.readouterr()
    extents = [
        json.loads((one / "run.json").read_text())["uncertainty"]["scene_extent_in_unit_of_scale"] for one in (out, twice)
    ]
    assert extents[1] == pytest.approx(2.0 * extents[0])
    # The cameras stand about four metres from the middle.
    assert 1.0 < extents[0] < 10.0
    with (out / "points.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 240
    assert [row["frame"] for row in rows[:4]] == ["0", "0", "1", "1"]
    places = {(row["frame"], row["point"]): np.array([float(row[key]) for key in "xyz"]) for row in rows}
    # 0.3 px at 4 m and 900 px is 1.3 mm for a ray, less for six.
    assert 2e-4 < np.median([float(row["sigma"]) for row in rows]) < 3e-3
    with (out / "lengths.csv").open() as stream:
        lengths = list(csv.DictReader(stream))
    assert len(lengths) == 120
    for row in lengths[:5]:
        length = np.linalg.norm(places[row["frame"], "tip"] - places[row["frame"], "tail"])
        assert float(row["length"]) == pytest.approx(length, abs=1e-6)
        assert float(row["residual"]) == pytest.approx(length - 0.4, abs=1e-6)
    assert run("convert", out, tmp_path / "points.csv", "--scale", 400, "--scale-points", "/tip", "/tail") == 0
    with (tmp_path / "points.csv").open() as stream:
        larger = list(csv.DictReader(stream))
    assert float(larger[7]["sigma"]) == pytest.approx(1000 * float(rows[7]["sigma"]), rel=1e-4)


def test_points_need_an_array(tmp_path, capsys):
    (tmp_path / "model").mkdir()
    write_ring(tmp_path / "model")
    assert run("convert", tmp_path / "model", tmp_path / "points.csv") == 2
    assert "has no frames and points" in capsys.readouterr().err
