"""Compression beside pycolmap, in processes of their own: what goes wrong aborts."""

import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="libraries share their symbols otherwise"),
]
_COMPRESS = "import zlib; assert zlib.decompress(zlib.compress(b'ab' * 10**6)) == b'ab' * 10**6"
_PICTURE = """
import io
from PIL import Image
file = io.BytesIO()
Image.new("RGB", (1600, 1200), (10, 20, 30)).save(file, "png")
assert Image.open(file).getpixel((5, 5)) == (10, 20, 30)
"""


def python(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("use", [_COMPRESS, _PICTURE])
@pytest.mark.parametrize("order", ["initfree, pycolmap", "pycolmap, initfree", "numpy, pycolmap, initfree"])
def test_compression_works_whatever_is_imported_first(order: str, use: str):
    ended = python(f"import {order}\n{use}")
    assert ended.returncode == 0, ended.stderr


def test_a_solve_works_after_pycolmap():
    program = (
        "import pycolmap, initfree\nfrom initfree.commands.warmup import _ring\n"
        "assert initfree.solve(initfree.Problem.from_tracks(*_ring(8, 60))).problem.tracks.cameras == 8"
    )
    ended = python(program)
    assert ended.returncode == 0, ended.stderr


def test_a_zlib_that_is_linked_to_pycolmap_already_is_refused_in_words():
    """Unless something else loaded the system's zlib before pycolmap; then nothing is wrong."""
    ended = python("import pycolmap, zlib, initfree")
    if ended.returncode:
        assert ended.stderr.splitlines()[-1].startswith("ImportError: pycolmap was imported before Python's zlib")
    else:
        assert python(f"import pycolmap, zlib, initfree\n{_COMPRESS}").returncode == 0
