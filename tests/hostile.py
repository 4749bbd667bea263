"""Inputs that somebody aimed: values where no reader looks for them, names that are more than names, bombs, no files."""

import csv
import gzip
import io
import json
import os
import random
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pycolmap
from pyarrow import parquet

NAMES = (
    "../../victim.jpg", "/etc/hostname", "C:\\windows\\x.jpg", "..\\..\\victim.jpg", "a/../../../victim.jpg",
    "<script>document.title='ran'</script>.jpg", "<img src=x onerror=document.title='ran'>.jpg", "<!--<script>.jpg",
    "<iframe srcdoc=\"&lt;script&gt;top.document.title='ran'&lt;/script&gt;\">.jpg",
    "</script><script>document.title='ran'//",
    "[x](javascript:document.title='ran')", "![x](http://example.com/x.png)", "{{7*7}}{% raw %}", "${document.title='ran'}",
    "\x1b[31mred\x1b[0m.jpg", "a\nb.jpg", "a\rb.jpg", "a\tb.jpg", "\x00.jpg", "\u202egpj.exe", "a\u2028b.jpg", "\x9b31m",
    "", " ", "with blank.jpg", "n" * 5000, "'; DROP TABLE images; --", "$\\frac$", "-rf", "--output=x", "con.jpg",
    "\U0001f600.jpg",
    "\udcff.jpg", "#.jpg", "[bold]x[/bold]", "%s%n", "CON", ".", "..", "x/", "é" * 300,
)  # fmt: skip
"""of images, that strangers may choose"""

_DIGITS = "9" * 5000
ODD: tuple[Any, ...] = (
    None, True, False, "", "x", "nan", [], {}, [[]], [1, [2]], {"a": 1}, -1, 0, 1, 2**31, 2**32, 2**63, 2**64, 10**20,
    10**400,
    1e300, -1e300, 1e308, 1e12, 1e-308, -0.0, 0.5, float("inf"), float("nan"), *NAMES,
)  # fmt: skip
"""in place of any value"""
_WORDS = (
    "nan", "inf", "-inf", "1e300", "1e308", "-1e308", "1e400", "1e12", "-1", "0", "99999999999999999999", "9" * 400,
    _DIGITS, "0x10", "١٢", "1_0", "x", "é", "4294967296", "2147483648", "9223372036854775807", "0.5", "1e-320", "../../../x",
    "\x1b[2J",
)  # fmt: skip


def aim(file: Path, rng: random.Random) -> None:
    """Change a file in place, in a way that its format allows."""
    kinds: dict[str, Callable[[Path, random.Random], None]] = {
        ".json": _json, ".exif": _json, ".toml": _toml, ".csv": _csv, ".db": _database, ".h5": _hdf5, ".parquet": _parquet,
        ".npz": _npz, ".gz": _packed, ".bin": _model,
    }  # fmt: skip
    kinds.get(file.suffix, _words)(file, rng)


def _json(file: Path, rng: random.Random) -> None:
    content = json.loads(file.read_text())
    depth = rng.choice((2, 100, 5_000, 200_000))
    if rng.random() < 0.1:
        deep = rng.choice(("[" * depth + "]" * depth, '{"a":' * depth + "0" + "}" * depth))
        file.write_text(json.dumps(content).replace("0", deep, 1))
        return
    if rng.random() < 0.1:
        file.write_text(re.sub(r"\d+(\.\d+)?", rng.choice(_WORDS[:13]), json.dumps(content), count=rng.choice((1, 3))))
        return
    for _ in range(rng.choice((1, 1, 2))):
        _change(content, rng)
    file.write_text(json.dumps(content))


def _change(content: Any, rng: random.Random) -> None:
    """One value somewhere below, or one key, is another or is gone."""
    while isinstance(content, dict | list) and content:
        key = rng.choice(list(content) if isinstance(content, dict) else range(len(content)))
        below = content[key]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.25:
            if isinstance(content, dict) and rng.random() < 0.3:
                value = content.pop(key)
                if rng.random() < 0.5:
                    content[rng.choice((*NAMES, "x", "0", "-1", _DIGITS))] = value
            else:
                content[key] = rng.choice(ODD)
            return
        content = below


def _toml(file: Path, rng: random.Random) -> None:
    lines = file.read_text().splitlines()
    at = rng.randrange(len(lines))
    key, equals, _ = lines[at].partition("=")
    depth = rng.choice((5, 900, 5_000, 200_000))
    odd = rng.choice((
        "[]", "{}", '""', '"x"', "true", "nan", "inf", "-1", "1e308", "1e400", _DIGITS, "1979-05-27", "[[1], 2]", "0",
        "[" * depth + "]" * depth, "[1e308, 1e308]", "[[1,2],[3]]", json.dumps(rng.choice(NAMES)),
        "[99999999999999999999, 1]",
    ))  # fmt: skip
    new = (f"{key}= {odd}" if equals else f"[{'.'.join('a' * depth)}]", lines[at] * 2, "", f"{'a.' * depth}b = 1")
    lines[at] = rng.choice((new[0], new[0], new[0], *new[1:]))
    file.write_text("\n".join(lines) + "\n")


