"""Do the misfits across the weakest joint agree on another joint? Wrong matches agree on nothing.

Two parts of a scene that are joined wrongly, because two places look alike, fit all that says so; the tracks that say how
they are joined indeed are outvoted, and look like wrong matches, one by one. But each part is right in itself: a landmark of
such a track has a place X by the images of one part, and a place Y by those of the other, and

    Y = s R X + T

with one similarity for all. It is looked for among three misfits at a time (RANSAC). Where the input has verified pairs of
images, their matches between two different landmarks are misfits as well. How many may agree by chance follows from the
number of hypotheses, a contrario (Moisan and Stival 2004).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from initfree.certificate.closeness import closeness
from initfree.certificate.thresholds import DIFFERENT_AUC20
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index, Tracks
from initfree.stages.euclidean.residuals import INLIER_PIXELS, residuals
from initfree.stages.euclidean.triangulation import triangulate

AGREES = 8.0
"""pixels within which a misfit agrees with a similarity, in the median of the images that it is moved to"""
TRIALS, MISSED = 300, 1e-4
"""similarities that are tried, and the probability to have missed a better one at which fewer do"""
LEAST = 6
"""misfits: fewer say nothing"""
MOST = 2000
"""misfits, drawn by chance, that are tried"""
LEAST_SHARE, LEAST_OF_FITTING = 0.25, 0.15
"""of the misfits, and over the landmarks that fit, that agree: a row of equal windows agrees on a joint of its own"""
BY_CHANCE = 1e-3
"""expected number of hypotheses that as many misfits agree with by chance"""


@dataclass(frozen=True, eq=False)
class Contradiction:
    """What the misfits across a joint say."""

    misfits: int
    agreeing: int
    """with one other similarity"""
    fitting: int
    """landmarks that fit on both sides as they are joined"""
    chance: float
    """expected number of hypotheses that so many agree with by chance"""
    turn: float
    """degrees by which the other joint turns the one part against the other"""
    scale: float
    """by which it scales it"""
    other: Reconstruction | None
    """joined so; None where no other similarity moves the cameras"""

    @property
    def asked(self) -> bool:
        """Whether there are enough misfits to agree on anything."""
        return self.misfits >= LEAST

    @property
    def found(self) -> bool:
        """Whether so many agree on another joint that it is no chance."""
        return self.no_chance and self.agreeing >= LEAST_OF_FITTING * self.fitting

    @property
    def no_chance(self) -> bool:
        """The same of however few, beside those that fit."""
        return self.other is not None and self.chance < BY_CHANCE and self.agreeing >= LEAST_SHARE * self.misfits

    def figures(self) -> dict[str, float]:
        """As run.json has them."""
        return {"joint_misfits": self.misfits, "joint_misfits_agreeing": self.agreeing, "joint_turn": self.turn}


@dataclass(frozen=True, eq=False)
class _Misfits:
    """Places by the smaller part and by the others, and what the others see of them."""

    mine: Array
    """(misfits, 3)"""
    theirs: Array
    ptr: Index
    """observations by the others of misfit n are ptr[n]:ptr[n + 1]"""
    cam: Index
    m: Array
    unit: Array

    def subset(self, chosen: Index) -> "_Misfits":
        length = np.diff(self.ptr)[chosen]
        ptr = np.concatenate([[0], np.cumsum(length)])
        rows = np.arange(ptr[-1]) + np.repeat(self.ptr[chosen] - ptr[:-1], length)
        return _Misfits(self.mine[chosen], self.theirs[chosen], ptr, self.cam[rows], self.m[rows], self.unit[rows])


def contradiction(problem: Problem, reconstruction: Reconstruction, smaller: NDArray[np.bool_]) -> Contradiction | None:
    """Of the joint between the smaller part of the cameras and the others; None where nothing crosses it."""
    of_tracks, fitting = _of_tracks(problem, reconstruction, smaller)
    misfits = _joined([of_tracks, _of_pairs(problem, reconstruction, smaller)])
    found = len(misfits.mine)
    if found + fitting == 0:
        return None
    nothing = Contradiction(found, 0, fitting, np.inf, 0.0, 1.0, None)
    if found < LEAST:
        return nothing
    rng = np.random.default_rng(0)
    if found > MOST:
        misfits = misfits.subset(np.sort(rng.permutation(found)[:MOST]))
    best, agrees = _best_similarity(misfits, reconstruction, rng)
    if best is None:
        return nothing
    s, R, T = best
    other = _moved(problem.tracks, reconstruction, smaller, s, R, T)
    auc = closeness(reconstruction.R, reconstruction.centres, other.R, other.centres, 20.0)
    turn = float(np.degrees(np.arccos(np.clip(0.5 * (np.trace(R) - 1.0), -1.0, 1.0))))
    agreeing = round(np.count_nonzero(agrees) * found / len(agrees))
    chance = _expected(len(agrees), int(np.count_nonzero(agrees)), _likely(misfits, problem))
    return Contradiction(found, agreeing, fitting, chance, turn, s, other if min(auc) < DIFFERENT_AUC20 else None)


def _of_tracks(problem: Problem, reconstruction: Reconstruction, smaller: NDArray[np.bool_]) -> tuple[_Misfits, int]:
    """Tracks of the input that both parts place, each where it fits, and apart; and how many are in one place.

    One place is enough where all of a track's images determine it: what is far away has no depth by either part alone.
    """
    o = problem.observations
    place = np.full(len(o.images), -1)
    place[problem.images] = np.arange(problem.tracks.cameras)
    cam = place[o.image]
    rows = np.flatnonzero(cam >= 0)
    ids, landmark = np.unique(o.landmark_id[rows], return_inverse=True)
    counts = [np.bincount(landmark[smaller[cam[rows]] == side], minlength=len(ids)) for side in (True, False)]
    both = np.minimum(*counts) >= 2
    fitting = both & np.isin(ids, problem.landmark_ids[_fit_both(problem, reconstruction, smaller[problem.tracks.cam])])
    both, found = both & ~fitting, int(np.count_nonzero(fitting))
    keep = both[landmark]
    rows, landmark = rows[keep], (np.cumsum(both) - 1)[landmark[keep]]
    if not len(rows):
        return _nothing(), found
    order = np.lexsort((cam[rows], landmark))
    rows, landmark = rows[order], landmark[order]
    m, unit, which = o.normalised[rows], o.image_unit[o.image[rows]], cam[rows]
    again = replace(problem, tracks=_tracks(which, landmark, smaller), m=m, unit=unit)
    anew = replace(reconstruction, xyz=triangulate(again, reconstruction, scale=INLIER_PIXELS)[0])
    one_place = _fit_both(again, anew, smaller[which])
    placed: list[Array] = []
    fits: list[NDArray[np.bool_]] = []
    for side in (smaller[which], ~smaller[which]):
        part = replace(problem, tracks=_tracks(which[side], landmark[side], smaller), m=m[side], unit=unit[side])
        xyz, _ = triangulate(part, reconstruction, scale=INLIER_PIXELS)
        near = residuals(part, replace(reconstruction, xyz=xyz)).within(INLIER_PIXELS)
        placed.append(xyz)
        fits.append(np.bincount(part.tracks.landmark, weights=near) >= 2)
    theirs = ~smaller[which]
    pointer = _pointer(landmark[theirs], len(placed[0]))
    seen = _Misfits(placed[0], placed[1], pointer, which[theirs], m[theirs], unit[theirs])
    here = _medians(seen, reconstruction, seen.mine)
    usable = fits[0] & fits[1] & np.isfinite(here)
    found += int(np.count_nonzero(usable & one_place))
    return seen.subset(np.flatnonzero(usable & ~one_place & (here > AGREES))), found


def _fit_both(problem: Problem, reconstruction: Reconstruction, mine: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(landmarks,): whether a place fits two images of either part, `mine` being the observations of the one."""
    t, near = problem.tracks, residuals(problem, reconstruction).within(INLIER_PIXELS)
    sides = (np.bincount(t.landmark, weights=near & side, minlength=t.landmarks) for side in (mine, ~mine))
    return np.minimum(*sides) >= 2


