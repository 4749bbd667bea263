"""The problem: observations filtered, sorted and indexed, built once and solved many times."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from initfree.data.from_arrays import flattened, observations_from_tracks
from initfree.data.observations import FocalPrior, Intrinsics, Observations
from initfree.data.tracks import Array, Index, Tracks
from initfree.errors import InputError

MIN_CAMERA_OBSERVATIONS = 6
"""A projective camera has 11 degrees of freedom; six observations give twelve equations."""


Calibration = Literal["given", "found", "free"]
"""focal lengths and distortion of a problem. given: the input's, taken as exact; found: estimated from these
observations, and as uncertain as the cameras; free: unknowns of the solve"""

_MANY_PAIRS = 4000
"""pairs of cameras that share landmarks, each counted twice; fewer pairs stay in a core's cache in any order"""


@dataclass(frozen=True)
class Dropped:
    """Observations, landmarks and images that a problem leaves out.

    Attributes:
        repeated_observations: Second observations of a landmark in the same image.
        undistortable_observations: Observations without an inverse under the camera's distortion.
        observations: Observations of tracks that are too short, of cameras with too few, or of another component.
        landmarks: Landmarks left out.
        images: Names of the images left out.
        components: Connected components of the covisibility graph after filtering; the solver takes the largest.
    """

    repeated_observations: int
    undistortable_observations: int
    observations: int
    landmarks: int
    images: tuple[str, ...]
    components: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Filtered observations, sorted by landmark and camera: built once, solved many times.

    Attributes:
        observations: The input, before filtering.
        tracks: Camera and landmark of every observation.
        m: Normalised coordinates, (observations, 2).
        unit: Pixels per normalised unit, (observations, 2).
        images: Index of each solved camera in `observations.images`, (cameras,).
        landmark_ids: The input's id of each landmark, (landmarks,).
        keypoint: Index of each observation among its image's keypoints, (observations,).
        min_obs: Fewest observations of a landmark.
        dropped: Counts of what filtering left out.
        intrinsics: Whether this problem's intrinsics are given, found by an adjustment, or free. The input's own statement
            stays in `observations.intrinsics`.
        rays: Whether `m` are rays through calibrated cameras, or pixels scaled to about [-1, 1].
    """

    observations: Observations
    tracks: Tracks
    m: Array
    unit: Array
    images: Index
    landmark_ids: Index
    keypoint: Index
    min_obs: int
    dropped: Dropped
    intrinsics: Calibration
    rays: bool

    @property
    def calibrated(self) -> bool:
        """Whether the solve keeps the intrinsics fixed; `m` are then calibrated rays."""
        return self.intrinsics != "free"

    @property
    def exact(self) -> bool:
        """Whether the intrinsics are taken as exact."""
        return self.intrinsics == "given"

    @cached_property
    def camera_ids(self) -> Index:
        """The input's camera of each solved image; images of one camera share their intrinsics."""
        return np.array([self.observations.images[k].camera_id for k in self.images])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Image names of the solved cameras."""
        return tuple(self.observations.images[k].name for k in self.images)

    @cached_property
    def focal_range(self) -> tuple[Array, Array]:
        """(cameras,) the shortest and the longest focal length that a camera can have, in normalised units: COLMAP's 0.1 and
        10 times the image's longer side."""
        cameras, unit = self.observations.cameras, self.observations.image_unit[self.images].mean(axis=1)
        size = np.array([max(cameras[int(k)].width, cameras[int(k)].height) for k in self.camera_ids])
        return 0.1 * size / unit, 10.0 * size / unit

    @property
    def focal_priors(self) -> tuple[FocalPrior, ...] | None:
        """Of every solved camera; None where the input says nothing of how far its focal lengths can be trusted."""
        priors = self.observations.focal_priors
        return None if priors is None else tuple(priors[int(k)] for k in self.camera_ids)

    @classmethod
    def from_tracks(
        cls,
        image: Any,
        landmark: Any,
        xy: Any,
        *,
        cameras: Any = None,
        names: Sequence[str] | None = None,
        sizes: Any = None,
        intrinsics: Intrinsics | None = None,
        min_obs: int = 3,
    ) -> "Problem":
        """Make a problem from arrays of observations.

        Args:
            image: Image of each observation, numbered from 0, (observations,).
            landmark: Landmark of each observation, any whole numbers, (observations,).
            xy: Position in pixels, (observations, 2).
            cameras: A K matrix (3x3) or a pycolmap.Camera, one for all images or a list of one for each; None if unknown. If
                K is the identity, or any focal length is below 10, `xy` are rays, and errors are reported in pixels of a
                camera with a focal length of 1000.
            names: Names of the images.
            sizes: Width and height of all images, or of each; by default the range of the observations.
            intrinsics: "known" (the default with `cameras`), "refine" or "unknown".
            min_obs: Fewest observations of a landmark.
        """
        found = observations_from_tracks(
            image, landmark, xy, cameras=cameras, names=names, sizes=sizes, intrinsics=intrinsics
        )
        return build_problem(found, min_obs)

    @classmethod
    def from_tracker(cls, xy: Any, visible: Any = None, **options: Any) -> "Problem":
        """Make a problem from the array of a point tracker.

        Args:
            xy: Positions in pixels, (frames, points, 2); NaN where a point is not visible.
            visible: Visibility, (frames, points).
            options: As for `from_tracks`.
        """
        return cls.from_tracks(*flattened(xy, visible), **options)

    def __repr__(self) -> str:
        t = self.tracks
        return f"Problem({t.cameras} cameras, {t.landmarks} landmarks, {t.observations} observations)"


