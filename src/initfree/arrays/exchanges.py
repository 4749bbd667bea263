"""Which mistake in a table would explain a camera that does not fit: coordinates or points exchanged, another frame rate.

Each is tried with the landmarks of the other cameras: the camera is resected from its detections as they would be without
the mistake, and the mistake is reported if that makes most of them fit where few do as they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pycolmap

from initfree.arrays.camera_reports import CameraReport, all_detections
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.stages.euclidean.triangulation import Status, triangulate

_SUSPECT = 0.3
"""share of wrong detections from which mistakes are tried"""
_LEAST = 20
"""detections that must fit with a mistake undone"""
_MOST = 0.6
"""share of the detections that must fit then"""
_MORE = 2.0
"""times as many as without"""
_NEAR_PIXELS = 8.0
_RATES = (2, 3)
"""frame rates against that of the other cameras, and their inverses"""


@dataclass(frozen=True)
class Exchange:
    """A mistake that explains a camera.

    Attributes:
        what: In words that follow "fits if".
        fitting: Detections that fit with it undone.
        detections: Of those whose landmark the other cameras see.
    """

    what: str
    fitting: int
    detections: int

    def __str__(self) -> str:
        return f"fits if {self.what} ({self.fitting:,} of {self.detections:,} detections)"


def exchanges(problem: Problem, reconstruction: Reconstruction, reports: Sequence[CameraReport]) -> dict[str, Exchange]:
    """By name, for the cameras of an array that do not fit, or were left out."""
    o = problem.observations
    placed = dict(zip(problem.names, problem.images.tolist(), strict=True))
    suspects = [placed[one.name] for one in reports if one.wrong_share > _SUSPECT and one.name in placed]
    suspects += [n for n in range(len(o.images)) if n not in set(placed.values())]
    if o.moments is None or not suspects:
        return {}
    focal = float(np.median(reconstruction.focal * o.image_unit[problem.images, 0]))
    whole, everything = all_detections(problem, reconstruction)
    at = {int(k): j for j, k in enumerate(whole.landmark_ids)}
    found: dict[str, Exchange] = {}
    for n in suspects:
        image, camera = o.images[n], o.cameras[o.images[n].camera_id]
        row = {int(number): k for k, number in enumerate(whole.images)}.get(n, -1)
        weight = np.where(whole.tracks.cam == row, 0.0, 1.0)
        xyz, status = triangulate(whole, everything, everything.xyz, weight=weight)
        xyz[status != Status.FOUND] = np.nan
        here = o.image == n
        landmark, xy = o.landmark_id[here], image.keypoints[o.keypoint[here]]
        size = np.array([camera.width, camera.height], dtype=np.float64)
        before = _fitting(xy - size / 2.0, _places(xyz, at, landmark), focal)
        best: Exchange | None = None
        for what, pixels, ids in _undone(xy, size, landmark, o.moments):
            X = _places(xyz, at, ids)
            there = int(np.count_nonzero(np.isfinite(X).all(axis=1)))
            fitting = _fitting(pixels - size / 2.0, X, focal)
            enough = max(_LEAST, _MOST * there, _MORE * before, 0 if best is None else best.fitting + 1)
            if fitting >= enough:
                best = Exchange(what, fitting, there)
        if best is not None:
            found[image.name] = best
    return found


def _places(xyz: Array, at: dict[int, int], landmark: Index) -> Array:
    rows = np.array([at.get(int(k), -1) for k in landmark], dtype=np.int64)
    return np.where((rows < 0)[:, None], np.nan, xyz[rows])


def _undone(
    xy: Array, size: Array, landmark: Index, moments: dict[int, tuple[str, str]]
) -> Iterator[tuple[str, Array, Index]]:
    """Every mistake in words, with pixels and landmarks as they would be without it."""
    yield "x and y are exchanged", xy[:, ::-1], landmark
    yield "y is counted from the other side", np.column_stack([xy[:, 0], size[1] - xy[:, 1]]), landmark
    yield "x is counted from the other side", np.column_stack([size[0] - xy[:, 0], xy[:, 1]]), landmark
    number = {moment: k for k, moment in moments.items()}
    points = sorted({point for _, point in moments.values()})
    if len(points) == 2:
        other = dict(zip(points, points[::-1], strict=True))
        ids = [number.get((moments[int(k)][0], other[moments[int(k)][1]]), 0) for k in landmark]
        yield f"{points[0]} and {points[1]} are exchanged", xy, np.array(ids, dtype=np.int64)
    try:
        frames = {int(k): int(moments[int(k)][0]) for k in landmark}
    except ValueError:
        return
    first = min(int(frame) for frame, _ in moments.values() if frame.lstrip("-").isdecimal())
    for rate in _RATES:
        slower = [number.get((str(first + (frames[int(k)] - first) * rate), moments[int(k)][1]), 0) for k in landmark]
        yield f"it has 1/{rate} of the frame rate of the others", xy, np.array(slower, dtype=np.int64)
        rest = [(frames[int(k)] - first) % rate for k in landmark]
        faster = [
            0 if left else number.get((str(first + (frames[int(k)] - first) // rate), moments[int(k)][1]), 0)
            for k, left in zip(landmark, rest, strict=True)
        ]
        yield f"it has {rate} times the frame rate of the others", xy, np.array(faster, dtype=np.int64)


def _fitting(pixels: Array, X: Array, focal: float) -> int:
    """Detections that a camera anywhere would have within some pixels."""
    there = np.isfinite(X).all(axis=1)
    if np.count_nonzero(there) < _LEAST:
        return 0
    camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=1, height=1, params=[focal, 0.0, 0.0])
    options = pycolmap.AbsolutePoseEstimationOptions()
    options.ransac.max_error = _NEAR_PIXELS
    options.ransac.random_seed = 0
    options.ransac.max_num_trials = 300
    pose = pycolmap.estimate_and_refine_absolute_pose(pixels[there], X[there], camera, options)
    return 0 if pose is None else int(pose["num_inliers"])
