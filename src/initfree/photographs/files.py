"""Which files of a folder are photographs, and in which order."""

import os
from collections.abc import Iterable
from pathlib import Path

from initfree.data.image_sizes import check_image
from initfree.data.names import natural
from initfree.errors import InputError
from initfree.io.formats import PHOTOGRAPHS

VIDEOS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mts")
_DEEP = 2
"""folders below the one that is given: the sensors of a rig, or places"""


def is_video(path: Path) -> bool:
    """Whether a file is a video, by its name."""
    return path.is_file() and path.suffix.lower() in VIDEOS


def is_photographs(path: Path) -> bool:
    """Whether a folder, or a folder in it, holds a photograph."""
    return path.is_dir() and any(True for _ in _files(path, ()))


def photographs_in(folder: Path, without: Iterable[Path] = ()) -> list[str]:
    """Names relative to `folder`, with slashes, in the order of their numbers; what is below `without` is left out."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder of photographs")
    return sorted(_files(folder, tuple(path.resolve() for path in without)), key=natural)


def _files(folder: Path, without: tuple[Path, ...]) -> Iterable[str]:
    for directory, below, names in os.walk(folder):
        here = Path(directory)
        deep = len(here.relative_to(folder).parts) < _DEEP
        below[:] = [one for one in sorted(below) if deep and one[0] != "." and (here / one).resolve() not in without]
        for name in names:
            if name[0] != "." and Path(name).suffix.lower() in PHOTOGRAPHS:
                yield (here / name).relative_to(folder).as_posix()


def check_masks(masks: Path, names: list[str]) -> None:
    """Some photograph has a mask, named as COLMAP names them."""
    found = [path for path in (masks / f"{name}.png" for name in names) if path.is_file()]
    for path in found:
        check_image(path)
    if not found:
        raise InputError(f"masks {masks} has no mask of a photograph; expected {names[0]}.png and so on")
