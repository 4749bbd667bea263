"""Damaged inputs end in one sentence that names the file and the value: no traceback, no hang, no gigabytes."""

import bz2
import gzip
import random
import re
import shutil
import struct
import tempfile
import warnings
from pathlib import Path

import mutations
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import READERS, inputs, write_mutated

from initfree.data.observations import Intrinsics
from initfree.errors import InputError
from initfree.io.load import load, load_model

pytestmark = pytest.mark.slow

DETECTIONS = ("deeplabcut", "sleap", "openpose", "idiap.txt", "table", "table.parquet")
"""have no poses, and mostly no intrinsics"""
WITHOUT_POSES = (*DETECTIONS, "OpenSfM", "MultiCamSelfCal", "database.db")


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> dict[str, Path]:
    return inputs(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def one_gibibyte():
    with mutations.one_gibibyte():
        yield


def refusal(path: Path, intrinsics: Intrinsics = "known", *, poses: bool = True) -> str:
    """The sentence with which a reader refuses; empty where it reads."""
    told = []
    reads = (lambda: load(path, 3, intrinsics), lambda: load_model(path))
    for read in reads if poses else reads[:1]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                read()
        except InputError as error:
            told.append(error)
    for error in told:
        assert not isinstance(error.__cause__, MemoryError)
        assert str(path) in str(error)
        assert "\n" not in str(error)
        # Not the code of a library.
        assert not re.search(r"::|>>|->|Check failed|codec", str(error))
    return str(told[0]) if told else ""


@pytest.mark.parametrize("name", [name for name in READERS if name != "nerfstudio"])
def test_sound_inputs_are_read(sound, name):
    assert not refusal(sound[name], "unknown" if name in DETECTIONS else "known", poses=name not in WITHOUT_POSES)


@pytest.mark.usefixtures("one_gibibyte")
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, deadline=20_000)
@given(seed=st.integers(0, 2**32))
def test_damaged_inputs_are_read_or_refused(sound, name, seed):
    """`benchmarks/fuzz.py` tries more of them, each in a process of its own."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / f"damaged{sound[name].suffix}"
        write_mutated(sound[name], target, rng)
        intrinsics = "unknown" if name in DETECTIONS else rng.choice(("known", "unknown"))
        refusal(target, intrinsics, poses=name not in WITHOUT_POSES)


@pytest.mark.usefixtures("one_gibibyte")
@pytest.mark.parametrize("name", ["bal.txt", "bal.gz", "bal.bz2"])
def test_a_count_far_beyond_the_file_takes_no_memory(sound, tmp_path, name):
    """A single `read` of that many bytes would set them all aside."""
    path = tmp_path / sound[name].name
    opener = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    with opener(sound[name], "rb") as stream:
        _, text = stream.read().split(b"\n", 1)
    with opener(path, "wb") as stream:
        stream.write(b"2147483648 2147483648 2147483648\n" + text)
    assert "2147483648 cameras" in refusal(path)


def overwritten(source: Path, target: Path, file: str, at: int, value: bytes) -> Path:
    shutil.copytree(source, target)
    data = bytearray((target / file).read_bytes())
    data[at : at + len(value)] = value
    (target / file).write_bytes(data)
    return target


@pytest.mark.usefixtures("one_gibibyte")
@pytest.mark.parametrize(
    ("file", "at", "value", "words"),
    [
        ("points3D.bin", 8 + 43, struct.pack("<Q", 2**33), ("points3D.bin", "point 100", str(2**33))),
        ("points3D.bin", 0, struct.pack("<Q", 2**33), ("points3D.bin", str(2**33))),
        ("points3D.bin", 8 + 51, struct.pack("<I", 77), ("points3D.bin", "image 77")),
        ("points3D.bin", 8 + 55, struct.pack("<I", 10**6), ("points3D.bin", "keypoint 1000000 of image 10")),
        ("points3D.bin", 8 + 55, struct.pack("<I", 0), ("points3D.bin", "keypoint 0 of image 10", "no point")),
        ("images.bin", 8 + 64 + len("image000.jpg") + 1, struct.pack("<Q", 2**60), ("images.bin", str(2**60))),
        ("images.bin", 8 + 64, b"\xff\xfe", ("images.bin", "image 7", "UTF-8")),
        ("images.bin", 8 + 60, struct.pack("<I", 5), ("images.bin", "camera 5")),
        ("cameras.bin", 8 + 24, struct.pack("<d", 1e300), ("camera 3", "1e+300")),
        ("cameras.bin", 8 + 4, struct.pack("<i", 99), ("cameras.bin", "model 99")),
        ("cameras.bin", 8 + 8, struct.pack("<Q", 2**62), ("camera 3", str(2**62))),
        ("rigs.bin", 12, struct.pack("<I", 2**31), ("rigs.bin", str(2**31 - 1))),
        ("frames.bin", 8 + 64, struct.pack("<I", 2**31), ("frames.bin", str(2**31))),
    ],
)
def test_binary_values_are_named(sound, tmp_path, file, at, value, words):
    told = refusal(overwritten(sound["colmap-binary"], tmp_path / "damaged", file, at, value))
    for word in words:
        assert word in told


def test_ids_that_are_there_twice(sound, tmp_path):
    second = (sound["colmap-binary"] / "points3D.bin").read_bytes()
    length = struct.unpack_from("<Q", second, 8 + 43)[0]
    target = tmp_path / "twice"
    shutil.copytree(sound["colmap-binary"], target)
    record = second[8 : 8 + 51 + 8 * length]
    (target / "points3D.bin").write_bytes(struct.pack("<Q", 2) + 2 * record)
    assert "two points of id 100" in refusal(target)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("cameras.txt", b" 640 ", b" 64x ", ("cameras.txt, line 4", "'64x'")),
        ("cameras.txt", b"SIMPLE_RADIAL", b"SIMPLE_RADICAL", ("cameras.txt, line 4", "SIMPLE_RADICAL")),
        ("images.txt", b"image002.jpg", b"im\xffge002.jpg", ("UTF-8",)),
        ("images.txt", b"5.5 ", b"nan ", ("images.txt", "'nan'")),
        ("points3D.txt", b"100 ", b"1o0 ", ("points3D.txt", "'1o0'")),
    ],
)
def test_text_values_are_named(sound, tmp_path, file, old, new, words):
    target = tmp_path / "damaged"
    shutil.copytree(sound["colmap-text"], target)
    data = (target / file).read_bytes()
    assert old in data
    (target / file).write_bytes(data.replace(old, new, 1))
    told = refusal(target)
    for word in words:
        assert word in told


def test_bal_values_are_named(sound, tmp_path):
    good = sound["bal.txt"].read_bytes()
    lines = good.splitlines()
    _, point, u, v = lines[1].split()
    for broken, word in (
        (b" ".join([b"1e308", point, u, v]), "camera 1e+308"),
        (b" ".join([b"-1", point, u, v]), "camera -1"),
        (b" ".join([b"0", point, b"\xc3\xa9", v]), "number 6"),
        (b" ".join([b"0", point, b"1e400", v]), "'1e400'"),
    ):
        path = tmp_path / "damaged.txt"
        path.write_bytes(b"\n".join([lines[0], broken, *lines[2:]]))
        assert word in refusal(path)
    packed = bytearray(gzip.compress(good))
    packed[-5] ^= 0xFF  # of its checksum
    path = tmp_path / "damaged.gz"
    path.write_bytes(packed)
    assert "cannot be read" in refusal(path)


@pytest.mark.usefixtures("one_gibibyte")
def test_a_small_file_that_unpacks_to_gigabytes(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"2 3 4\n") + 200 * gzip.compress(b"0 " * (5 << 20)))
    assert path.stat().st_size < 4 << 20
    assert "numbers; found" in refusal(path)
