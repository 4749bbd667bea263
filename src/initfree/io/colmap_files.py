"""Whether the files of a COLMAP model are whole, before pycolmap reads them.

pycolmap trusts the counts in a binary file: a track length of 2^33 in 8 KB takes gigabytes, or hours. So each record is
checked first: whether it fits into the file, and whether its references exist. A compiled kernel checks points and
tracks, of which there can be millions; the files are mapped, not loaded.

The records, little-endian (COLMAP's reconstruction_io): a count (8 bytes), then

    cameras    id 4, model 4, width 8, height 8, parameters 8 each
    images     id 4, pose 56, camera 4, name and a zero byte, count 8, keypoints (x 8, y 8, landmark 8)
    points3D   id 8, position 24, colour 3, error 8, count 8, track (image 4, keypoint 4)
    rigs       id 4, sensors 4, first sensor 8, the others (sensor 8, has pose 1, pose 56)
    frames     id 4, rig 4, pose 56, count 4, data (sensor 8, id 8)
"""

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.data.files import opened, regular
from initfree.data.names import check_name
from initfree.data.observations import check_camera
from initfree.engine.kernels import kernel
from initfree.errors import InputError

FILES = ("cameras", "images", "points3D")
"""files of every model; rigs and frames since COLMAP 3.12"""
_BEFORE_NAME = 9
"""words of an image's line before its name"""
_NO_POINT = 2**64 - 1
_KEYPOINT = np.dtype([("xy", "<f8", 2), ("point", "<u8")])
_PARAMETERS = {
    model.value: pycolmap.Camera.create_from_model_name(1, model.name, 1.0, 1, 1).params.size
    for model in pycolmap.CameraModelId.__members__.values()
    if model.value >= 0
}
"""number of parameters of COLMAP's camera models, by their id"""


def check_files(directory: Path) -> "StoredModel | None":
    """Raise an `InputError` that names file and value where the model at `directory` is damaged; keypoints and points where
    they are stored as arrays."""
    if not all((directory / f"{name}.bin").is_file() for name in FILES):
        _check_names(directory / "images.txt")
        return None  # Text announces no counts.
    cameras = _check_cameras(directory / "cameras.bin")
    images = _check_images(directory / "images.bin", cameras)
    points = _check_points(directory / "points3D.bin", images)
    for name, check in (("rigs", _check_rigs), ("frames", _check_frames)):
        if (directory / f"{name}.bin").is_file():
            check(directory / f"{name}.bin")
    return StoredModel(images, *points)


def _check_names(file: Path) -> None:
    """In text, COLMAP ends a name at the first blank: of two images there might be one, under the name of neither."""
    second = False
    with opened(file) as stream:
        for number, line in enumerate(stream, 1):
            if second or (not line.startswith(b"#") and line.strip()):
                name = line.split(maxsplit=_BEFORE_NAME)[_BEFORE_NAME:]
                if not second and name and len(name[0].split()) > 1:
                    shown = name[0].strip().decode(errors="replace")
                    raise InputError(
                        f"{file}, line {number}: the image {shown!r} has a blank in its name, which COLMAP's text format "
                        "cannot hold; expected the model in binary, or names without"
                    )
                second = not second


def why(directory: Path, error: Exception) -> str:
    """Why pycolmap does not read a model, in words: file, line and value if they can be determined."""
    if not (directory / "points3D.bin").is_file():
        for name, check in (("cameras", _camera_line), ("images", _image_line), ("points3D", _point_line)):
            found = _first_bad_line(directory / f"{name}.txt", check, keypoints=name == "images")
            if found is not None:
                return found
    # Of pycolmap's message only what speaks of the model, not the lines and conditions of its source.
    shown = re.search(r"(?<!\S)((?:Image|Camera|Rig|Frame|Sensor|Point3D) (?:with|\d|\().*|Unknown value.*)", str(error))
    return shown[1].partition(". Note")[0] if shown else "its files contradict each other, or a line of them is damaged"


def check_model(model: pycolmap.Reconstruction, source: str) -> None:
    """Refuse names and cameras of a model in memory that are invalid for later stages."""
    for image_id, image in model.images.items():
        try:
            check_name(source, image.name)
        except UnicodeDecodeError as error:
            raise InputError(f"{source}: the name of image {image_id}, {error.object!r}, is not UTF-8") from error
        if image.camera_id not in model.cameras:
            raise InputError(f"{source}: image {image.name!r} names camera {image.camera_id}, which does not exist")
    for camera_id, camera in model.cameras.items():
        check_camera(camera_id, camera, source)


def _first_bad_line(file: Path, check: Callable[[list[str]], str | None], keypoints: bool) -> str | None:
    """The first line that cannot be read; with `keypoints` every other line holds those of the image before."""
    second = False
    with opened(file) as stream:
        for number, line in enumerate(stream, 1):
            if not second and (line.startswith(b"#") or not line.strip()):
                continue
            try:
                words = line.decode().split()
            except UnicodeDecodeError as error:
                bad = line[max(0, error.start - 20) : error.end + 20].strip()
                return f"{file.name}, line {number}, has {bad!r}; expected UTF-8"
            expected = (_keypoint_line if second else check)(words)
            if expected is not None:
                return f"{file.name}, line {number}, {expected}"
            second = keypoints and not second
    return None


