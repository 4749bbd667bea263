"""From photographs to a database, and from there to a solve: rendered photographs, COLMAP's own features and matches."""

import json
import re
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pycolmap
import pytest
from commanding import run
from photographing import render

import initfree
from initfree import photographs
from initfree.errors import InputError
from initfree.io.load import load_model
from initfree.photographs import Matching, database, pairs
from initfree.photographs.files import photographs_in
from initfree.photographs.pairs import alike, chosen_pairs

pytestmark = pytest.mark.slow

FAST = Matching(features=500, image_size=320)
NONE = np.zeros((0, 128), dtype=np.uint8)
FLAGS = ("--features", 3000, "--image-size", 640)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory) -> Path:
    return render(tmp_path_factory.mktemp("rendered"))


@pytest.fixture(scope="module")
def solved(tmp_path_factory, rendered) -> Path:
    out = tmp_path_factory.mktemp("solved") / "out"
    assert run("solve", rendered / "images", "-o", out, *FLAGS) == 0
    return out


def tables(path: Path, *queries: str) -> list[list[tuple]]:
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
        return [connection.execute(query).fetchall() for query in queries]


def test_a_folder_of_photographs_becomes_a_model(rendered, solved):
    truth, found = load_model(rendered / "sparse" / "0"), load_model(solved / "sparse" / "0")
    metrics = initfree.evaluate(found, truth)
    assert metrics.cameras_recovered == 16
    assert metrics.rotation_auc5 > 85.0
    assert metrics.translation_auc5 > 85.0
    report = json.loads((solved / "run.json").read_text())
    assert report["input"] == str(solved / "database.db")
    # Points have the photographs' colours without a word more.
    model = pycolmap.Reconstruction(str(solved / "sparse" / "0"))
    assert len({tuple(point.color) for point in model.points3D.values()}) > 20


def test_photographs_of_one_size_share_a_camera(solved):
    cameras, frames = tables(solved / "database.db", "SELECT DISTINCT camera_id FROM images", "SELECT * FROM frames")
    assert len(cameras) == 1
    assert len(frames) == 16


def test_a_database_is_used_again_and_completed(tmp_path, rendered, monkeypatch):
    folder, out = tmp_path / "photos", tmp_path / "database.db"
    folder.mkdir()
    for k in range(9):
        shutil.copy(rendered / "images" / f"{k:04d}.png", folder)
    held = tmp_path / "held.png"
    shutil.move(folder / "0004.png", held)
    steps: list[tuple[str, int, int]] = []
    assert len(photographs.match(folder, out, FAST, on_progress=lambda *step: steps.append(step))) == 8
    assert steps[0] == ("features", 0, 8)
    assert steps[-1] == ("pairs", 28, 28)
    shutil.move(held, folder / "0004.png")
    steps.clear()
    assert len(photographs.match(folder, out, FAST, on_progress=lambda *step: steps.append(step))) == 9
    assert steps[0] == ("features", 8, 9)
    assert ("pairs", 28, 36) in steps
    monkeypatch.setattr(pycolmap, "extract_features", None)
    monkeypatch.setattr(pycolmap, "match_image_pairs", None)
    assert len(photographs.match(folder, out, FAST)) == 9
    (folder / "0004.png").unlink()
    assert "0004.png" not in photographs.match(folder, out, FAST)


