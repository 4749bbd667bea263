"""Files damaged in the ways in which files are damaged: cut, overwritten, with numbers that nobody expects."""

import bz2
import gzip
import random
import resource
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keypoint_files import write_deeplabcut, write_idiap, write_openpose, write_sleap
from models import to_bal, to_reconstruction
from pyarrow import parquet
from pyarrow.csv import read_csv
from synthetic import ring
from test_database import write as write_database
from test_formats import WRITERS

from initfree.io.convert import convert

OTHER_PROGRAMS = (
    "OpenSfM", "Bundler", "NVM", "MultiCamSelfCal", "caliscope", "table", "Kapture", "openMVG", "Metashape",
)  # fmt: skip
READERS = (
    "colmap-binary", "colmap-text", "database.db", "bal.txt", "bal.gz", "bal.bz2", "deeplabcut", "sleap", "openpose",
    "idiap.txt", "table.parquet", "OpenSfM", "Bundler", "NVM", "MultiCamSelfCal", "caliscope", "table",
    "Kapture", "openMVG", "Metashape", "nerfstudio",
)  # fmt: skip

_INTEGERS = (0, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**33, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
_FLOATS = (float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 1e308, 1e-320, 0.0, -0.0, -1.0, 1e18)
_WORDS = (
    b"nan", b"inf", b"-inf", b"1e300", b"-1", b"0", b"1e308", b"1e400", b"99999999999999999999", b"4294967296", b"0.5",
    b"x", b"", b"\xff\xfe", b"\xc3\xa9", b"#", b"\n", b"\0", b"SIMPLE_PINHOLE", b"FOV", b"2147483648", b"-1e-300",
)  # fmt: skip


@contextmanager
def one_gibibyte() -> Iterator[None]:
    """No more than that on top of what the process has, whether it is touched or only set aside."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**30, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _cut(data: bytes, at: int, rng: random.Random) -> bytes:
    return data[:at]


def _byte(data: bytes, at: int, rng: random.Random) -> bytes:
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _integer(data: bytes, at: int, rng: random.Random) -> bytes:
    at, width = at - at % 4, rng.choice((4, 8))
    return data[:at] + rng.choice(_INTEGERS).to_bytes(8, "little")[:width] + data[at + width :]


def _float(data: bytes, at: int, rng: random.Random) -> bytes:
    at -= at % 4
    return data[:at] + struct.pack("<d", rng.choice(_FLOATS)) + data[at + 8 :]


def _word(data: bytes, at: int, rng: random.Random) -> bytes:
    """A word of a text, or what stands between two blanks of a binary file."""
    end = data.find(b" ", at)
    start = data.rfind(b" ", 0, at) + 1
    return data[:start] + rng.choice(_WORDS) + (data[end:] if end >= 0 else b"")


def _line(data: bytes, at: int, rng: random.Random) -> bytes:
    """A line twice, or not at all."""
    start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1
    end = end or len(data)
    return data[:start] + data[start:end] * rng.choice((0, 2)) + data[end:]


def _slice(data: bytes, at: int, rng: random.Random) -> bytes:
    end = at + rng.randrange(1, 64)
    return data[:at] + data[at:end] * rng.choice((0, 2, 3)) + data[end:]


_KINDS: tuple[Callable[[bytes, int, random.Random], bytes], ...] = (_cut, _byte, _integer, _float, _word, _line, _slice)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to three damages, more often near the beginning, where the counts are."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        reach = rng.choice((min(64, len(data)), len(data)))
        data = rng.choice(_KINDS)(data, rng.randrange(max(1, reach)), rng)
    return data


def inputs(directory: Path) -> dict[str, Path]:
    """A small, sound input for every reader, by name."""
    scene = ring(cameras=6, landmarks=60, min_observations=3)
    found = {}
    for name in ("binary", "text"):
        found[f"colmap-{name}"] = place = directory / name
        place.mkdir(parents=True)
        getattr(to_reconstruction(scene), f"write_{name}")(str(place))
    found["database.db"] = write_database(directory / "database.db", ring(cameras=6, landmarks=150, min_observations=3))
    bal = to_bal(scene).encode()
    for suffix, pack in ((".txt", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)):
        found[f"bal{suffix}"] = place = directory / f"bal{suffix}"
        place.write_bytes(pack(bal))
    found["deeplabcut"] = write_deeplabcut(directory / "deeplabcut")
    found["sleap"] = write_sleap(directory / "sleap")
    found["openpose"] = write_openpose(directory / "openpose")
    found["idiap.txt"] = write_idiap(directory / "idiap" / "ba_problem.txt")
    for name in OTHER_PROGRAMS:
        found[name] = WRITERS[name](directory / name, scene)
    found["table.parquet"] = place = directory / "table.parquet"
    place.parent.mkdir(exist_ok=True)
    parquet.write_table(read_csv(found["table"]), place)
    found["nerfstudio"] = place = directory / "nerfstudio" / "transforms.json"
    convert(found["colmap-binary"], place)
    return found


def write_mutated(source: Path, target: Path, rng: random.Random) -> None:
    """A copy of an input, a file or a directory of files, with one of its files damaged."""
    if source.is_file():
        target.write_bytes(mutate(source.read_bytes(), rng))
        return
    files = sorted(file for file in source.rglob("*") if file.is_file())
    chosen = rng.choice(files)
    for file in files:
        data, place = file.read_bytes(), target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(mutate(data, rng) if file == chosen else data)
