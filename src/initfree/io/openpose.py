"""OpenPose's output: a folder with one folder a camera, in it NAME_FRAME_keypoints.json for each frame (`--write_json`).

A frame with several people does not say which of them is which in another camera: the most confident one of each is taken.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from initfree.data.files import read_json
from initfree.data.observations import Intrinsics, Observations
from initfree.errors import InputError
from initfree.io.keypoints import Detection, observations_of_keypoints

_ENDING = "_keypoints.json"


def is_openpose(path: Path) -> bool:
    return path.is_dir() and len(_folders(path)) >= 2


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """A camera is called as its folder, a point by its number in the model (0: nose, in BODY_25)."""
    cameras = {folder.name: _detections(folder) for folder in _folders(path)}
    return observations_of_keypoints(path, cameras, intrinsics)


def _folders(path: Path) -> list[Path]:
    return sorted(folder for folder in path.iterdir() if folder.is_dir() and next(folder.glob(f"*{_ENDING}"), None))


def _detections(folder: Path) -> Iterator[Detection]:
    for file in sorted(folder.glob(f"*{_ENDING}")):
        number = re.search(r"(\d+)$", file.name.removesuffix(_ENDING))
        if number is None:
            raise InputError(f"{file} has no number of its frame before {_ENDING}")
        people = [_person(file, person) for person in _people(file)]
        people = [person for person in people if len(person)]
        if not people:
            continue
        best = max(people, key=lambda person: float(person[:, 2].mean()))
        for k, (x, y, confidence) in enumerate(best.tolist()):
            yield int(number[1]), str(k), x, y, confidence


def _people(file: Path) -> list[dict[str, object]]:
    content = read_json(file, errors="replace")
    people = content.get("people") if isinstance(content, dict) else None
    if not isinstance(people, list) or not all(isinstance(person, dict) for person in people):
        raise InputError(f"{file} has no list of people; expected what OpenPose writes with --write_json")
    return people


def _person(file: Path, person: dict[str, object]) -> np.ndarray:
    """(points, 3): x, y, confidence."""
    try:
        values = np.array(person["pose_keypoints_2d"], dtype=np.float64)
        if values.ndim != 1 or len(values) % 3 or not np.isfinite(values).all():
            raise ValueError
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{file}: pose_keypoints_2d of a person is broken; expected x, y, confidence, ...") from error
    return values.reshape(-1, 3)
