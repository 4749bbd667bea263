"""Duplication: parts of a scene that look alike were merged, and every residual is small.

Missing observations show it. Two images from about the same place see about the same landmarks. Images of two equal
towers on top of each other do not share landmarks, apart from those that the matcher confused. So the images are cut in
two where they share least. For landmarks that an image should see, because another image sees them from nearly the same
side, the share that it does see is counted across the cut and within the two groups. A matcher loses tracks in both
alike; a tracker loses them on the way to a farther image, so image pairs are compared at equal distances. Nearer
landmarks occlude what is behind them (houses between two streets). Only cuts with interleaved groups count: two separate
parts of a scene, or the ends of a street, miss nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import coo_array
from scipy.sparse.linalg import eigsh
from scipy.spatial import KDTree

from initfree.certificate.coincident import farthest_apart
from initfree.certificate.uncertainty import Cameras
from initfree.data.tracks import Array, Index, Tracks
from initfree.engine.kernels import kernel

SAME_SIDE = 20.0
"""degrees between two rays to a landmark within which a matcher would recognise it"""
SAME_SCALE = 2.0
"""ratio of distances to a landmark within which a matcher would recognise it"""
AMONG = 0.25
"""landmarks to be seen across a cut, over what there would be if both groups stood in one place"""
LEAST_GROUP, LEAST_SHARE = 4, 0.1
"""images, and share of all images, of a group: by chance, some three images of a sparse set share nothing with the others"""
BANDS = 4
"""of distances between two cameras: a track is lost on the way from one image to a farther one, in a video soon"""
NOT_JOINED = 40.0
"""landmarks that two images should share and of which they share none: none was confused"""
DEVIATIONS = 3.0
TWIN_PIXELS = 3.0
MOST_OBSERVATIONS, MOST_A_CAMERA = 40_000, 40
"""of landmarks, evenly taken, that are looked for in all images: the larger of both"""
_DENSE = 500
"""cameras up to which all numbers of a matrix are kept: LAPACK is faster there, and exact"""
_A_CELL, _MOST_CELLS = 20, 8
"""observations of a cell of an image, on average, and most cells along each of its sides"""
_INNER = 0.02
"""quantile of an image's observations that bounds where, and how far away, it sees anything"""


@dataclass(frozen=True)
class Duplication:
    """Sharing of landmarks between two interleaved groups of images, relative to that within a group."""

    smaller: NDArray[np.bool_]
    """(cameras,): the smaller group; empty if no cut has interleaved groups"""
    sharing: float
    """share of common landmarks among those that images of both groups should see, over the same within the group that
    shares less; 1 in right reconstructions, at most the share of confused landmarks in duplicated ones"""
    twins: float
    """share of the smaller group's own landmarks that have one of the other group's within 3 px wherever either is seen"""


