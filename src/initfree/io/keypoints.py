"""Keypoints of pose estimators: one file or folder a camera, whose frames are those of the others.

Every reader of them ends here: an image is a camera, a landmark a point in a frame. Intrinsics are those of a calibration
in the folder (`calibrations`). Without one they are unknown; the images' sizes too, and what the detections of all cameras
span stands for them.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from initfree.data.observations import Intrinsics, Observations, guessed_sizes
from initfree.errors import InputError
from initfree.io.calibrations import calibrations_beside
from initfree.io.columns import combined, labels, moments_of
from initfree.io.rows import observations_of_array, unknown_camera

MIN_CONFIDENCE = 0.5
"""least confidence of a used detection"""
MOST_PIXELS = 1e5
"""width of an image that is none"""

Detection = tuple[int, str, float, float, float]
"""frame, point, x, y, confidence"""


def observations_of_keypoints(
    path: Path, cameras: Mapping[str, Iterable[Detection]], intrinsics: Intrinsics | None
) -> Observations:
    """Observations of the detections with coordinates and sufficient confidence."""
    given = calibrations_beside(path, list(cameras))
    if given is None and intrinsics not in (None, "unknown"):
        raise InputError(f"{path} has keypoints and no intrinsics; expected --intrinsics unknown, not {intrinsics}")
    names, points = list(cameras), list[str]()
    image, frames, xy = array("q"), array("q"), array("d")
    for k, (name, detections) in enumerate(cameras.items()):
        for frame, point, x, y, confidence in detections:
            if np.isnan(confidence) or np.isnan(x) or np.isnan(y) or confidence < MIN_CONFIDENCE:
                continue
            # Networks end with a score that may be a hair above one; one far above is none.
            if not confidence <= 1.01:
                raise InputError(
                    f"{path}: camera {name!r} has {point!r} of frame {frame} with confidence {confidence:g}; expected 0 to 1"
                )
            if not max(abs(x), abs(y)) < MOST_PIXELS:
                raise InputError(
                    f"{path}: camera {name!r} has {point!r} of frame {frame} at [{x:g}, {y:g}]; expected pixels of an image"
                )
            image.append(k)
            frames.append(frame)
            points.append(point)
            xy.extend((x, y))
    if not xy:
        raise InputError(f"{path} has no detection of confidence {MIN_CONFIDENCE:g} or more in {len(names)} cameras")
    landmark = combined(labels(frames)[1], labels(points)[1])
    moments = moments_of(landmark, frames, points)
    pixels = np.frombuffer(xy, dtype=np.float64).reshape(-1, 2)
    rows = np.frombuffer(image, dtype=np.int64), landmark, pixels
    if given is not None:
        return observations_of_array(str(path), names, given, *rows, intrinsics or "known", moments)
    size = 1.0 + np.ceil(np.abs(pixels).max(axis=0))
    models = [unknown_camera(*size) for _ in names]
    found = observations_of_array(str(path), names, models, *rows, "unknown", moments)
    note = guessed_sizes(f"{path} has no sizes of images", size, "a calibration, or convert it to a table with them")
    return replace(found, notes=(note,), sizes_guessed=True)


def named_apart(path: Path, files: list[Path], names: list[str]) -> dict[str, Path]:
    """Files by the names of their cameras, which must differ."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        both = [file.name for file, name in zip(files, names, strict=True) if name == twice]
        raise InputError(f"{path}: {both[0]} and {both[1]} are both of camera {twice!r}; expected one file a camera")
    return dict(zip(names, files, strict=True))
