"""A plain table of detections, CSV or Parquet: camera, frame, point, x, y[, confidence].

Fixed cameras see points at many moments: an image is a camera, and a landmark a point in a frame. A table with `image` in
place of `camera` and no frame is one of tracks: a landmark is a point. Pixels; intrinsics are unknown, one camera for each.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from initfree.data.observations import Intrinsics, Observations, check_count
from initfree.data.tracks import rows_of_each
from initfree.errors import InputError
from initfree.io.columns import combined, find, labels, moments_of, numbers, optional, read_columns
from initfree.io.keypoints import MIN_CONFIDENCE
from initfree.io.look import check_detections, check_repeats
from initfree.io.rows import observations_of_array, unknown_camera

_KNOWN = {
    "camera": ("camera", "cam", "cam_id", "image", "view"),
    "frame": ("frame", "sync_index", "time"),
    "point": ("point", "keypoint", "point_id", "keypoint_id", "track", "landmark"),
    "x": ("x", "img_loc_x", "u"),
    "y": ("y", "img_loc_y", "v"),
    "confidence": ("confidence", "likelihood", "score"),
    "width": ("width",),
    "height": ("height",),
}


def is_table(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in {".csv", ".parquet"}


def read_observations(path: Path, intrinsics: Intrinsics | None = None) -> Observations:
    """Rows without coordinates, or of little confidence, were not seen."""
    if intrinsics not in (None, "unknown"):
        raise InputError(f"{path} is a table, which has no intrinsics; expected --intrinsics unknown, not {intrinsics}")
    columns = read_columns(path, *_KNOWN.values())
    names, image = labels(find(path, columns, _KNOWN["camera"]))
    check_count(str(path), len(names))
    frame, point = (optional(columns, _KNOWN[key]) for key in ("frame", "point"))
    if frame is None and point is None:
        raise InputError(f"{path} has no column frame or point; its columns are {', '.join(columns)}")
    landmark = combined(*(labels(column)[1] for column in (frame, point) if column is not None))
    moments = moments_of(landmark, frame, *([] if point is None else [point]))
    xy = np.stack([numbers(path, key, find(path, columns, _KNOWN[key])) for key in ("x", "y")], axis=1)
    if np.isinf(xy).any():
        bad = int(np.flatnonzero(np.isinf(xy).any(axis=1))[0])
        raise InputError(f"{path}: row {bad + 2} has an observation at {xy[bad].tolist()}; expected finite numbers")
    seen = np.asarray(~np.isnan(xy).any(axis=1))
    confidence = optional(columns, _KNOWN["confidence"])
    if confidence is not None:
        value = numbers(path, "confidence", confidence)
        bad = np.flatnonzero((value < 0.0) | (value > 1.0))
        if len(bad):
            raise InputError(f"{path}: confidence is {value[bad[0]]:g} in row {bad[0] + 2}; expected a number from 0 to 1")
        seen &= ~(value < MIN_CONFIDENCE)
    if not seen.any():
        raise InputError(f"{path} has no observation that can be used ({len(seen)} rows)")
    rows = rows_of_each(image, len(names))
    line = np.arange(2, len(seen) + 2)
    points = point is not None
    notes = check_repeats(str(path), names, image[seen], landmark[seen], moments, line[seen], points=points)
    size = np.array([1.0 + np.ceil(np.abs(xy[here[seen[here]]]).max(axis=0, initial=1.0)) for here in rows])
    for axis, key in enumerate(("width", "height")):
        given = optional(columns, _KNOWN[key])
        if given is not None:
            value = numbers(path, key, given)
            for k in range(len(names)):
                sizes = np.unique(value[rows[k]])
                if len(sizes) != 1 or not sizes[0] >= 1:
                    raise InputError(
                        f"{path}: camera {names[k]!r} has the {key}s {sizes.tolist()[:3]}; expected one, positive"
                    )
                size[k, axis] = sizes[0]
    given = np.array([optional(columns, _KNOWN[key]) is not None for key in ("width", "height")])
    # Cameras of an array mostly are of one kind: the largest span is closest to the size of all.
    size[:, ~given] = size[:, ~given].max(axis=0)
    notes += check_detections(str(path), names, image[seen], xy[seen], size, given, line[seen])
    cameras = [unknown_camera(*size[k]) for k in range(len(names))]
    found = observations_of_array(str(path), names, cameras, image[seen], landmark[seen], xy[seen], "unknown", moments)
    return replace(found, notes=notes, sizes_guessed=not given.all())