def _of_pairs(problem: Problem, reconstruction: Reconstruction, smaller: NDArray[np.bool_]) -> _Misfits:
    """Matches of verified pairs of images between a landmark of the smaller part and another one of the others."""
    pairs, t = problem.observations.pairs, problem.tracks
    if pairs is None or not len(pairs.keypoint):
        return _nothing()
    most = int(max(pairs.keypoint.max(), problem.keypoint.max())) + 1
    good = residuals(problem, reconstruction).within(INLIER_PIXELS)
    keys = problem.images[t.cam[good]] * most + problem.keypoint[good]
    order = np.argsort(keys, kind="stable")
    keys, landmark = keys[order], t.landmark[good][order]
    image = np.repeat(pairs.image, np.diff(pairs.ptr), axis=0)
    place = np.full(len(problem.observations.images), -1)
    place[problem.images] = np.arange(t.cameras)
    wanted = image * most + pairs.keypoint
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    known = (keys[at] == wanted).all(axis=1) & (place[image] >= 0).all(axis=1)
    found = landmark[at[known]]
    side = smaller[place[image[known]]]
    found = np.where(side[:, :1], found, found[:, ::-1])[side[:, 0] != side[:, 1]]
    found = np.unique(found[found[:, 0] != found[:, 1]], axis=0)
    if not len(found):
        return _nothing()
    counts = good & ~smaller[t.cam]
    lengths = np.bincount(t.landmark[counts], minlength=t.landmarks)
    found = found[lengths[found[:, 1]] > 0]
    own = _Misfits(reconstruction.xyz, reconstruction.xyz, np.concatenate([[0], np.cumsum(lengths)]), t.cam[counts],
                   problem.m[counts], problem.unit[counts])  # fmt: skip
    seen = replace(own.subset(found[:, 1]), mine=reconstruction.xyz[found[:, 0]])
    return seen.subset(np.flatnonzero(_medians(seen, reconstruction, seen.mine) > AGREES))


