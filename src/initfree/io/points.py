"""The landmarks of a written model.

Accepted and refused reconstructions are cleaned alike. Observations more than 4 px off or behind their camera leave their
track. Tracks with fewer than two observations, or too little parallax, leave the model. The solver does not use tracks of
two observations (only one equation would contradict a wrong one); they are triangulated with the final cameras and tested
more strictly than others.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from initfree.certificate.depths import with_depth
from initfree.data.observations import Observations
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index, Tracks
from initfree.stages.euclidean.residuals import INLIER_PIXELS, residuals
from initfree.stages.euclidean.triangulation import triangulate
from initfree.two_view.agreeing_matches import tracks_of_agreeing_matches

FAR = 2.0
"""multiple of the distance of nearly all landmarks from their middle, beyond which two observations are no landmark"""
MIN_ANGLE = 1.0
"""degrees between the widest rays of a landmark: least parallax of a written landmark"""
SHORT_ANGLE = 2.0
"""degrees, for tracks that the solver did not use"""
SHORT_PIXELS = 2.0
"""largest error of their observations"""
SHORT_DEPTH = 3.0
"""factor beyond the nearest and farthest percent of the depths of their images"""


@dataclass(frozen=True)
class Points:
    """Landmarks with their observations, sorted by landmark and image."""

    ids: Index
    xyz: Array
    ptr: Index
    """observations of landmark j are ptr[j]:ptr[j + 1]"""
    camera: Index
    """(observations,) number of the solved camera"""
    keypoint: Index
    outliers: int = 0
    """observations removed"""
    left_out: int = 0
    """landmarks removed"""
    brought_back: int = 0
    """landmarks of tracks that the solver did not use"""


def points_to_write(problem: Problem, reconstruction: Reconstruction) -> Points:
    """Landmarks that pass the tests with the final cameras, from solved and shorter tracks. If the input has verified
    matches, the tracks come from all matches that agree with the cameras, and their landmarks are numbered from 1."""
    again = tracks_of_agreeing_matches(problem, reconstruction, INLIER_PIXELS, least=3)
    if again is not None:
        xyz, _ = triangulate(again, reconstruction, scale=INLIER_PIXELS)
        problem, reconstruction = again, replace(reconstruction, xyz=xyz, ids=again.landmark_ids)
    solved = _judged(problem, reconstruction, INLIER_PIXELS, MIN_ANGLE)
    short = _short_tracks(problem, reconstruction, solved)
    if short is None or not len(short.ids):
        return solved
    ids = np.concatenate([solved.ids, short.ids])
    order = np.argsort(ids, kind="stable")
    count = np.concatenate([np.diff(solved.ptr), np.diff(short.ptr)])
    start = np.concatenate([solved.ptr[:-1], solved.ptr[-1] + short.ptr[:-1]])
    rows = _spans(start[order], count[order])
    return Points(
        ids[order],
        np.concatenate([solved.xyz, short.xyz])[order],
        _ptr(count[order]),
        np.concatenate([solved.camera, short.camera])[rows],
        np.concatenate([solved.keypoint, short.keypoint])[rows],
        solved.outliers,
        solved.left_out,
        len(short.ids),
    )


def _judged(problem: Problem, reconstruction: Reconstruction, pixels: float, angle: float) -> Points:
    """Observations within `pixels`, of landmarks with a parallax of `angle` degrees or more whose depth does not depend
    on one observation."""
    tracks, xyz = problem.tracks, reconstruction.xyz
    fits = residuals(problem, reconstruction).within(pixels) & np.isfinite(xyz).all(axis=1)[tracks.landmark]
    held = widest_angles(tracks, reconstruction.centres, xyz, fits) >= angle
    held &= with_depth(problem, reconstruction, fits)
    fits &= held[tracks.landmark]
    count = np.bincount(tracks.landmark[fits], minlength=tracks.landmarks)
    fits &= (count >= 2)[tracks.landmark]
    # What is left of a longer track always meets somewhere: far away, two observations of it are no landmark.
    count[(count == 2) & (np.diff(tracks.ptr) > 2) & _far(xyz, count >= 3)] = 0
    fits &= (count >= 2)[tracks.landmark]
    stay = np.flatnonzero(count >= 2)
    return Points(
        problem.landmark_ids[stay], xyz[stay], _ptr(count[stay]), tracks.cam[fits], problem.keypoint[fits],
        int(np.count_nonzero(~fits)), tracks.landmarks - len(stay),
    )  # fmt: skip


def _far(xyz: Array, sure: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(landmarks,): farther from the middle of the landmarks that are sure than twice nearly all of these."""
    if not sure.any():
        return np.zeros(len(xyz), dtype=bool)
    distance = np.linalg.norm(xyz - np.median(xyz[sure], axis=0), axis=1)
    return ~(distance <= FAR * np.quantile(distance[sure], 0.95))