def build_problem(observations: Observations, min_obs: int = 3, among: NDArray[np.bool_] | None = None) -> Problem:
    """Filter the observations, keep the largest connected component, and sort.

    Removes landmarks with fewer than `min_obs` observations and cameras with fewer than six, until none is left to remove.
    `among` (images,) selects some of the images.
    """
    if min_obs < 2:
        raise InputError(f"min_obs is {min_obs}; expected at least 2, because one observation fixes no landmark")
    o = observations
    _check_count(o, len(o.images))
    if len(o.image) == 0:
        raise InputError(f"{o.source} has no observations: none of its keypoints belongs to a landmark")
    _check_count(o, len(np.unique(o.image)), " with observations")
    _, landmark = np.unique(o.landmark_id, return_inverse=True)
    wanted = np.ones(len(landmark), dtype=bool) if among is None else among[o.image]
    keep = _filter(o.image, landmark, wanted, min_obs)
    components = 0
    if keep.any():
        keep, components = _largest_component(o.image, landmark, keep)
        keep = _filter(o.image, landmark, keep, min_obs)
    images, cam = np.unique(o.image[keep], return_inverse=True)
    ids, point = neighbours_together(cam, *np.unique(o.landmark_id[keep], return_inverse=True))
    if len(images) < 2:
        raise InputError(
            f"{o.source}: no two images are connected by landmarks with at least {min_obs} observations "
            f"({len(o.images)} images, {len(np.unique(landmark))} landmarks); lower --min-obs or add matches"
        )
    unknowns = 11 * len(images) + 3 * len(ids) - 15
    if 2 * len(cam) < unknowns:
        raise InputError(
            f"{o.source}: {len(cam)} observations give {2 * len(cam)} equations for {unknowns} unknowns "
            f"({len(images)} cameras, {len(ids)} landmarks); expected at least as many"
        )
    order = np.lexsort((cam, point))
    kept = np.flatnonzero(keep)[order]
    tracks = Tracks(
        np.ascontiguousarray(cam[order], dtype=np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(point))]).astype(np.int64),
        len(images),
    )
    lost = sorted(set(range(len(o.images))) - set(images.tolist()))
    return Problem(
        observations=o,
        tracks=tracks,
        m=np.ascontiguousarray(o.normalised[kept]),
        unit=np.ascontiguousarray(o.image_unit[o.image[kept]]),
        images=images.astype(np.int64),
        landmark_ids=ids.astype(np.int64),
        keypoint=o.keypoint[kept],
        min_obs=min_obs,
        dropped=Dropped(
            repeated_observations=o.repeated,
            undistortable_observations=o.undistortable,
            observations=len(o.image) - len(cam),
            landmarks=int(landmark.max()) + 1 - len(ids),
            images=tuple(o.images[k].name for k in lost),
            components=components,
        ),
        intrinsics="given" if o.intrinsics == "known" else "free",
        rays=o.intrinsics != "unknown",
    )


def _check_count(observations: Observations, count: int, which: str = "") -> None:
    if count < 3:
        one = "image" if observations.moments is None else "camera"
        expected = f"expected at least 3, because two {one}s do not check each other"
        raise InputError(f"{observations.source} has {count} {one}{'' if count == 1 else 's'}{which}; {expected}")


def neighbours_together(cam: Index, ids: Index, point: Index) -> tuple[Index, Index]:
    """Order the landmarks so that those of the same cameras are close to each other, if there are many cameras.

    The keys are the first and last camera of a landmark, with the cameras in the order of Cuthill and McKee (1969). Kernels
    then find the cameras of a landmark in the cache.
    """
    cameras = int(cam.max(initial=0)) + 1
    seen = csr_array((np.ones(len(cam), dtype=np.int64), (point, cam)), shape=(len(ids), cameras))
    shared = csr_array(seen.T @ seen)
    if shared.nnz <= _MANY_PAIRS:
        return ids, point
    rank = np.empty(cameras, dtype=np.int64)
    rank[reverse_cuthill_mckee(shared, symmetric_mode=True)] = np.arange(cameras)
    first, last = np.full(len(ids), cameras), np.zeros(len(ids), dtype=np.int64)
    np.minimum.at(first, point, rank[cam])
    np.maximum.at(last, point, rank[cam])
    order = np.lexsort((last, first))
    place = np.empty(len(ids), dtype=np.int64)
    place[order] = np.arange(len(ids))
    return ids[order], place[point]