def test_a_run_that_was_interrupted_continues(tmp_path, rendered, monkeypatch):
    monkeypatch.setattr(database, "_A_CORE", 2)

    def interrupt(what: str, done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    out, steps, names = tmp_path / "out" / "database.db", [], [f"{k:04d}.png" for k in range(6)]
    with pytest.raises(KeyboardInterrupt):
        photographs.match(rendered / "images", out, FAST, names=names, threads=2, on_progress=interrupt)
    found = photographs.match(
        rendered / "images", out, FAST, names=names, threads=2, on_progress=lambda *step: steps.append(step)
    )
    assert found == tuple(names)
    assert steps[0] == ("features", 4, 6)


def test_the_users_database_and_other_settings_are_refused(tmp_path, rendered, solved, capsys):
    out = tmp_path / "p"
    out.mkdir()
    (out / "database.db").write_bytes(b"the user's")
    assert run("solve", rendered / "images", "-o", out, *FLAGS) == 2
    assert f"{out / 'database.db'} would be replaced" in capsys.readouterr().err
    assert (out / "database.db").read_bytes() == b"the user's"
    before = (solved / "database.db").read_bytes()
    assert run("solve", rendered / "images", "-o", solved, "--features", 2000, "--image-size", 640) == 2
    assert "was made with features 3000, not 2000" in capsys.readouterr().err
    assert (solved / "database.db").read_bytes() == before


def test_names_with_spaces(tmp_path, rendered):
    folder = tmp_path / "my photos"
    folder.mkdir()
    for name in ("0000.png", "0001.png", "0002.png"):
        shutil.copy(rendered / "images" / name, folder / f"IMG {name} %20.png")
    found = photographs.match(folder, tmp_path / "database.db", FAST)
    assert found == tuple(f"IMG 000{k}.png %20.png" for k in range(3))
    ((verified,),) = tables(tmp_path / "database.db", "SELECT COUNT(*) FROM two_view_geometries")
    assert verified[0] == 3
    # A run that was killed while the names were others.
    with pycolmap.Database.open(tmp_path / "database.db") as opened:
        image = opened.read_image(1)
        image.name = image.name.replace("%", "%25").replace(" ", "%20")
        opened.update_image(image)
    assert photographs.match(folder, tmp_path / "database.db", FAST) == found


@pytest.fixture(scope="module")
def two_folders(tmp_path_factory, rendered) -> Path:
    folder = tmp_path_factory.mktemp("rig")
    for side, offset in (("left", 0), ("right", 1)):
        (folder / side).mkdir()
        for k in range(3):
            shutil.copy(rendered / "images" / f"{2 * k + offset:04d}.png", folder / side / f"{k}.png")
    (folder / "left" / "notes.txt").write_text("no photograph")
    return folder


@pytest.mark.parametrize(("cameras", "expected", "rigs", "frames"), [
    ("auto", 2, 2, 6), ("single", 1, 1, 6), ("folder", 2, 2, 6), ("image", 6, 6, 6), ("rig", 2, 1, 3),
])  # fmt: skip
def test_who_shares_a_camera(tmp_path, two_folders, cameras, expected, rigs, frames):
    out = tmp_path / "database.db"
    settings = Matching(features=300, image_size=200, cameras=cameras)
    for _ in range(2):
        assert len(photographs.match(two_folders, out, settings)) == 6
    ids, rig, frame = tables(out, "SELECT DISTINCT camera_id FROM images", "SELECT * FROM rigs", "SELECT * FROM frames")
    assert (len(ids), len(rig), len(frame)) == (expected, rigs, frames)


def test_masks_leave_out_what_is_black(tmp_path, rendered):
    names = ("0000.png", "0001.png", "0002.png")
    for name in names:
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "photos" / "masks").mkdir(exist_ok=True)
        shutil.copy(rendered / "images" / name, tmp_path / "photos" / name)
        mask = np.full((480, 640), 255, dtype=np.uint8)
        mask[:, :320] = 0
        pycolmap.Bitmap.from_array(mask).write(str(tmp_path / "photos" / "masks" / f"{name}.png"))
    settings = Matching(features=500, image_size=640, masks=tmp_path / "photos" / "masks")
    assert photographs.match(tmp_path / "photos", tmp_path / "database.db", settings) == names
    with pycolmap.Database.open(tmp_path / "database.db") as opened:
        assert opened.read_keypoints(1)[:, 0].min() >= 319.0
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"has no mask of a photograph; expected 0000.png.png"):
        photographs.match(tmp_path / "photos", tmp_path / "d.db", Matching(masks=tmp_path / "empty"))


def test_what_cannot_be_matched_is_said_in_one_sentence(tmp_path, rendered, capsys):
    folder = tmp_path / "photos"
    folder.mkdir()
    for k in range(2):
        shutil.copy(rendered / "images" / f"000{k}.png", folder)
    assert run("solve", folder, "-o", tmp_path / "out") == 2
    assert "holds 2 photographs; expected at least 3" in capsys.readouterr().err
    (folder / "broken.png").write_bytes(b"\x89PNG nothing")
    assert run("solve", folder, "-o", tmp_path / "out") == 2
    assert "broken.png cannot be read as an image" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"initfree\.photographs\.match"):
        initfree.load(folder)
    with pytest.raises(InputError, match="features is 7; expected at least 100"):
        Matching(features=7)


