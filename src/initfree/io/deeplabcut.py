"""DeepLabCut's tables: a folder with one CSV a camera, as `analyze_videos(..., save_as_csv=True)` writes them.

The first column has frames; rows `scorer`, [`individuals`,] `bodyparts` and `coords` stand above
(x, y, likelihood of each part).
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from initfree.data.files import beginning, read_text
from initfree.data.observations import Intrinsics, Observations
from initfree.errors import InputError, in_words
from initfree.io.keypoints import Detection, named_apart, observations_of_keypoints

_HEAD = b"scorer,"


def is_deeplabcut(path: Path) -> bool:
    return path.is_dir() and len(_files(path)) >= 2


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """A camera is called as its file, without what DeepLabCut adds (`DLC_resnet50_...`)."""
    files = _files(path)
    cameras = named_apart(path, files, [file.stem.split("DLC")[0].rstrip("_-") or file.stem for file in files])
    return observations_of_keypoints(path, {name: _detections(file) for name, file in cameras.items()}, intrinsics)


def _files(path: Path) -> list[Path]:
    return [file for file in sorted(path.glob("*.csv")) if beginning(file, len(_HEAD)) == _HEAD]


def _detections(path: Path) -> Iterator[Detection]:
    try:
        rows = [row for row in csv.reader(read_text(path, "replace").split("\n")) if row]
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as CSV: {in_words(error)}") from error
    heads = {row[0]: row[1:] for row in rows[:4] if row[0] in ("scorer", "individuals", "bodyparts", "coords")}
    if not {"bodyparts", "coords"} <= set(heads):
        raise InputError(f"{path} has no rows bodyparts and coords; expected them below scorer")
    whose = [f"{who}." if who and who != "single" else "" for who in heads.get("individuals", [""] * len(heads["coords"]))]
    columns: dict[str, dict[str, int]] = {}
    for n, (who, part, coord) in enumerate(zip(whose, heads["bodyparts"], heads["coords"], strict=False)):
        columns.setdefault(who + part, {})[coord] = n + 1
    for part, places in columns.items():
        if not {"x", "y", "likelihood"} <= set(places):
            raise InputError(f"{path}: {part!r} has the columns {', '.join(places)}; expected x, y and likelihood")
    for number, row in enumerate(rows[len(heads) :], len(heads) + 1):
        for part, places in columns.items():
            x, y, likelihood = (_number(path, number, row, places[key]) for key in ("x", "y", "likelihood"))
            yield int(_number(path, number, row, 0)), part, x, y, likelihood


def _number(path: Path, number: int, row: list[str], place: int) -> float:
    value = row[place].strip() if place < len(row) else ""
    try:
        result = float(value or "nan")
        if place == 0:
            int(result)
        return result
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: column {place + 1} of row {number} is {value!r}; expected a number") from error