def _csv(file: Path, rng: random.Random) -> None:
    rows = list(csv.reader(file.read_text().splitlines()))
    kind = rng.choice(("cell", "cell", "cell", "column", "head", "short", "twice", "wide"))
    at = rng.randrange(len(rows[0]))
    some = range(1, len(rows)) if rng.random() < 0.3 else [rng.randrange(len(rows))]
    for row in rows if kind == "column" else [rows[k] for k in some]:
        if kind == "column":
            row.pop(min(at, len(row) - 1))
        elif kind == "cell":
            row[min(at, len(row) - 1)] = rng.choice((*_WORDS, *NAMES))
        elif kind == "short":
            row[:] = row[: rng.randrange(len(row) + 1)]
        elif kind == "wide":
            row.extend(["1"] * rng.choice((1, 10_000)))
    if kind in ("head", "twice"):
        rows[0][at] = rows[0][at - 1] if kind == "twice" else rng.choice(("", "x", "width", "confidence", "frame", *NAMES))
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    file.write_text(text.getvalue(), errors="surrogateescape")


def _database(file: Path, rng: random.Random) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = rng.choice([name for name in tables if not name.startswith("sqlite_")])
        column = rng.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
        value = rng.choice((
            None, "x", b"x", 1.5, -1, 0, 2**31 - 1, 2**32, 2**62, 10**15, b"\0" * 8, b"\xff" * 96, rng.choice(NAMES[:20]),
        ))  # fmt: skip
        computed = rng.choice(("zeroblob(400000000)", "randomblob(1000000)", "hex(zeroblob(100000000))", "1", "NULL"))
        others = rng.choice(("", f" WHERE rowid = {rng.randrange(1, 9)}"))
        connection.execute("PRAGMA ignore_check_constraints = ON")
        statements = (
            (f"ALTER TABLE {table} RENAME COLUMN {column} TO other_{column}", ()),
            (f"UPDATE OR REPLACE {table} SET {column} = ?{others}", (value,)),
            (f"ALTER TABLE {table} ADD COLUMN more AS ({computed})", ()),
            (f"ALTER TABLE {table} RENAME TO {table}_other", ()),
            (f"DELETE FROM {table}{others}", ()),
            (f"CREATE VIEW other AS SELECT * FROM {table}", ()),
        )
        statement, values = rng.choice((*statements[:2], *statements[:2], *statements))
        try:
            connection.execute(statement, values)
            if "ADD COLUMN" in statement and column != "image_id":
                connection.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO old")
                connection.execute(f"ALTER TABLE {table} RENAME COLUMN more TO {column}")
        except (sqlite3.Error, UnicodeEncodeError):
            connection.execute(f"ALTER TABLE {table} RENAME TO {table}_other")


def _hdf5(file: Path, rng: random.Random) -> None:
    with h5py.File(file, "r+") as content:
        name = rng.choice(("tracks", "node_names", "point_scores"))
        old = np.asarray(content[name]) if name in content else np.zeros(3)
        if name in content:
            del content[name]
        kind = rng.choice(("gone", "huge", "shape", "kind", "link", "group", "odd", "none"))
        if kind == "huge":
            shape = (1, 2, 2, 5_000_000_000) if name == "tracks" else (3_000_000_000,)
            content.create_dataset(name, shape, dtype="f8", chunks=True, fillvalue=rng.choice((0.0, 1.0, np.nan)))
        elif kind == "shape":
            content[name] = old.reshape(-1)[: rng.choice((0, 1, old.size))]
        elif kind == "kind":
            content[name] = rng.choice((np.array([b"x" * 100] * 3), np.float64(3.0), np.zeros(3, dtype="f4,i2")))
        elif kind == "link":
            content[name] = h5py.ExternalLink("/etc/hostname", "/x")
        elif kind == "group":
            content.create_group(name)
        elif kind == "odd" and old.dtype.kind == "f":
            old.reshape(-1)[rng.randrange(old.size)] = rng.choice((1e308, -1e308, np.inf, 1e12))
            content[name] = old
        elif kind == "none":
            content[name] = h5py.Empty("f8")


def _parquet(file: Path, rng: random.Random) -> None:
    table = parquet.read_table(file)
    at = rng.randrange(table.num_columns)
    kind = rng.choice(("gone", "type", "odd", "name", "null", "rows"))
    if kind == "rows":
        parquet.write_table(table.take(pa.array([0] * 2_000_000)), file)
        return
    count, name = table.num_rows, table.column_names[at]
    new: Any = pa.nulls(count)
    if kind == "type":
        kinds: tuple[tuple[Any, Any], ...] = (
            ({"a": 1}, None), ([1, 2], None), ("x", None), (b"x", None), (True, None), (2**63, pa.uint64()),
            (Decimal(10**20), pa.decimal128(38)), (date(1970, 1, 1), None), (5, pa.duration("s")),
        )  # fmt: skip
        value, its_type = rng.choice(kinds)
        new = pa.array([value] * count, type=its_type)
    elif kind == "odd":
        new = pa.array([rng.choice((1e308, np.inf, np.nan, -1.0))] * count)
    if kind == "name":
        table = table.rename_columns([rng.choice(NAMES[:20]) if k == at else n for k, n in enumerate(table.column_names)])
    else:
        table = table.remove_column(at) if kind == "gone" else table.set_column(at, name, new)
    parquet.write_table(table, file)