def _filter(image: Index, landmark: Index, keep: NDArray[np.bool_], min_obs: int) -> NDArray[np.bool_]:
    while True:
        seen = np.bincount(landmark[keep], minlength=landmark.max() + 1)
        seeing = np.bincount(image[keep], minlength=image.max() + 1)
        good = keep & (seen[landmark] >= min_obs) & (seeing[image] >= MIN_CAMERA_OBSERVATIONS)
        if good.sum() == keep.sum():
            return keep
        keep = good


def _largest_component(image: Index, landmark: Index, keep: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int]:
    """Observations of the component with most images (then most observations), and the number of components."""
    i, j = image[keep], landmark[keep]
    n = int(image.max()) + 1
    graph = coo_array((np.ones(len(i)), (i, n + j)), shape=(n + int(landmark.max()) + 1,) * 2)
    _, label = connected_components(graph, directed=False)
    sizes = np.bincount(label[i])
    images = np.bincount(label[np.unique(i)], minlength=len(sizes))
    return keep & (label[image] == np.lexsort((sizes, images))[-1]), int(np.count_nonzero(sizes))


def of_other_images(problem: Problem, taken: Iterable[str]) -> Problem | None:
    """The largest component of the images that are not `taken`; None where no three of them are connected."""
    o, names = problem.observations, set(taken)
    try:
        rest = build_problem(o, problem.min_obs, np.array([image.name not in names for image in o.images]))
    except InputError:
        return None
    return rest if rest.tracks.cameras >= 3 else None


def restricted(problem: Problem, keep: NDArray[np.bool_], least: int = 3) -> tuple[Problem, Index] | None:
    """The problem of the observations `keep` with all its cameras, and the indices of the remaining landmarks.

    Landmarks need `least` observations. None if a camera would have fewer than six, or the graph would be disconnected.
    """
    t = problem.tracks
    seen = np.bincount(t.landmark[keep], minlength=t.landmarks)
    kept = np.flatnonzero(keep & (seen >= least)[t.landmark])
    cam = t.cam[kept]
    if len(kept) == 0 or np.bincount(cam, minlength=t.cameras).min() < MIN_CAMERA_OBSERVATIONS:
        return None
    if _largest_component(cam, t.landmark[kept], np.ones(len(cam), dtype=bool))[1] > 1:
        return None
    part, _, left = _part(problem, kept)
    return part, left


def without_cameras(problem: Problem, cameras: Index) -> tuple[Problem, Index, Index] | None:
    """The problem without some cameras, and the indices of the remaining cameras and landmarks; None if fewer than three
    remain.

    Also removes landmarks that then have fewer than three observations, cameras with fewer than six, and smaller components.
    """
    return connected_part(problem, ~np.isin(problem.tracks.cam, cameras))


def connected_part(problem: Problem, keep: NDArray[np.bool_]) -> tuple[Problem, Index, Index] | None:
    """The largest connected problem of the observations `keep`, and the indices of its cameras and landmarks.

    None if fewer than three cameras remain, with six observations each, of landmarks with three."""
    t = problem.tracks
    keep = _filter(t.cam, t.landmark, keep, 3)
    if keep.any():
        keep, _ = _largest_component(t.cam, t.landmark, keep)
        keep = _filter(t.cam, t.landmark, keep, 3)
    return _part(problem, np.flatnonzero(keep)) if len(np.unique(t.cam[keep])) >= 3 else None


def _part(problem: Problem, kept: Index) -> tuple[Problem, Index, Index]:
    """The problem of the observations `kept`, and the indices of its cameras and landmarks."""
    t = problem.tracks
    stay, cam = np.unique(t.cam[kept], return_inverse=True)
    left, landmark = np.unique(t.landmark[kept], return_inverse=True)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(landmark))]).astype(np.int64)
    gone = np.setdiff1d(np.arange(t.cameras), stay)
    part = replace(
        problem,
        tracks=Tracks(cam.astype(np.int64), ptr, len(stay)),
        m=np.ascontiguousarray(problem.m[kept]),
        unit=np.ascontiguousarray(problem.unit[kept]),
        images=problem.images[stay],
        landmark_ids=problem.landmark_ids[left],
        keypoint=problem.keypoint[kept],
        dropped=replace(
            problem.dropped,
            observations=problem.dropped.observations + t.observations - len(kept),
            landmarks=problem.dropped.landmarks + t.landmarks - len(left),
            images=(*problem.dropped.images, *(problem.names[k] for k in gone)),
        ),
    )
    return part, stay, left