def _numbers(words: list[str], whole: bool = False) -> str | None:
    for word in words:
        try:
            if not math.isfinite(int(word) if whole else float(word)):
                raise ValueError
        except (ValueError, OverflowError):
            return f"has {word[:40]!r}; expected a {'whole' if whole else 'finite'} number"
    return None


def _camera_line(words: list[str]) -> str | None:
    if len(words) < 5:
        return f"has {len(words)} words; expected a camera: id, model, width, height, parameters"
    if words[1] not in pycolmap.CameraModelId.__members__:
        return f"has {words[1][:40]!r}; expected a camera model of COLMAP"
    parameters = _PARAMETERS.get(pycolmap.CameraModelId.__members__[words[1]].value, 0)
    if len(words) - 4 != parameters:
        return f"has {len(words) - 4} parameters of {words[1]}; expected {parameters}"
    return _numbers([words[0], *words[2:4]], whole=True) or _numbers(words[4:])


def _image_line(words: list[str]) -> str | None:
    if len(words) < 10:
        return f"has {len(words)} words; expected an image: id, rotation, translation, camera, name"
    return _numbers([words[0], words[8]], whole=True) or _numbers(words[1:8])


def _keypoint_line(words: list[str]) -> str | None:
    if len(words) % 3:
        return f"has {len(words)} numbers; expected keypoints, three numbers each"
    return _numbers(words[::3]) or _numbers(words[1::3]) or _numbers(words[2::3], whole=True)


def _point_line(words: list[str]) -> str | None:
    if len(words) < 8 or len(words) % 2:
        return f"has {len(words)} numbers; expected a point: id, position, colour, error, and two for each observation"
    return _numbers([words[0], *words[4:7], *words[8:]], whole=True) or _numbers([*words[1:4], words[7]])


class _Walk:
    """A file, and how far it was read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        size = regular(file).stat().st_size
        # An empty file cannot be mapped. As an array: every slice of a memmap is another memmap, which takes long to make.
        data = np.memmap(file, dtype=np.uint8, mode="r") if size else np.zeros(0, dtype=np.uint8)
        self.data: NDArray[np.uint8] = np.asarray(data)
        self.at = 0

    def take(self, form: str) -> tuple[Any, ...]:
        size = struct.calcsize(form)
        if self.at + size > len(self.data):
            raise InputError(f"{self.file} ends at byte {len(self.data)}, within an entry; expected a whole COLMAP file")
        values = struct.unpack(form, self.data[self.at : self.at + size].tobytes())
        self.at += size
        return values

    def skip(self, count: int, size: int, what: str) -> None:
        """`count` records of `size` bytes each, at least."""
        if count * size > len(self.data) - self.at:
            raise InputError(
                f"{self.file} announces {count} {what} at byte {self.at} but has {len(self.data)} bytes; "
                "expected a whole COLMAP file"
            )
        self.at += count * size

    def count(self, form: str, size: int, what: str) -> int:
        """A count, and whether so many records of at least `size` bytes can follow."""
        (count,) = self.take(form)
        here = self.at
        self.skip(count, size, what)
        self.at = here
        return count


def _unique(file: Path, what: str, ids: list[int]) -> None:
    if len(set(ids)) < len(ids):
        twice = next(k for i, k in enumerate(ids) if k in ids[:i])
        raise InputError(f"{file} has two {what} of id {twice}")


def _check_cameras(file: Path) -> set[int]:
    walk, ids = _Walk(file), []
    for _ in range(walk.count("<Q", 24, "entries")):
        camera_id, model, _, _ = walk.take("<IiQQ")
        if model not in _PARAMETERS:
            raise InputError(f"{file}: camera {camera_id} is of model {model}; expected one of COLMAP's, 0 to 17")
        walk.skip(_PARAMETERS[model], 8, "parameters")
        ids.append(camera_id)
    _unique(file, "cameras", ids)
    return set(ids)


@dataclass(frozen=True)
class StoredImages:
    """Images in the order of their ids, and where their keypoints lie in the file."""

    data: NDArray[np.uint8]
    ids: NDArray[np.int64]
    keypoints: NDArray[np.int64]
    place: NDArray[np.int64]

    def of(self, image_id: int) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
        """An image's keypoints (keypoints, 2) and the point that each belongs to."""
        k = int(np.searchsorted(self.ids, image_id))
        stored = self.data[self.place[k] : self.place[k] + 24 * self.keypoints[k]].view(_KEYPOINT)
        return np.array(stored["xy"], dtype=np.float64).reshape(-1, 2), np.array(stored["point"], dtype=np.uint64)


@dataclass(frozen=True)
class StoredModel:
    """Keypoints and points as arrays: pycolmap has an object for every one."""

    images: StoredImages
    point_ids: NDArray[np.uint64]
    xyz: NDArray[np.float64]
    """(points, 3)"""