def test_photographs_in_the_order_of_their_numbers_without_the_output(tmp_path):
    for name in ("2.jpg", "10.JPG", "b/1.png", ".hidden/3.png", "out/4.png", "a/b/c/5.png", "note.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert photographs_in(tmp_path, [tmp_path / "out"]) == ["2.jpg", "10.JPG", "b/1.png"]


def test_pairs_of_many_photographs(monkeypatch):
    names = [f"{folder}/{k}.jpg" for folder in "ab" for k in range(40)]
    assert len(chosen_pairs(names, "exhaustive", lambda k: NONE)) == 80 * 79 // 2
    following = set(chosen_pairs(names, "sequential", lambda k: NONE))
    assert {(0, 1), (0, 10), (0, 16), (0, 40), (39, 79)} <= following
    assert not {(0, 11), (39, 40)} & following
    monkeypatch.setattr(pairs, "EXHAUSTIVE", 10)
    asked: list[int] = []
    chosen_pairs(names, "auto", lambda k: asked.append(k) or NONE)
    assert asked == list(range(80))


def test_photographs_that_look_alike_are_those_that_match(solved):
    """Of the pairs with a hundred verified matches, the few largest features find nearly all."""
    with pycolmap.Database.open(solved / "database.db") as opened:
        names = {image.image_id: image.name for image in opened.read_all_images()}
        pairs_of, geometries = opened.read_two_view_geometries()
    strong = [pair for pair, geometry in zip(pairs_of, geometries, strict=True) if len(geometry.inlier_matches) > 100]
    ids = sorted(names)
    found = alike([database._largest(solved / "database.db", k) for k in ids])
    matched = {tuple(sorted(ids.index(k) for k in pycolmap.pair_id_to_image_pair(pair))) for pair in strong}
    assert len(matched) >= 6
    assert len(matched & found) >= 0.9 * len(matched)


def test_a_video_becomes_photographs(tmp_path, rendered):
    av = pytest.importorskip("av")
    video = tmp_path / "film.mp4"
    names = sorted((rendered / "images").iterdir())[:5]
    with av.open(str(video), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.bit_rate = 640, 480, 8_000_000
        for path in names:
            bitmap = pycolmap.Bitmap.read(str(path), as_rgb=True)
            assert bitmap is not None
            sharp = bitmap.to_array()
            for image in (np.full_like(sharp, 128), sharp):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    folder = photographs.frames_of(video, tmp_path / "frames", len(names))
    frames = photographs_in(folder)
    assert frames == [f"frame_{2 * k + 1:06d}.jpg" for k in range(len(names))]
    stamp = (folder / frames[0]).stat().st_mtime_ns
    assert photographs.frames_of(video, folder, len(names)) == folder
    assert (folder / frames[0]).stat().st_mtime_ns == stamp
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    with pytest.raises(InputError, match="cannot be read as a video"):
        photographs.frames_of(tmp_path / "broken.mp4", tmp_path / "other", 5)


def test_every_command_of_the_table_of_programs(tmp_path, rendered, solved, monkeypatch):
    """As far as the formats go: what is written holds what the other program opens."""
    monkeypatch.chdir(tmp_path)
    Path("out").symlink_to(solved)
    Path("photographs").symlink_to(rendered / "images")
    page = (Path(__file__).resolve().parents[1] / "docs" / "formats.md").read_text()
    table = page[page.index("## What to open it with") : page.index("## Tracks of a video")]
    commands = set(re.findall(r"`initfree (convert [^`]*)`", table))
    assert len(commands) == 6
    for command in commands - {"convert out points.csv"}:  # of arrays
        assert run(*command.split()) == 0, command
    transforms = json.loads(Path("data/transforms.json").read_text())
    assert len(transforms["frames"]) == 16
    assert all((Path("photographs") / Path(one["file_path"]).name).is_file() for one in transforms["frames"])
    assert Path("data", transforms["ply_file_path"]).read_bytes().startswith(b"ply")
    assert Path("points.ply").read_bytes().startswith(b"ply")
    splats = pycolmap.Reconstruction("splats/sparse/0")
    assert {camera.model_name for camera in splats.cameras.values()} == {"PINHOLE"}
    assert {image.name for image in splats.images.values()} == {path.name for path in Path("splats/images").iterdir()}
    assert pycolmap.Reconstruction("model").num_reg_images() == 16