def _npz(file: Path, rng: random.Random) -> None:
    with np.load(file) as old:
        content = {name: old[name] for name in old.files}
    name = rng.choice(list(content))
    kind = rng.choice(("gone", "shape", "kind", "odd", "bomb", "header"))
    if kind == "gone":
        del content[name]
    elif kind == "shape":
        content[name] = content[name].reshape(-1)[: rng.choice((0, 1))]
    elif kind == "kind":
        content[name] = rng.choice((np.array("x"), np.zeros((2, 2)), np.array([1j]), np.zeros(content[name].shape, "S3")))
    elif kind == "odd" and content[name].dtype.kind == "f":
        content[name] = np.full_like(content[name], rng.choice((np.nan, np.inf, 1e308)))
    elif kind == "bomb":
        content[rng.choice((name, "extra"))] = np.zeros(200_000_000, dtype=np.uint8)
    np.savez_compressed(file, **content)
    if kind == "header":
        text = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,)}"
        with zipfile.ZipFile(file) as source:
            members = {one: source.read(one) for one in source.namelist()}
        members[f"{name}.npy"] = rng.choice((text.ljust(128), b"\x93NUMPY\x09\x00", b"", b"\x93NUMPY\x01\x00v\x00{[(" * 20))
        with zipfile.ZipFile(file, "w") as target:
            for one, data in members.items():
                target.writestr(one, data)


def _words(file: Path, rng: random.Random) -> None:
    words = re.split(r"(\s+)", file.read_text(errors="surrogateescape"))
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = 2 * rng.randrange(min(10, len(words) // 2) if rng.random() < 0.3 else (len(words) + 1) // 2)
        words[at] = rng.choice((*_WORDS, *NAMES))
    file.write_text("".join(words), errors="surrogateescape")


def _packed(file: Path, rng: random.Random) -> None:
    text = gzip.decompress(file.read_bytes())
    if rng.random() < 0.5:
        count = rng.choice((10**6, 10**7, 2**31))
        text = f"2 1 {count}\n".encode() + b"0 0 1 1\n" * min(count, 5_000_000)
    else:
        words = text.split(b" ")
        words[rng.randrange(len(words))] = rng.choice(_WORDS).encode()
        text = b" ".join(words)
    file.write_bytes(gzip.compress(text))


def _model(file: Path, rng: random.Random) -> None:
    """A COLMAP model in its own words: whole, and still nonsense."""
    folder = file.parent
    model = pycolmap.Reconstruction(str(folder))
    image = model.images[rng.choice(list(model.images))]
    camera = model.cameras[image.camera_id]
    kind = rng.choice(("name", "name", "params", "size", "point", "keypoint"))
    odd = rng.choice((1e308, -1e308, 1e12, float("nan"), float("inf"), 0.0, -1.0))
    if kind == "name":
        name = rng.choice(NAMES)
        image.name = "x" if "\udcff" in name else name
    elif kind == "params":
        params = list(camera.params)
        params[rng.randrange(len(params))] = odd
        camera.params = params
    elif kind == "size":
        camera.width, camera.height = rng.choice(((0, 0), (10**12, 10), (2**63, 1), (1, 1)))
    elif kind == "point":
        model.points3D[rng.choice(list(model.points3D))].xyz = (odd, 0.0, 0.0)
    else:
        image.points2D[0].xy = (odd, 0.0)
    model.write(str(folder))


def strange(target: Path, rng: random.Random) -> str:
    """No regular file lies at the path any more; what does."""
    target.unlink()
    kind = rng.choice(("fifo", "directory", "empty", "zero", "random", "memory", "loop", "gone"))
    if kind == "fifo":
        os.mkfifo(target)
    elif kind == "directory":
        target.mkdir()
    elif kind == "empty":
        target.touch()
    elif kind == "loop":
        target.symlink_to(target)
    elif kind != "gone":
        target.symlink_to({"zero": "/dev/zero", "random": "/dev/urandom", "memory": "/proc/self/mem"}[kind])
    return kind


def write_aimed(source: Path, target: Path, rng: random.Random) -> None:
    """A copy of an input, a file or a directory of files, with one of its files aimed at; now and then none at all."""
    if source.is_dir():
        shutil.copytree(source, target)
        chosen = rng.choice(sorted(file for file in target.rglob("*") if file.is_file()))
    else:
        chosen = Path(shutil.copyfile(source, target))
    if rng.random() < 0.12:
        strange(chosen, rng)
    else:
        aim(chosen, rng)
