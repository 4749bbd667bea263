"""Width and height of an image from its header: a file of some KB may announce any size, and libraries unpack it whole."""

import re
import struct
from pathlib import Path
from typing import IO

from initfree.data.files import opened
from initfree.errors import InputError

_MOST_PIXELS, _MOST_RATIO = 50_000_000, 16
"""of a file of any size, and more as a multiple of its bytes: photographs have at most ten pixels a byte"""
_PNM = re.compile(rb"P[1-6](?:\s+|#[^\n]*\n)+(\d{1,9})(?:\s+|#[^\n]*\n)+(\d{1,9})\s")
_NO_SIZE = {0xC4, 0xC8, 0xCC}
"""markers of JPEG from C0 to CF that begin no frame"""
_HEAD = 1024


def check_image(path: Path) -> tuple[int, int] | None:
    """Width and height, None where the header has a form that is not known here; InputError for one that is a bomb."""
    if path.stat().st_size == 0:  # files of /proc are too, and some of them wait for ever
        raise InputError(f"{path} is empty; expected an image")
    with opened(path) as stream:
        size = _size(stream)
    if size is not None:
        check_pixels(path, *size)
    return size


def check_pixels(path: Path, width: int, height: int) -> None:
    """Raise an `InputError` for an image or a frame of more pixels than a file of this size has."""
    length = path.stat().st_size
    most = _MOST_PIXELS + _MOST_RATIO * length
    if width * height > most:
        raise InputError(f"{path} has {width} x {height} pixels in {length:,} bytes; expected at most {most:,} pixels")


def _size(stream: IO[bytes]) -> tuple[int, int] | None:
    head = stream.read(_HEAD)
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack_from(">II", head, 16)
        elif head.startswith(b"BM"):
            width, height = struct.unpack_from("<HH" if head[14] == 12 else "<ii", head, 18)
        elif head.startswith(b"\xff\xd8"):
            return _jpeg(stream)
        elif head[:4] in (b"II*\0", b"MM\0*"):
            return _tiff(stream, "<" if head[:1] == b"I" else ">")
        elif found := _PNM.match(head):
            width, height = map(int, found.groups())
        else:
            return None
    except (struct.error, IndexError):
        return None
    return abs(width), abs(height)


def _jpeg(stream: IO[bytes]) -> tuple[int, int] | None:
    """ITU T.81, B.2.2: the first header of a frame."""
    stream.seek(2)
    while True:
        mark, marker, length = struct.unpack(">BBH", stream.read(4))
        if mark != 0xFF:
            return None
        if 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            height, width = struct.unpack(">xHH", stream.read(5))
            return width, height
        stream.seek(length - 2, 1)


def _tiff(stream: IO[bytes], order: str) -> tuple[int, int] | None:
    """TIFF 6.0, section 2: tags 256 and 257 of the first directory, of two or four bytes."""
    stream.seek(4)
    stream.seek(struct.unpack(f"{order}I", stream.read(4))[0])
    (count,) = struct.unpack(f"{order}H", stream.read(2))
    entries = [stream.read(12) for _ in range(count)]
    found = {
        tag: struct.unpack_from(f"{order}H" if kind == 3 else f"{order}I", entry, 8)[0]
        for entry in entries
        for tag, kind in [struct.unpack_from(f"{order}HH", entry)]
    }
    return (found[256], found[257]) if {256, 257} <= set(found) else None