def _best_similarity(
    misfits: _Misfits, reconstruction: Reconstruction, rng: np.random.Generator
) -> tuple[tuple[float, Array, Array] | None, NDArray[np.bool_]]:
    """The similarity from the smaller part's places to the others' that most misfits agree with, and which do."""
    n = len(misfits.mine)
    best, agrees = None, np.zeros(n, dtype=bool)
    chosen = [rng.choice(n, 3, replace=False) for _ in range(TRIALS)]
    drawn = [
        (trial, three, found)
        for trial, three in enumerate(chosen)
        if (found := _similarity(misfits.mine[three], misfits.theirs[three])) is not None
    ]
    if not drawn:
        return best, agrees
    moved = np.concatenate([_applied(found, misfits.mine[three]) for _, three, found in drawn])
    own = _medians(misfits.subset(np.concatenate([three for _, three, _ in drawn])), reconstruction, moved)
    for k in np.flatnonzero((own.reshape(-1, 3) <= AGREES).all(axis=1)):
        trial, _, found = drawn[k]
        if (1.0 - np.mean(agrees) ** 3) ** trial < MISSED:
            break
        now = _medians(misfits, reconstruction, _applied(found, misfits.mine)) <= AGREES
        if np.count_nonzero(now) > np.count_nonzero(agrees):
            best, agrees = found, now
    if best is not None and np.count_nonzero(agrees) >= 3:
        finer = _similarity(misfits.mine[agrees], misfits.theirs[agrees])
        now = agrees if finer is None else _medians(misfits, reconstruction, _applied(finer, misfits.mine)) <= AGREES
        if finer is not None and np.count_nonzero(now) >= np.count_nonzero(agrees):
            best, agrees = finer, now
    return best, agrees


def _similarity(source: Array, target: Array) -> tuple[float, Array, Array] | None:
    """s, R, T of least squares (Umeyama 1991); None where the points lie in one place."""
    a, b = source.mean(axis=0), target.mean(axis=0)
    variance = float(np.sum((source - a) ** 2))
    if not variance > 0.0 or not np.isfinite(variance):
        return None
    U, S, Vt = np.linalg.svd((target - b).T @ (source - a))
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(U @ Vt)) or 1.0])
    R = (U * sign) @ Vt
    s = float(S @ sign) / variance
    return (s, R, b - s * R @ a) if s > 0.0 else None


