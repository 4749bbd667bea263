"""Images of strangers: what their headers announce is read before a library unpacks them, whatever program it starts."""

import struct
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from commanding import run, write_ring
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from initfree.data.image_sizes import check_image
from initfree.drawing.thumbnails import thumbnails
from initfree.errors import InputError

pytestmark = pytest.mark.slow
NAMES = tuple(f"image{k:03d}.jpg" for k in range(10))


def bomb(path: Path) -> Path:
    """A PNG of a MB at most, of 60,000 x 60,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(10**6))) + chunk(b"IEND", b""))
    return path


def photographs(folder: Path, size: tuple[int, int]) -> Path:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in NAMES:
        Image.fromarray(rng.integers(0, 255, (*size[::-1], 3), dtype=np.uint8)).save(folder / name)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_ring(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("kind", ["png", "jpg", "bmp", "tif", "ppm", "pgm"])
def test_sizes_are_in_headers(tmp_path, kind):
    path = tmp_path / f"image.{kind}"
    Image.new("L" if kind == "pgm" else "RGB", (123, 45)).save(path)
    assert check_image(path) == (123, 45)


def test_a_jpeg_with_much_before_its_frame(tmp_path):
    path = tmp_path / "image.jpg"
    Image.new("RGB", (123, 45)).save(path, comment=b"x" * 60_000, icc_profile=b"y" * 200_000)
    assert check_image(path) == (123, 45)


@given(
    data=st.binary(max_size=60), kind=st.sampled_from([b"\x89PNG\r\n\x1a\n", b"BM", b"\xff\xd8", b"II*\0", b"MM\0*", b"P6 "])
)
def test_damaged_headers_have_no_size_or_one(tmp_path_factory, data, kind):
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(kind + data)
    size = None
    with suppress(InputError):
        size = check_image(path)
    assert size is None or min(size) >= 0


@pytest.mark.parametrize("target", ["/proc/self/environ", "/proc/kmsg"])
def test_files_of_proc_are_no_images(tmp_path, target):
    """They are regular, of no bytes, and to read some of them is to wait."""
    path = tmp_path / "image.jpg"
    path.symlink_to(target)
    with pytest.raises(InputError, match=r"image\.jpg is empty"):
        check_image(path)


def test_bombs_are_refused_wherever_images_are_read(tmp_path, model, capsys):
    images = photographs(tmp_path / "images", (640, 480))
    bomb(images / NAMES[3])
    (tmp_path / "masks").mkdir()
    bomb(tmp_path / "masks" / f"{NAMES[0]}.png")
    assert run("solve", images, "--output", tmp_path / "out") == 2
    assert run("solve", model, "--images", images, "--output", tmp_path / "out") == 2
    assert run("view", model, "--images", images, "--export", tmp_path / "page.html") == 2
    assert run("convert", model, tmp_path / "splats", "--images", images) == 2
    (images / NAMES[3]).unlink()
    assert run("solve", images, "--output", tmp_path / "out", "--masks", tmp_path / "masks") == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 5
    assert all("60000 x 60000 pixels" in line for line in told)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "masks"]


def test_images_of_another_size_than_the_cameras(tmp_path, model, capsys):
    """COLMAP ended the process with a stack trace."""
    images = photographs(tmp_path / "images", (320, 240))
    assert run("convert", model, tmp_path / "splats", "--images", images) == 2
    assert "image000.jpg has 320 x 240 pixels; expected 640 x 480" in capsys.readouterr().err
    assert not (tmp_path / "splats").exists()


def test_what_colmap_aborts_for_is_a_sentence(tmp_path, model, capfd, monkeypatch):
    """COLMAP cannot read an image of this kind, and looks at sizes only as it reads."""
    monkeypatch.setattr("initfree.io.undistorted._check_size", lambda *_: None)
    images = photographs(tmp_path / "images", (320, 240))
    assert run("convert", model, tmp_path / "splats", "--images", images) == 2
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert "cannot be undistorted" in told
    assert not (tmp_path / "splats").exists()


def test_no_program_is_started_for_an_image(tmp_path):
    """Pillow hands PostScript to Ghostscript, whatever the file is called."""
    path = tmp_path / "image.jpg"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n")
    assert Image.open(path).format == "EPS"
    with pytest.raises(InputError, match=r"image\.jpg cannot be read as an image"):
        thumbnails(("image.jpg",), tmp_path)
