"""A look at a table of detections before it is solved: mistakes that the solver would make the best of."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from initfree.data.observations import guessed_sizes
from initfree.data.tracks import Array, Index
from initfree.errors import InputError

_OUTSIDE = 0.02
"""share of a camera's detections beyond its image from which the size, or the columns, are wrong"""
_SLACK = 2.0
"""pixels beyond the border that a detector may say"""
_QUARTER = 0.505
"""share of width and height that no detection exceeds where they are of a video of half the size"""
_ENOUGH = 50
"""detections of every camera from which that is no chance"""
_NORMALISED = 2.0
"""largest coordinate, in pixels, of a table that holds shares of the image"""
_REPEATED = 0.01
"""share of repeated detections from which they are no slips"""


def check_detections(
    source: str, names: Sequence[str], image: Index, xy: Array, size: Array, given: NDArray[np.bool_], rows: Index
) -> tuple[str, ...]:
    """Raise an `InputError` for coordinates that cannot be pixels of these images; return what else to know.

    Args:
        source: Of the table.
        names: Of the cameras.
        image: (detections,) camera of each.
        xy: (detections, 2) pixels.
        size: (cameras, 2) width and height.
        given: (2,) whether the table has widths and heights.
        rows: (detections,) line of the file.
    """
    if len(xy) >= _ENOUGH and np.abs(xy).max() <= _NORMALISED:
        raise InputError(
            f"{source}: all x and y lie between {xy.min():.3g} and {xy.max():.3g}; expected pixels: multiply x by the width "
            "and y by the height of the image"
        )
    if not given.all():
        missing = " and ".join(name for name, there in zip(("width", "height"), given.tolist(), strict=True) if not there)
        return (guessed_sizes(f"the table has no {missing}", size.max(axis=0), "the columns width and height"),)
    _check_inside(source, names, image, xy, size, rows)
    reach = np.array([xy[image == k].max(axis=0, initial=0.0) for k in range(len(names))]) / size
    counts = np.bincount(image, minlength=len(names))
    if counts.min() >= _ENOUGH and (reach <= _QUARTER).all():
        w, h = size[0].astype(int)
        raise InputError(
            f"{source}: all detections of all cameras lie in the first quarter of their images ({w} x {h}); expected width "
            "and height of the video in which they were made, which probably has half the size"
        )
    return ()


def _check_inside(source: str, names: Sequence[str], image: Index, xy: Array, size: Array, rows: Index) -> None:
    outside = ((xy < -_SLACK) | (xy > size[image] + _SLACK)).any(axis=1)
    for k, name in enumerate(names):
        here = np.flatnonzero(image == k)
        bad = here[outside[here]]
        if len(bad) <= _OUTSIDE * len(here):
            continue
        w, h = size[k].astype(int)
        exchanged = (xy[here] <= size[k, ::-1] + _SLACK).all()
        hint = ": are the columns x and y exchanged, or width and height?" if exchanged else ""
        x, y = xy[bad[0]].tolist()
        raise InputError(
            f"{source}: {len(bad)} of {len(here)} detections of camera {name!r} lie outside its image of {w} x {h} pixels, "
            f"such as ({x:g}, {y:g}) in row {rows[bad[0]]}; expected pixels from the top left corner{hint}"
        )


def check_repeats(
    source: str, names: Sequence[str], image: Index, landmark: Index, moments: dict[int, tuple[str, str]], rows: Index,
    *, points: bool,
) -> tuple[str, ...]:  # fmt: skip
    """Raise an `InputError` where cameras have several detections of the same thing; a few are left out, and said."""
    order = np.lexsort((rows, landmark, image))
    again = np.flatnonzero((np.diff(image[order]) == 0) & (np.diff(landmark[order]) == 0))
    if not len(again):
        return ()
    first, second = order[again[0]], order[again[0] + 1]
    frame, point = moments[int(landmark[first])]
    what = " ".join(part for part in (f"frame {frame}" if frame else "", f"point {point}" if point else "") if part)
    where = f"camera {names[int(image[first])]!r} has {what} twice, in rows {rows[first]} and {rows[second]}"
    if len(again) <= _REPEATED * len(image):
        return (f"{len(again)} repeated detections were left out: {where}",)
    why = "have two cameras one name?" if points else "have two cameras one name, or is a column point missing?"
    raise InputError(f"{source}: {where}, and {len(again) - 1} more are repeated; expected each once: {why}")