def _applied(similarity: tuple[float, Array, Array], xyz: Array) -> Array:
    s, R, T = similarity
    return s * xyz @ R.T + T


def _medians(misfits: _Misfits, reconstruction: Reconstruction, xyz: Array) -> Array:
    """(misfits,) pixels: median error of places in the images of the others; infinite behind one."""
    R, t, focal, radial = reconstruction.cameras
    which = np.repeat(np.arange(len(xyz)), np.diff(misfits.ptr))
    x = np.einsum("nij,nj->ni", R[misfits.cam], xyz[which]) + t[misfits.cam]
    ray = x[:, :2] / np.where(x[:, 2:] > 0.0, x[:, 2:], np.nan)
    square = np.sum(ray**2, axis=1)
    k = radial[misfits.cam]
    seen = ray * (focal[misfits.cam] * (1.0 + square * (k[:, 0] + square * k[:, 1])))[:, None]
    error = np.nan_to_num(np.linalg.norm((seen - misfits.m) * misfits.unit, axis=1), nan=np.inf)
    order = np.lexsort((error, which))
    return error[order][(misfits.ptr[:-1] + misfits.ptr[1:]) // 2]


def _moved(
    tracks: Tracks, reconstruction: Reconstruction, smaller: NDArray[np.bool_], s: float, R: Array, T: Array
) -> Reconstruction:
    """The cameras of the smaller part, and the landmarks that only these see, where their similarity puts them."""
    centres, turned, xyz = reconstruction.centres.copy(), reconstruction.R.copy(), reconstruction.xyz.copy()
    centres[smaller] = _applied((s, R, T), centres[smaller])
    turned[smaller] = turned[smaller] @ R.T
    own = np.bincount(tracks.landmark, weights=~smaller[tracks.cam], minlength=tracks.landmarks) == 0
    xyz[own] = _applied((s, R, T), xyz[own])
    t = -np.einsum("nij,nj->ni", turned, centres)
    return replace(reconstruction, R=np.ascontiguousarray(turned), t=t, xyz=xyz)


def _expected(n: int, agreeing: int, likely: float) -> float:
    """Number of hypotheses, by three of n, that as many agree with by chance: C(n, 3) C(n - 3, k - 3) p^(k - 3)."""
    k = agreeing - 3
    if k <= 0:
        return np.inf
    combinations = _log_choose(n, 3) + _log_choose(n - 3, k)
    return float(np.exp(min(combinations + k * np.log(likely), 700.0)))


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _likely(misfits: _Misfits, problem: Problem) -> float:
    """That a wrong place falls so near: the disc over what an image shows of the misfits, a tenth of it at least."""
    cameras = problem.observations.cameras
    areas = [cameras[int(k)].width * cameras[int(k)].height for k in problem.camera_ids]
    return float(min(10.0 * np.pi * AGREES**2 / np.median(areas), 0.5))


def _tracks(cam: Index, landmark: Index, smaller: NDArray[np.bool_]) -> Tracks:
    return Tracks(np.ascontiguousarray(cam, dtype=np.int64), _pointer(landmark, int(landmark.max()) + 1), len(smaller))


def _pointer(landmark: Index, count: int) -> Index:
    return np.concatenate([[0], np.cumsum(np.bincount(landmark, minlength=count))]).astype(np.int64)


def _joined(parts: list[_Misfits]) -> _Misfits:
    ptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.ptr) for part in parts]))])
    mine, theirs, cam, m, unit = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("mine", "theirs", "cam", "m", "unit")
    )
    return _Misfits(mine, theirs, ptr, cam, m, unit)


def _nothing() -> _Misfits:
    none, flat, deep = np.empty(0, dtype=np.int64), np.empty((0, 2)), np.empty((0, 3))
    return _Misfits(deep, deep, np.zeros(1, dtype=np.int64), none, flat, flat)