@dataclass(frozen=True)
class _Pairs:
    """Pairs of images with landmarks that both should see, each pair both ways."""

    i: Index
    k: Index
    expected: Array
    """number of landmarks that one sees and the other should see"""
    shared: Array
    """number of these that both see"""

    def subset(self, chosen: NDArray[np.bool_]) -> "_Pairs":
        return _Pairs(self.i[chosen], self.k[chosen], self.expected[chosen], self.shared[chosen])

    @property
    def joined(self) -> "_Pairs":
        """Without those that should share much and share nothing at all: nothing was confused between them, and what put
        them in one place is the way from one to the other. A video that comes back and does not know it."""
        return self.subset((self.shared > 0.0) | (self.expected < NOT_JOINED))

    def by_sharing(self, n: int) -> Index:
        """Cameras sorted by the first eigenvector of D^-½ (S - ρE) D^-½, D = Σ E: modularity (Newman 2006), what two cameras
        share beyond the share ρ of what they should. Groups that share among themselves, less with others, come apart."""
        degree = np.bincount(self.i, weights=self.expected, minlength=n)
        scale = np.where(degree > 0.0, degree, 1.0) ** -0.5
        beyond = self.shared - self.shared.sum() / max(self.expected.sum(), 1e-9) * self.expected
        scaled = coo_array((scale[self.i] * beyond * scale[self.k], (self.i, self.k)), shape=(n, n)).tocsr()
        if n <= _DENSE:
            _, vectors = eigh(scaled.toarray(), subset_by_index=(n - 1, n - 1))
        else:
            first = np.random.default_rng(0).normal(size=n)
            # Only the order matters: the last digits of a vector with close eigenvalues would take minutes.
            _, vectors = eigsh(scaled, k=1, which="LA", v0=first, ncv=40, tol=1e-3)  # pyright: ignore[reportArgumentType]
        return np.argsort(vectors[:, 0] * scale, kind="stable")

    def bands(self, cameras: Cameras, depth: float) -> Index:
        """(pairs,) how far its two cameras are from each other, in a few bands with as many landmarks to share each.

        That is how far things move from one image to the other: the angle between them, and their distance over the depth.
        """
        R, t, _, _ = cameras
        centres = -np.einsum("nji,nj->ni", R, t)
        cosine = 0.5 * (np.einsum("nij,nij->n", R[self.i], R[self.k]) - 1.0)
        apart = np.linalg.norm(centres[self.i] - centres[self.k], axis=1) / depth
        order = np.argsort(np.arccos(np.clip(cosine, -1.0, 1.0)) + apart, kind="stable")
        before = np.cumsum(self.expected[order]) - self.expected[order]
        band = np.empty(len(order), dtype=np.int64)
        band[order] = BANDS * before / max(self.expected.sum(), 1e-9)
        return band

    def cuts(self, order: Index) -> Array:
        """(2, 3, cameras - 1): what should be and what is shared, within the first k cameras of the order, within the
        others, and between both."""
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        i, k = place[self.i], place[self.k]

        def up_to(last: Index, values: Array) -> Array:
            return np.cumsum(np.bincount(last, weights=values, minlength=len(order)), dtype=np.float64)[:-1]

        def sums(values: Array) -> Array:
            within = up_to(np.maximum(i, k), values)
            across = up_to(i, values) - within
            return np.maximum([within, float(values.sum()) - within - 2.0 * across, across], 0.0)

        return np.stack([sums(self.expected), sums(self.shared)])


def duplication(
    tracks: Tracks, m: Array, unit: Array, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_]
) -> Duplication:
    """The cut of the images with the least sharing; `counts` are the agreeing observations."""
    pairs = _sharing(tracks, m, cameras, xyz, counts).joined
    order = pairs.by_sharing(tracks.cameras)
    nobody = Duplication(np.zeros(tracks.cameras, dtype=bool), 1.0, 0.0)
    least = max(LEAST_GROUP, int(np.ceil(LEAST_SHARE * tracks.cameras)))
    if tracks.cameras < 2 * least:
        return nobody
    band = pairs.bands(cameras, _median_distance(tracks, cameras, xyz, counts))
    counted = np.stack([pairs.subset(band == b).cuts(order) for b in range(BANDS)])
    first, second, across = np.moveaxis(counted.sum(axis=0), 1, 0)
    # As much as the counts allow: pairs of one track are no independent evidence, and the cut was chosen. Images of one
    # group may be nowhere as near to each other as to those of the other: nearer ones share as much as farther ones do.
    expected, shared = counted[:, 0, :2], counted[:, 1, :2]
    rate = np.maximum(shared - DEVIATIONS * shared**0.5, 0.0) / np.maximum(expected, 1e-9)
    rate = np.maximum.accumulate(rate[::-1])[::-1]
    to_share = np.sum(rate * counted[:, 0, 2:], axis=0).min(axis=0)
    at_most = across[1] + DEVIATIONS * across[1] ** 0.5
    sharing = np.where(to_share > 0.0, at_most / np.maximum(to_share, 1e-9), 1.0)
    among = across[0] > AMONG * np.sqrt(first[0] * second[0])
    among[: least - 1] = among[len(among) - least + 1 :] = False
    if not among.any():
        return nobody
    k = int(np.argmin(np.where(among, sharing, np.inf)))
    smaller = np.zeros(tracks.cameras, dtype=bool)
    smaller[order[: k + 1] if 2 * (k + 1) <= tracks.cameras else order[k + 1 :]] = True
    return Duplication(smaller, float(min(sharing[k], 1.0)), _twins(tracks, unit, cameras, xyz, counts, smaller))