def widest_angles(tracks: Tracks, centres: Array, xyz: Array, used: NDArray[np.bool_]) -> Array:
    """Of every landmark, degrees between its two rays that are farthest apart; zero where fewer than two are used.

    Found as for the diameter of a tree: the ray farthest from the first one, and the ray farthest from that.
    """
    ray = xyz[tracks.landmark] - centres[tracks.cam]
    with np.errstate(invalid="ignore", divide="ignore"):
        ray /= np.linalg.norm(ray, axis=1, keepdims=True)
    rows = np.flatnonzero(used & np.isfinite(ray).all(axis=1))
    result = np.zeros(tracks.landmarks)
    if not len(rows):
        return result
    begin = np.flatnonzero(np.concatenate([[True], np.diff(tracks.landmark[rows]) != 0]))
    landmark, size = tracks.landmark[rows[begin]], np.diff(np.append(begin, len(rows)))
    chord = np.linalg.norm(ray[rows] - ray[rows[np.repeat(begin, size)]], axis=1)
    farthest = np.lexsort((-chord, tracks.landmark[rows]))[begin]
    chord = np.maximum.reduceat(np.linalg.norm(ray[rows] - ray[rows[np.repeat(farthest, size)]], axis=1), begin)
    result[landmark] = np.degrees(2.0 * np.arcsin(np.minimum(chord / 2.0, 1.0)))
    return result


def _short_tracks(problem: Problem, reconstruction: Reconstruction, solved: Points) -> Points | None:
    """Landmarks with too few observations for the solver, triangulated with the final cameras."""
    o = problem.observations
    camera = np.full(len(o.images), -1)
    camera[problem.images] = np.arange(len(problem.images))
    rows = np.flatnonzero((camera[o.image] >= 0) & ~np.isin(o.landmark_id, problem.landmark_ids))
    rows = rows[~_taken(o, rows, problem)]
    _, landmark, count = np.unique(o.landmark_id[rows], return_inverse=True, return_counts=True)
    rows = rows[count[landmark] >= 2]
    if not len(rows):
        return None
    ids, landmark, count = np.unique(o.landmark_id[rows], return_inverse=True, return_counts=True)
    rows = rows[np.lexsort((camera[o.image[rows]], landmark))]
    tracks = Tracks(camera[o.image[rows]], _ptr(count), len(problem.images))
    m, unit = np.ascontiguousarray(o.normalised[rows]), np.ascontiguousarray(o.image_unit[o.image[rows]])
    short = replace(problem, tracks=tracks, m=m, unit=unit, landmark_ids=ids, keypoint=o.keypoint[rows])
    xyz, _ = triangulate(short, reconstruction)
    xyz[~_within_reach(tracks, reconstruction, xyz, solved)] = np.nan
    return _judged(short, replace(reconstruction, xyz=xyz), SHORT_PIXELS, SHORT_ANGLE)


def _taken(o: Observations, rows: Index, problem: Problem) -> NDArray[np.bool_]:
    """Whether each observation shares its keypoint with one that the solver used."""
    width = int(o.keypoint.max(initial=0)) + 1
    used = problem.images[problem.tracks.cam] * width + problem.keypoint
    return np.isin(o.image[rows] * width + o.keypoint[rows], used)


def _within_reach(tracks: Tracks, reconstruction: Reconstruction, xyz: Array, solved: Points) -> NDArray[np.bool_]:
    """Whether a landmark lies in the range of depths that each of its images has, with a factor to spare."""
    seen = np.repeat(np.arange(len(solved.ids)), np.diff(solved.ptr))
    depth = np.einsum("nk,nk->n", reconstruction.R[solved.camera, 2], solved.xyz[seen]) + reconstruction.t[solved.camera, 2]
    near, far = np.full(tracks.cameras, np.inf), np.full(tracks.cameras, -np.inf)
    order = np.argsort(solved.camera, kind="stable")
    for k, mine in enumerate(np.split(depth[order], np.searchsorted(solved.camera[order], np.arange(1, tracks.cameras)))):
        if len(mine):
            near[k], far[k] = np.quantile(mine, 0.01) / SHORT_DEPTH, np.quantile(mine, 0.99) * SHORT_DEPTH
    z = np.einsum("nk,nk->n", reconstruction.R[tracks.cam, 2], xyz[tracks.landmark]) + reconstruction.t[tracks.cam, 2]
    with np.errstate(invalid="ignore"):
        fine = (z >= near[tracks.cam]) & (z <= far[tracks.cam])
    return np.logical_and.reduceat(fine, tracks.ptr[:-1])


def _ptr(count: Index) -> Index:
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def _spans(start: Index, count: Index) -> Index:
    """start[0], start[0] + 1, ... start[0] + count[0] - 1, start[1], ..."""
    return np.repeat(start - _ptr(count)[:-1], count) + np.arange(int(count.sum()))
