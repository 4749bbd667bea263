"""Nothing a stranger's file can do: no name is a path or a command, no file takes what it has not, whatever is in it."""

import ast
import gzip
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import h5py
import hostile
import mutations
import numpy as np
import pyarrow as pa
import pycolmap
import pytest
from commanding import run
from hypothesis import given, settings
from hypothesis import strategies as st
from models import to_reconstruction
from mutations import inputs
from pyarrow import parquet
from synthetic import ring
from test_damaged_inputs import DETECTIONS, WITHOUT_POSES, refusal

import initfree
from initfree.data import observations
from initfree.data.names import check_name, in_script, is_relative
from initfree.errors import InputError, printable
from initfree.io import boundary, formats
from initfree.io.load import load, load_observations

pytestmark = pytest.mark.slow

READERS = tuple(name for name in mutations.READERS if name != "bal.bz2")
SECONDS = 60


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> dict[str, Path]:
    return inputs(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def bounded() -> Iterator[None]:
    """No more than a gibibyte, and no waiting for ever."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with mutations.one_gibibyte():
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def named(folder: Path, name: str, other: str = "image001.jpg") -> Path:
    """A COLMAP model of which one image has this name."""
    model = to_reconstruction(ring(cameras=8, landmarks=200, min_observations=3))
    images = sorted(model.images)
    model.images[images[0]].name, model.images[images[1]].name = name, other
    folder.mkdir(parents=True)
    model.write_binary(str(folder))
    return folder


@pytest.fixture
def victim(tmp_path) -> Path:
    """An image that is nobody's business, beside the project."""
    from PIL import Image

    path = tmp_path / "victim.png"
    Image.fromarray(np.full((48, 64, 3), 200, dtype=np.uint8)).save(path)
    return path


def ways_out(folder: Path, victim: Path) -> list[str]:
    return ["../" * 40 + str(victim)[1:], str(victim), os.path.relpath(victim, folder)]


@pytest.mark.parametrize("way", [0, 1, 2])
def test_no_name_leads_out_of_a_folder(tmp_path, victim, capsys, way):
    """Defects 1 and 3: splats overwrote the image, the exported page had it as a thumbnail, colours came from it."""
    images = tmp_path / "project" / "images"
    images.mkdir(parents=True)
    shutil.copy(victim, images / "image001.jpg")
    model = named(tmp_path / "project" / "model", ways_out(images, victim)[way])
    before = victim.read_bytes()
    assert run("convert", model, tmp_path / "splats", "--images", images) == 2
    assert run("view", model, "--images", images, "--export", tmp_path / "page.html") == 2
    assert run("solve", model, "--images", images, "--output", tmp_path / "out") == 2
    assert run("convert", model, tmp_path / "transforms.json") == 2
    told = capsys.readouterr().err
    assert told.count("outside of any folder") == 4
    assert victim.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project", "victim.png"]


def test_paths_below_a_folder_stay_paths():
    assert all(is_relative(name) for name in ("a.jpg", "cam 1/a.jpg", "a..b/..c", "./a", "c:a", "con"))
    assert not any(is_relative(name) for name in ("/a", "\\a", "C:\\a", "..", "a/..", "../a", "a\\..\\b", "a/../b"))


def test_a_record_of_strangers_removes_nothing(tmp_path):
    """A folder that was given to somebody may say that files outside of it are ours."""
    from initfree.io.staged import staged_directory
    from initfree.io.written import RECORD, written

    (tmp_path / "precious").write_text("mine")
    (entry,) = written(tmp_path, "solve")
    out = tmp_path / "out"
    out.mkdir()
    files = [[*entry[:2], "../precious"], [*entry[:2], str(tmp_path / "precious")], [*entry[:2], "link/precious"]]
    (out / "link").symlink_to(tmp_path)
    (out / RECORD).write_text(json.dumps({"files": files}))
    with staged_directory(out, "solve", ["run.json"]) as staging:
        (staging / "run.json").write_text("{}")
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_aimed_inputs_are_read_or_refused(sound, name, seed):
    """Defects 4, 5, 9 and 15: `benchmarks/fuzz.py` tries more of them, each in a process of its own."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / f"aimed{sound[name].suffix}"
        hostile.write_aimed(sound[name], target, rng)
        intrinsics = "unknown" if name in DETECTIONS else rng.choice(("known", "unknown"))
        refusal(target, intrinsics, poses=name not in WITHOUT_POSES)


COLUMNS = [
    ("cameras", ("camera_id", "model", "width", "height", "params", "prior_focal_length")),
    ("images", ("image_id", "name", "camera_id")),
    ("keypoints", ("image_id", "rows", "cols", "data")),
    ("two_view_geometries", ("pair_id", "rows", "cols", "data", "config")),
]


@pytest.mark.parametrize(("table", "column"), [(table, column) for table, columns in COLUMNS for column in columns])
def test_databases_with_another_schema(sound, tmp_path, table, column):
    """Defect 5: a column that is missing, or that holds nothing, a text or a number where the other is meant."""
    values = {"renamed": None, "NULL": None, "text": "x", "blob": b"x", "real": 0.5, "large": 2**62}
    for kind, value in values.items():
        path = Path(shutil.copyfile(sound["database.db"], tmp_path / f"{kind}.db"))
        with closing(sqlite3.connect(path)) as connection, connection:
            if kind == "renamed":
                connection.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
            else:
                try:
                    connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
                except sqlite3.Error:
                    continue  # the schema itself is against it
        told = refusal(path, "refine", poses=False)
        if kind == "renamed":
            assert f"the table {table} has no column '{column}'" in told


def numbers(source: Path, target: Path, file: str, old: str, new: str) -> Path:
    shutil.copytree(source, target)
    text = (target / file).read_text()
    assert old in text
    (target / file).write_text(text.replace(old, new, 1))
    return target


def test_numbers_beyond_any_range_are_refused(sound, tmp_path):
    """Defect 5: sizes, focal lengths, coordinates and counts that no camera has ended in the solver, or in a traceback."""
    table = sound["table"].read_text().splitlines()
    head, row = table[0].split(","), table[1].split(",")
    for column in ("x", "y"):
        for value in ("1e308", "-1e308", "inf", "1e18"):
            cells = [value if name == column else cell for name, cell in zip(head, row, strict=True)]
            path = tmp_path / "odd.csv"
            path.write_text("\n".join([table[0], ",".join(cells), *table[2:]]) + "\n")
            assert str(path) in refusal(path, "unknown", poses=False)
    for k, (name, file, old, new) in enumerate(
        (
            ("OpenSfM", "camera_models.json", '"focal": ', '"focal": 1e308, "x": '),
            ("OpenSfM", "camera_models.json", '"width": 640', '"width": 1000000000000'),
            ("OpenSfM", "camera_models.json", '"width": 640', '"width": -640'),
            ("OpenSfM", "camera_models.json", '"width": 640', '"width": Infinity'),
            ("OpenSfM", "camera_models.json", '"width": 640', '"width": ' + "9" * 5000),
            ("OpenSfM", "camera_models.json", '"k1": 0.0', '"k1": ' + "[" * 5000 + "]" * 5000),
            ("OpenSfM", "tracks.csv", "\t0\t", "\t99999999999999999999\t"),
            ("caliscope", "camera_array.toml", "size = [640", "size = [1000000000000"),
            ("caliscope", "camera_array.toml", "size = [640", "size = [" + "9" * 400),
            ("caliscope", "camera_array.toml", "size = ", "deep = " + "[" * 5000 + "]" * 5000 + "\nsize = "),
            ("caliscope", "camera_array.toml", "size = ", "a." * 5000 + "a = 1\nsize = "),
            ("NVM", "model.nvm", "\n8\n", "\n" + "9" * 5000 + "\n"),
        )
    ):
        if old not in (sound[name] / file if sound[name].is_dir() else sound[name]).read_text():
            old = next(word for word in ("\n6\n",) if word in sound[name].read_text())
        if sound[name].is_dir():
            path = numbers(sound[name], tmp_path / str(k), file, old, new)
        else:
            path = tmp_path / f"{k}{sound[name].suffix}"
            path.write_text(sound[name].read_text().replace(old, new, 1))
        assert refusal(path, "known", poses=False), (name, new[:40])


def test_an_absolute_name_in_a_project_of_several_cameras(sound, tmp_path):
    """Defect 5: the message itself raised; and it would have been a path to any file (defect 1)."""
    path = tmp_path / "project"
    shutil.copytree(sound["OpenSfM"], path)
    models = json.loads((path / "camera_models.json").read_text())
    (path / "camera_models.json").write_text(
        json.dumps({"a": next(iter(models.values())), "b": next(iter(models.values()))})
    )
    (path / "tracks.csv").write_text((path / "tracks.csv").read_text().replace("image0.jpg", "/abs/0003.png"))
    assert "outside of any folder" in refusal(path, poses=False)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("kind", ["fifo", "zero", "random", "memory", "directory", "loop"])
def test_what_is_no_file_is_refused_at_once(sound, tmp_path, kind):
    """Defect 9: to open a FIFO is to wait for ever; a device has no end; /proc has files that nobody can read."""

    class Always(random.Random):
        def choice(self, seq):
            return kind

    for name in READERS:
        source = sound[name]
        files = [path for path in source.rglob("*") if path.is_file()] if source.is_dir() else [source]
        for k, file in enumerate(files[:6]):
            target = tmp_path / f"{name}-{k}{source.suffix}"
            shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)
            hostile.strange(target / file.relative_to(source) if source.is_dir() else target, Always())
            refusal(target, "unknown", poses=name not in WITHOUT_POSES)
    names = tmp_path / "names.txt"
    names.touch()
    hostile.strange(names, Always())
    with pytest.raises(InputError, match=r"names\.txt"):
        initfree.io.load.image_names(names)


def bomb(kind: str, folder: Path) -> Path:
    """Some KB that say they are gigabytes."""
    path = folder / f"{kind}{ {'gz': '.gz', 'counts': '.txt', 'rows': '.parquet'}.get(kind.split()[0], '.db') }"
    if kind == "gz":
        count = 12_000_000
        path.write_bytes(gzip.compress(f"2 1 {count}\n".encode() + b"0 0 1 1\n" * count, 1))
    elif kind == "counts":
        path.write_text(f"{2**31} {2**31} {2**31}\n0 0 1 1\n")
    elif kind == "rows":
        column = pa.array(np.zeros(10_000_000, dtype=np.int8))
        floats = pa.array(np.zeros(10_000_000))
        parquet.write_table(pa.table({"camera": column, "frame": column, "point": column, "x": floats, "y": floats}), path)
    elif kind.startswith("hdf5"):
        path = folder / "cameras"
        path.mkdir()
        for camera in ("a", "b"):
            with h5py.File(path / f"{camera}.analysis.h5", "w") as file:
                huge = kind.removeprefix("hdf5 ")
                shapes = {"tracks": (1, 2, 2, 40), "node_names": (2,), "point_scores": (1, 2, 40)}
                shapes[huge] = {"tracks": (1, 2, 2, 200_000_000), "node_names": (400_000_000,)}.get(
                    huge, (1, 2, 200_000_000)
                )
                for name, shape in shapes.items():
                    file.create_dataset(
                        name,
                        shape,
                        dtype="S3" if name == "node_names" else "f8",
                        chunks=True,
                        fillvalue=None if name == "node_names" else 1,
                    )
    return path


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("kind", ["gz", "counts", "rows", "hdf5 tracks", "hdf5 node_names", "hdf5 point_scores"])
def test_a_small_file_takes_no_gigabytes(tmp_path, kind):
    """Defect 4."""
    told = refusal(bomb(kind, tmp_path), "unknown", poses=False)
    assert told or kind == "hdf5 point_scores", "scores of another shape are none"


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(("table", "column"), [("keypoints", "data"), ("images", "name"), ("images", "prior_qw")])
def test_a_database_computes_nothing(sound, tmp_path, table, column):
    """Defect 4: a computed column is as large as whoever wrote it wants."""
    path = Path(shutil.copyfile(sound["database.db"], tmp_path / "computed.db"))
    with closing(sqlite3.connect(path)) as connection, connection:
        have = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        kept = ", ".join(name for name in have if name != column)
        connection.execute(f"CREATE TABLE old AS SELECT {kept} FROM {table}")
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"CREATE TABLE {table} ({kept}, {column} AS (zeroblob(400000000)))")
        connection.execute(f"INSERT INTO {table} ({kept}) SELECT {kept} FROM old")
    assert "is computed" in refusal(path, poses=False)


@pytest.mark.usefixtures("bounded")
def test_of_a_trace_only_what_is_ours_is_read(tmp_path):
    """Defect 4: a member of 1.6 GB that nobody asked for was unpacked; one of ours may announce anything."""
    from initfree.data.files import read_arrays

    path = tmp_path / "trace.npz"
    np.savez_compressed(path, extra=np.zeros(100_000_000, dtype=np.uint8), ours=np.arange(3))
    assert read_arrays(path, ["ours"])["ours"].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="expected at most"):
        read_arrays(path, ["extra"])


@pytest.mark.parametrize("name", [one for one in hostile.NAMES if not one.isprintable()])
def test_control_characters_in_names_are_refused(tmp_path, name, capsys):
    """Defect 16: they reached the terminal, and a newline made two lines of one in text files."""
    with pytest.raises(InputError, match="in its name") as caught:
        check_name("a file", name)
    assert str(caught.value).isprintable()
    if "\0" in name or "\udcff" in name:
        return
    model = named(tmp_path / "model", name)
    assert run("solve", model, "--output", tmp_path / "out") == 2
    assert run("convert", model, tmp_path / "model.json") == 2
    assert run("view", model, "--export", tmp_path / "page.html") == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 3
    assert told.replace("\n", "").isprintable()


def test_messages_are_one_line_of_bounded_length():
    """A file may hold a name of megabytes, or one that clears the screen."""
    assert str(InputError("a\nb\x1b[2J\u202e")) == "a\\nb\\x1b[2J\\u202e"
    assert len(str(InputError("n" * 10**6))) < 3000
    assert printable("Grüße 図.jpg") == "Grüße 図.jpg"


def test_names_that_text_cannot_hold_are_said(tmp_path, capsys):
    """Defect 16: COLMAP ends a name at a blank; its text, read again, had another name."""
    model = named(tmp_path / "model", "with blank.jpg")
    assert run("solve", model, "--output", tmp_path / "out") == 0
    assert "'with blank.jpg' has a blank in the name" in capsys.readouterr().out
    written = pycolmap.Reconstruction(str(tmp_path / "out" / "sparse" / "0"))
    assert "with blank.jpg" in {image.name for image in written.images.values()}
    text = tmp_path / "text"
    text.mkdir()
    written.write_text(str(text))
    assert "'with blank.jpg' has a blank in its name" in refusal(text)
    folder = tmp_path / "selfcal"
    assert run("convert", tmp_path / "out", folder, "--to", "multicamselfcal") == 0
    assert len((folder / "camera_order.txt").read_text().splitlines()) == 8


def test_names_in_scripts_and_toml(tmp_path):
    """Defect 10: `<!--<script>` in JSON of a page swallowed all that came after it."""
    for name in hostile.NAMES:
        text = in_script(json.dumps({"name": name}))
        assert "<" not in text
        assert json.loads(text)["name"] == name
    model = named(tmp_path / "model", '\U0001f600 $\\frac$ ".jpg')
    assert run("convert", model, tmp_path / "cameras.toml") == 0
    assert run("convert", model, tmp_path / "cameras.png") == 0
    import tomllib

    assert "\U0001f600" in tomllib.loads((tmp_path / "cameras.toml").read_text())["cam_0"]["name"]


def test_our_own_faults_are_no_input_errors(sound, monkeypatch):
    """What rooms beyond the readers raise, and what no file brings about, is not put down to the file."""

    def fails(error: Exception):
        def fail(*_: object, **__: object):
            raise error

        return fail

    with monkeypatch.context() as patched:
        patched.setattr(observations, "check_camera", fails(KeyError("ours")))
        with pytest.raises(KeyError, match="ours"):
            load(sound["table"])
    for error in (NameError("ours"), AssertionError("ours")):
        one = formats.Format("one", "a file", "", lambda path: True, fails(error))
        with pytest.raises(type(error)):
            one.read(sound["table"], formats.Asked())


def test_whatever_a_reader_raises_names_the_file(tmp_path):
    """Defect 5, by construction: 47 places, and those of readers to come."""
    reader = {"__name__": "initfree.io.newest"}
    exec("def read(path, asked): return {}['no such column'] if asked.names is None else int('x' * 9)", reader)
    one = formats.Format("newest", "a folder", "", lambda path: True, reader["read"])
    with pytest.raises(InputError, match=r"some\.file cannot be read \(KeyError: 'no such column'\); expected newest"):
        one.read(tmp_path / "some.file", formats.Asked())
    with pytest.raises(InputError, match="ValueError"):
        one.read(tmp_path / "some.file", formats.Asked(names=frozenset()))


def test_readers_open_files_in_one_place():
    """`opened` knows of FIFOs, devices and /proc; no reader has another way to a file."""
    folder = Path(boundary.__file__).parent
    against = []
    for file in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            writes = bool(node.args) and isinstance(node.args[0], ast.Constant) and str(node.args[0].value).startswith("w")
            on_os = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "os"
            own = isinstance(node.func, ast.Name)
            by_path = name in ("read_text", "read_bytes", "loadtxt") and not own
            if by_path or (name == "open" and not writes and not on_os):
                against.append(f"{file.name}:{node.lineno} {name}")
    allowed = ("multicamselfcal.py", "bal.py", "written.py", "staged.py")
    assert [one for one in against if not one.startswith(allowed)] == []


def test_every_format_has_a_sound_input(sound):
    """Whoever adds a format adds one to `mutations.inputs`, and with it all damages."""
    assert {formats.format_of(path).name for path in sound.values()} == {one.name for one in formats.FORMATS}
    assert set(sound) == set(mutations.READERS)


@pytest.mark.parametrize("kind", ["cameras", "landmark"])
def test_many_cameras_are_refused_before_work(tmp_path, kind):
    """Defect 18: a million cameras of one observation each took half a minute and a gigabyte."""
    count = observations.MOST_IMAGES + 1
    rows = (f"{k},{k if kind == 'cameras' else 0},{k % 600}.5,{k % 400}.5" for k in range(count))
    path = tmp_path / "many.csv"
    path.write_text("\n".join(["camera,point,x,y", *rows]) + "\n")
    assert "images or cameras; expected at most" in refusal(path, "unknown", poses=False)


def test_the_order_of_rows_changes_no_bit(tmp_path):
    """Defect 19: of a point that a camera has twice, the first one in the file counted."""
    scene = ring(cameras=8, landmarks=200, min_observations=3, noise=0.3)
    pixels = 420.0 * scene.m + (320.0, 240.0)
    tracks = zip(scene.tracks.cam, scene.tracks.landmark, pixels.tolist(), strict=True)
    rows = [(k, j, x, y) for k, j, (x, y) in tracks]
    rows += [(k, j, x + 1.0, y) for k, j, x, y in rows[:3]]
    lines = ["image,point,x,y", *(f"{k},{j},{x:.17g},{y:.17g}" for k, j, x, y in rows)]
    rng = random.Random(1)
    results = []
    for k in range(3):
        rows = rng.sample(lines[1:], len(lines) - 1) if k else lines[1:]
        path = tmp_path / f"{k}.csv"
        path.write_text("\n".join([lines[0], *rows]) + "\n")
        results.append(initfree.solve(load(path)).reconstruction)
    for other in results[1:]:
        for name in ("R", "t", "xyz", "ids", "focal"):
            assert getattr(results[0], name).tobytes() == getattr(other, name).tobytes()


def test_the_last_line_says_what_is_not_in_the_model(tmp_path, capsys):
    """Defect 20: of equal pieces one is solved; that it agrees with itself is not all that there is to say."""
    rows = ["image,point,x,y,width,height"]
    for piece in range(3):
        scene = ring(cameras=8, landmarks=200, min_observations=3, seed=piece)
        for a, (cam, j) in enumerate(zip(scene.tracks.cam, scene.tracks.landmark, strict=True)):
            x, y = 420.0 * scene.m[a] + (320.0, 240.0)
            rows.append(f"{piece}-{cam},{piece}-{j},{x:.17g},{y:.17g},640,480")
    path = tmp_path / "pieces.csv"
    path.write_text("\n".join(rows) + "\n")
    run("solve", path, "--output", tmp_path / "out", "--quiet")
    assert "8 of 24 images agree with each other" in capsys.readouterr().out


def test_no_warning_stands_before_the_sentence(tmp_path, sound, capfd):
    """Defect 15: NumPy warned of numbers, pycolmap logged what it then raised."""
    text = sound["NVM"].read_text()
    views = text.splitlines()
    k = next(k for k, line in enumerate(views) if len(line.split()) > 10 and k > 10)
    words = views[k].split()
    words[7] = "99999999999999999999"
    path = tmp_path / "odd.nvm"
    path.write_text("\n".join([*views[:k], " ".join(words), *views[k + 1 :]]))
    assert run("solve", path, "--output", tmp_path / "out") == 2
    model = tmp_path / "model"
    shutil.copytree(sound["colmap-text"], model)
    (model / "cameras.txt").write_text((model / "cameras.txt").read_text().replace(" 640 ", " 99999999999999999999999 "))
    assert run("solve", model, "--output", tmp_path / "out") == 2
    told = capfd.readouterr().err
    assert told.count("\n") == 2
    assert told.startswith("initfree: error")


def test_a_full_disk_leaves_the_older_page(tmp_path, capsys):
    """Defect 7: the page was cut in place."""
    model = named(tmp_path / "model", "a.jpg")
    page = tmp_path / "page.html"
    assert run("view", model, "--export", page) == 0
    before, soft = page.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    capsys.readouterr()
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, soft[1]))
    try:
        assert run("view", model, "--export", page) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    assert capsys.readouterr().err.count("\n") == 1
    assert page.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".initfree") == ["model", "page.html"]


def test_no_link_is_followed_to_write(tmp_path):
    """Defect 12: `.NAME.part` could be guessed, and a link of that name led to a file that was overwritten."""
    model = named(tmp_path / "model", "a.jpg")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".v.json.part").symlink_to(tmp_path / "victim")
    assert run("convert", model, tmp_path / "v.json") == 0
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / ".v.json.part").is_symlink()
    assert not (tmp_path / "v.json").is_symlink()


def test_load_of_names_that_are_data(tmp_path):
    """Printable names are names, however odd."""
    for name in (one for one in hostile.NAMES if one.strip() and one.isprintable() and len(one) < 1000 and "/" not in one):
        folder = tmp_path / str(abs(hash(name)))
        assert name in {image.name for image in load_observations(named(folder, name, "other.jpg")).images}