def _check_images(file: Path, cameras: set[int]) -> StoredImages:
    walk, ids, keypoints, place = _Walk(file), [], [], []
    for _ in range(walk.count("<Q", 73, "entries")):
        image_id, *_, camera_id = walk.take("<I7dI")
        end = walk.at + 4096
        name = bytes(walk.data[walk.at : end]).partition(b"\0")
        if not name[1]:
            raise InputError(f"{file}: the name of image {image_id} at byte {walk.at} has no end")
        try:
            name[0].decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: the name of image {image_id}, {name[0]!r}, is not UTF-8") from error
        if camera_id not in cameras:
            raise InputError(f"{file}: image {name[0].decode()!r} names camera {camera_id}, which does not exist")
        walk.at += len(name[0]) + 1
        count = walk.count("<Q", 24, "keypoints")
        ids.append(image_id)
        keypoints.append(count)
        place.append(walk.at)
        walk.at += 24 * count
    _unique(file, "images", ids)
    order = np.argsort(np.array(ids, dtype=np.int64))
    in_order = (np.array(values, dtype=np.int64)[order] for values in (ids, keypoints, place))
    return StoredImages(walk.data, *in_order)


def _check_points(file: Path, images: StoredImages) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Ids and places of the points."""
    walk = _Walk(file)
    count = walk.count("<Q", 51, "entries")
    ids, start = np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.int64)
    fault, value, point, image, keypoint = _walk_points(
        walk.data, count, images.data, images.ids, images.keypoints, images.place, ids, start
    )
    if fault == _CUT:
        raise InputError(f"{file} ends at byte {len(walk.data)}, within an entry; expected a whole COLMAP file")
    if fault == _LONG:
        raise InputError(
            f"{file}: point {point} has a track of length {value} but the file has {len(walk.data)} bytes; "
            "expected a whole COLMAP file"
        )
    if fault == _NO_IMAGE:
        raise InputError(f"{file}: the track of point {point} names image {image}, which does not exist")
    if fault == _NO_KEYPOINT:
        raise InputError(f"{file}: the track of point {point} names keypoint {keypoint} of image {image}, which has {value}")
    if fault == _OTHER:
        owner = "no point" if value == _NO_POINT else f"point {value}"
        raise InputError(
            f"{file}: the track of point {point} names keypoint {keypoint} of image {image}, which belongs to {owner}"
        )
    found, times = np.unique(ids, return_counts=True)
    if len(found) < count:
        raise InputError(f"{file} has two points of id {found[times > 1][0]}")
    stored = walk.data[(start[:, None] + 8) + np.arange(24)]
    return ids, stored.view("<f8").astype(np.float64)


_CUT, _LONG, _NO_IMAGE, _NO_KEYPOINT, _OTHER = 1, 2, 3, 4, 5


@kernel(strict=True)
def _integer(data, at, size):
    value = np.uint64(0)
    for k in range(size):
        value |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return value


@kernel(strict=True)
def _walk_points(data, count, image_data, image_ids, keypoints, place, ids, start):
    """(fault, value, point, image, keypoint) of the first record that cannot be; fault 0 where all can. Fills `ids` and
    `start`, where each record begins."""
    at, end, none = np.int64(8), np.int64(len(data)), np.uint64(0)
    for k in range(count):
        if at + 51 > end:
            return _CUT, none, none, none, none
        point, length = _integer(data, at, 8), _integer(data, at + 43, 8)
        ids[k], start[k] = point, at
        at += 51
        if length > np.uint64(end - at) // np.uint64(8):
            return _LONG, length, point, none, none
        for _ in range(np.int64(length)):
            image, keypoint = _integer(data, at, 4), _integer(data, at + 4, 4)
            at += 8
            i = np.searchsorted(image_ids, np.int64(image))
            if i == len(image_ids) or image_ids[i] != np.int64(image):
                return _NO_IMAGE, none, point, image, keypoint
            if np.int64(keypoint) >= keypoints[i]:
                return _NO_KEYPOINT, np.uint64(keypoints[i]), point, image, keypoint
            owner = _integer(image_data, place[i] + 24 * np.int64(keypoint) + 16, 8)
            if owner != point:
                return _OTHER, owner, point, image, keypoint
    return 0, none, none, none, none


def _check_rigs(file: Path) -> None:
    walk = _Walk(file)
    for _ in range(walk.count("<Q", 8, "entries")):
        _, sensors = walk.take("<II")
        if sensors:
            walk.take("<iI")
            here = walk.at
            walk.skip(sensors - 1, 9, "sensors")
            walk.at = here
        for _ in range(1, sensors):
            *_, has_pose = walk.take("<iIB")
            walk.skip(has_pose != 0, 56, "poses")


def _check_frames(file: Path) -> None:
    walk = _Walk(file)
    for _ in range(walk.count("<Q", 68, "entries")):
        walk.take("<II7d")
        walk.skip(walk.count("<I", 16, "images of a frame"), 16, "images of a frame")
