"""Error, wrong detections and uncertainty of each camera.

A report covers all detections of the input, also those that the solver rejected. Rejected landmarks are triangulated
robustly from the final cameras. A detection far from the landmark on which its other cameras agree is wrong (a
reflection, a swapped light, a camera out of step). Landmarks of two detections do not count: if these disagree, either
may be wrong.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.uncertainty import Uncertainty
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Tracks
from initfree.stages.euclidean.residuals import INLIER_PIXELS, residuals
from initfree.stages.euclidean.triangulation import triangulate

LEAST = 3
"""detections of a landmark, so that the others decide which is wrong"""

_LEAST_A_SIDE = 20
"""detections before and after a move that establish it"""
_WRONG_SIDE, _RIGHT_SIDE = 0.8, 0.3
"""shares of wrong detections on the two sides of a move"""


@dataclass(frozen=True)
class CameraReport:
    """Figures of one camera.

    Attributes:
        name: Name of its image.
        detections: Detections of landmarks with at least three detections.
        wrong: Those more than 4 px off, or behind the camera.
        mean_pixels: Mean error of the others.
        rotation_degrees: Standard deviation of the rotation.
        centre_share_of_extent: Standard deviation of the centre, as a share of the scene's extent.
        focal_share: Standard deviation of the focal length, as a share of it; None where the intrinsics are exact.
        moved: Frame at which a camera of an array moved: its detections are right on one side of it, wrong on the other.
    """

    name: str
    detections: int
    wrong: int
    mean_pixels: float
    rotation_degrees: float
    centre_share_of_extent: float
    focal_share: float | None
    moved: str | None = None

    @property
    def wrong_share(self) -> float:
        return self.wrong / max(self.detections, 1)


def camera_reports(problem: Problem, reconstruction: Reconstruction, uncertainty: Uncertainty) -> tuple[CameraReport, ...]:
    """Reports of all solved cameras, in the order of the input."""
    judged, found = all_detections(problem, reconstruction)
    cam, cameras = judged.tracks.cam, judged.tracks.cameras
    r = residuals(judged, found)
    fits = r.within(INLIER_PIXELS)
    detections, right = np.bincount(cam, minlength=cameras), np.bincount(cam[fits], minlength=cameras)
    error = np.bincount(cam[fits], weights=r.error[fits], minlength=cameras)
    ids = [problem.observations.images[k].image_id for k in problem.images]
    return tuple(
        CameraReport(
            name,
            int(detections[k]),
            int(detections[k] - right[k]),
            float(error[k] / right[k]) if right[k] else float("nan"),
            float(uncertainty.rotation[k]),
            float(uncertainty.centre[k]),
            None if problem.exact else float(uncertainty.focal[k]),
            _moved(judged, k, ~fits),
        )
        for _, k, name in sorted(zip(ids, range(cameras), problem.names, strict=True))
    )


def _moved(judged: Problem, camera: int, wrong: NDArray[np.bool_]) -> str | None:
    """The frame at which a camera moved: it separates the detections that fit from those that do not.

    Of all frames, the one for which "right on one side, wrong on the other" holds for most detections. Reflections occur
    throughout a recording, and no frame separates them.
    """
    moments = judged.observations.moments
    mine = np.flatnonzero(judged.tracks.cam == camera)
    if moments is None or len(mine) < 2 * _LEAST_A_SIDE:
        return None
    # Ids of arrays count frames in their order.
    mine = mine[np.argsort(judged.tracks.landmark[mine], kind="stable")]
    before = np.cumsum(wrong[mine])[_LEAST_A_SIDE - 1 : -_LEAST_A_SIDE]
    count = np.arange(_LEAST_A_SIDE, len(mine) - _LEAST_A_SIDE + 1)
    shares = np.stack([before / count, (wrong[mine].sum() - before) / (len(mine) - count)])
    best = int(np.argmax(np.abs(shares[0] - shares[1])))
    if shares[:, best].max() < _WRONG_SIDE or shares[:, best].min() > _RIGHT_SIDE:
        return None
    return moments[int(judged.landmark_ids[judged.tracks.landmark[mine[count[best]]]])][0]


def all_detections(problem: Problem, reconstruction: Reconstruction) -> tuple[Problem, Reconstruction]:
    """The problem with every detection of its cameras, and the reconstruction with all their landmarks."""
    o = problem.observations
    camera = np.full(len(o.images), -1)
    camera[problem.images] = np.arange(len(problem.images))
    rows = np.flatnonzero(camera[o.image] >= 0)
    _, landmark, count = np.unique(o.landmark_id[rows], return_inverse=True, return_counts=True)
    rows = rows[count[landmark] >= LEAST]
    ids, landmark, count = np.unique(o.landmark_id[rows], return_inverse=True, return_counts=True)
    rows = rows[np.lexsort((camera[o.image[rows]], landmark))]
    tracks = Tracks(camera[o.image[rows]], np.concatenate([[0], np.cumsum(count)]).astype(np.int64), len(problem.images))
    m, unit = np.ascontiguousarray(o.normalised[rows]), np.ascontiguousarray(o.image_unit[o.image[rows]])
    everything = replace(problem, tracks=tracks, m=m, unit=unit, landmark_ids=ids, keypoint=o.keypoint[rows])
    xyz = np.full((len(ids), 3), np.nan)
    _, mine, theirs = np.intersect1d(ids, problem.landmark_ids, assume_unique=True, return_indices=True)
    xyz[mine] = reconstruction.xyz[theirs]
    new = np.flatnonzero(np.isnan(xyz).any(axis=1))
    if len(new):
        part = np.isin(tracks.landmark, new)
        ptr = np.concatenate([[0], np.cumsum(count[new])]).astype(np.int64)
        some = Tracks(np.ascontiguousarray(tracks.cam[part]), ptr, tracks.cameras)
        xyz[new] = triangulate(replace(everything, tracks=some, m=m[part], unit=unit[part]), reconstruction)[0]
    return everything, replace(reconstruction, xyz=xyz, ids=ids)