def merged_observations(tracks: Tracks, counts: NDArray[np.bool_], group: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Observations in `group` of landmarks that fit in both groups: these merged parts that look alike.

    Without them both halves of such a track are right; tracks across the groups that do not fit join them rightly.
    """
    fits = counts.astype(np.float64)
    inside, outside = (
        np.bincount(tracks.landmark, weights=fits * side[tracks.cam], minlength=tracks.landmarks) > 0.0
        for side in (group, ~group)
    )
    return (inside & outside)[tracks.landmark] & group[tracks.cam]


def _median_distance(tracks: Tracks, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_]) -> float:
    """Of the landmarks from the cameras that see them."""
    R, t, _, _ = cameras
    cam = tracks.cam[counts]
    y = np.einsum("nij,nj->ni", R[cam], xyz[tracks.landmark[counts]]) + t[cam]
    return float(np.median(np.linalg.norm(y, axis=1))) if len(cam) else 1.0


def _sharing(tracks: Tracks, m: Array, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_]) -> _Pairs:
    """Of the landmarks that camera l sees, from a side that is k's too, those in k's view, and those that k sees; and the
    same of k and l exchanged."""
    R, t, focal, _ = cameras
    centres = -np.einsum("nji,nj->ni", R, t)
    kept = np.flatnonzero(counts)
    cam = tracks.cam[kept]
    distance = np.linalg.norm(xyz[tracks.landmark[kept]] - centres[cam], axis=1)
    seen = np.column_stack([m[kept] / focal[cam, None], distance])
    seen = seen[np.argsort(cam, kind="stable")]
    number = np.bincount(cam, minlength=tracks.cameras)
    edges = np.concatenate([[0], np.cumsum(number)])
    view = np.zeros((2, tracks.cameras, 3))
    view[0], view[1] = np.inf, -np.inf
    farthest = np.zeros((tracks.cameras, _MOST_CELLS, _MOST_CELLS))
    cells = np.clip((number / _A_CELL) ** 0.5, 1, _MOST_CELLS).astype(np.int64)
    for k in np.flatnonzero(number):
        mine = seen[edges[k] : edges[k + 1]]
        sizes, place = np.sort(mine, axis=0), np.array([[_INNER], [1.0 - _INNER]]) * (len(mine) - 1)
        below = place[:, 0].astype(np.int64)
        view[:, k] = sizes[below] + (place - below[:, None]) * (sizes[np.minimum(below + 1, len(mine) - 1)] - sizes[below])
        _fill(mine, view[0, k], view[1, k], cells[k], farthest[k])
    most = max(MOST_OBSERVATIONS, MOST_A_CAMERA * tracks.cameras)
    every, closest = max(1, -(-tracks.observations // most)), np.cos(np.radians(SAME_SIDE))
    sight = view[0], view[1], cells, farthest
    k, l, seen_too = _expected(tracks.ptr, tracks.cam, counts, R, centres, sight, xyz, closest, every)

    return _counted(tracks.cameras, k, l, seen_too)


def _counted(n: int, k: Index, l: Index, seen_too: NDArray[np.bool_]) -> _Pairs:
    """Pairs of n cameras, both ways, with the cases (k, l) and of those the ones that were `seen_too`."""
    place = k * n + l
    if n * n <= len(place):
        # A number for every two cameras is less than one for every case.
        expected, shared = (np.bincount(cases, minlength=n * n) for cases in (place, place[seen_too]))
        pairs = np.flatnonzero(expected)
        expected, shared = expected[pairs], shared[pairs]
    else:
        pairs, which, expected = np.unique(place, return_inverse=True, return_counts=True)
        shared = np.bincount(which[seen_too], minlength=len(pairs))
    first, second = pairs // n, pairs % n
    both = np.concatenate([first, second]), np.concatenate([second, first])

    def added(values: Index) -> coo_array:
        # Sums of zeros stay, so that both have the same pairs.
        return coo_array((np.tile(values.astype(np.float64), 2), both), shape=(n, n)).tocsr().tocoo()

    sums = added(expected), added(shared)
    i, k = (side.astype(np.int64) for side in sums[0].coords)
    return _Pairs(i, k, *(np.asarray(one.data, dtype=np.float64) for one in sums))


@kernel(inline="always")
def _cell(value, low, high, cells):
    return min(max(int(cells * (value - low) / max(high - low, 1e-300)), 0), cells - 1)


@kernel()
def _fill(seen, low, high, cells, farthest):
    """How far away a camera sees anything, by cell of its image; `seen` has u, v, distance. Empty cells: as far as any."""
    for n in range(len(seen)):
        x, y = _cell(seen[n, 0], low[0], high[0], cells), _cell(seen[n, 1], low[1], high[1], cells)
        farthest[x, y] = max(farthest[x, y], min(seen[n, 2], high[2]))
    for x in range(cells):
        for y in range(cells):
            if farthest[x, y] == 0.0:
                farthest[x, y] = high[2]


@kernel(allocates=True)
def _expected(ptr, cam, counts, R, centres, sight, xyz, closest, every):
    """For each landmark, each camera l that sees it and each camera k on the same side with it in view: does k see it?

    Returns k, l and the answer of each such case.
    """
    n = R.shape[0]
    lowest, highest, cells, farthest = sight
    found = np.empty((1024, 2), dtype=np.int64)
    answer = np.empty(1024, dtype=np.bool_)
    size = 0
    ray = np.empty((n, 3))
    length = np.empty(n)
    inside = np.empty(n, dtype=np.int64)
    seen = np.empty(n, dtype=np.bool_)
    for j in range(0, ptr.size - 1, every):
        seen[:] = False
        number = 0
        for a in range(ptr[j], ptr[j + 1]):
            if counts[a]:
                seen[cam[a]] = True
                number += 1
        if number < 2:
            continue
        near = 0
        for k in range(n):
            x, y, z = xyz[j, 0] - centres[k, 0], xyz[j, 1] - centres[k, 1], xyz[j, 2] - centres[k, 2]
            r = np.sqrt(x * x + y * y + z * z)
            ray[k, 0], ray[k, 1], ray[k, 2] = x / r, y / r, z / r
            length[k] = r
            u = R[k, 0, 0] * x + R[k, 0, 1] * y + R[k, 0, 2] * z
            v = R[k, 1, 0] * x + R[k, 1, 1] * y + R[k, 1, 2] * z
            w = R[k, 2, 0] * x + R[k, 2, 1] * y + R[k, 2, 2] * z
            if seen[k] or (
                w > 0.0
                and lowest[k, 0] * w <= u
                and u <= highest[k, 0] * w
                and lowest[k, 1] * w <= v
                and v <= highest[k, 1] * w
                and lowest[k, 2] <= r
                and r
                <= farthest[
                    k,
                    _cell(u / w, lowest[k, 0], highest[k, 0], cells[k]),
                    _cell(v / w, lowest[k, 1], highest[k, 1], cells[k]),
                ]
            ):
                inside[near] = k
                near += 1
        for a in range(ptr[j], ptr[j + 1]):
            if not counts[a]:
                continue
            l = cam[a]
            for k in inside[:near]:
                if k == l or not length[l] < SAME_SCALE * length[k] < SAME_SCALE**2 * length[l]:
                    continue
                if ray[k, 0] * ray[l, 0] + ray[k, 1] * ray[l, 1] + ray[k, 2] * ray[l, 2] > closest:
                    if size == answer.size:
                        found, answer = np.concatenate((found, found)), np.concatenate((answer, answer))
                    found[size, 0], found[size, 1], answer[size] = k, l, seen[k]
                    size += 1
    return found[:size, 0].copy(), found[:size, 1].copy(), answer[:size].copy()


def _twins(
    tracks: Tracks, unit: Array, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_], group: NDArray[np.bool_]
) -> float:
    """See `Duplication.twins`: the nearest landmark of the other group's own, compared in all images of either."""
    own = [
        np.bincount(tracks.landmark[counts & side[tracks.cam]], minlength=tracks.landmarks) > 0 for side in (group, ~group)
    ]
    first, second = np.flatnonzero(own[0] & ~own[1]), np.flatnonzero(own[1] & ~own[0])
    if len(first) == 0 or len(second) == 0:
        return 0.0
    _, near = KDTree(xyz[second]).query(xyz[first])
    return float(np.mean(farthest_apart(tracks, unit, cameras, xyz, counts, first, second[near]) <= TWIN_PIXELS))
