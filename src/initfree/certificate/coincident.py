"""Coincident landmarks: parts that were merged by mistake have every landmark twice.

Two landmarks in one place without a common image are usual where a track ends and another begins: the images of one then
follow those of the other. If two objects lie on top of each other, the images of both are interleaved: a matcher that
recognised one of them from image to image would have recognised it in the images in between.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh
from scipy.spatial import KDTree

from initfree.certificate.uncertainty import Cameras
from initfree.data.camera_graph import without_diagonal
from initfree.data.tracks import Array, Index, Tracks

PIXELS = 2.0
NEIGHBOURS = 4
"""nearest landmarks in the test"""
MOST = 4000
"""evenly spaced landmarks in the test"""
AMONG = 0.7
"""share of the images of two landmarks that are as near to one of the other's as those of one are to each other: 0.9 and
more where towers lie on top of each other, less than 0.7 for all but a hundredth on photographs and in videos"""
ASKED = 200
"""landmarks with a second one in their place, drawn by chance, whose images are compared;"""
FEW = 0.05
"""share of all up to which it makes no difference"""


def twin_share(tracks: Tracks, unit: Array, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_]) -> float:
    """Share of the landmarks with another one within two pixels wherever either is seen, no image that sees both, and images
    that stand among those of the other; at most so many where already the others are few."""
    pairs, asked = _pairs(tracks, unit, cameras, xyz, counts)
    share = len(np.unique(pairs[0])) / max(asked, 1)
    if share <= FEW:
        return share
    chosen, among = _interleaved(tracks, cameras, xyz, counts, pairs)
    return share * len(np.unique(chosen[0, among])) / len(np.unique(chosen[0]))


def parts_of_twins(
    tracks: Tracks, unit: Array, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """(cameras,) one of two parts of the images that each see one landmark of a pair; None without such pairs.

    Images with common landmarks belong together, images of the two landmarks of a pair do not: the sign of the first
    eigenvector of the difference of both counts, each normalised by its sum.
    """
    chosen, among = _interleaved(tracks, cameras, xyz, counts, _pairs(tracks, unit, cameras, xyz, counts)[0])
    pairs = chosen[:, among]
    if not pairs.size:
        return None
    seen = csr_array((counts.astype(np.float64), (tracks.cam, tracks.landmark)), shape=(tracks.cameras, tracks.landmarks))
    together = without_diagonal(csr_array(seen @ seen.T))
    apart = csr_array(seen[:, pairs[0]] @ seen[:, pairs[1]].T)
    apart = csr_array(apart + apart.T)
    graph = together / max(together.sum(), 1e-9) - apart / max(apart.sum(), 1e-9)
    scale = np.asarray(together.sum(axis=1)).ravel() + 1e-9
    graph = csr_array(diags_array(scale**-0.5) @ graph @ diags_array(scale**-0.5))
    first = np.random.default_rng(0).normal(size=tracks.cameras)
    _, vectors = eigsh(graph, k=1, which="LA", v0=first, tol=1e-3)  # pyright: ignore[reportArgumentType]
    return vectors[:, 0] > 0.0


def _pairs(
    tracks: Tracks, unit: Array, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], int]:
    """(2, pairs) of landmarks that fall on each other in all images of either and share none, the first of an evenly spaced
    sample, and the number of that."""
    rows = np.flatnonzero(counts)[::-1]
    seen = np.bincount(tracks.landmark[rows], minlength=tracks.landmarks)
    used = np.flatnonzero((seen >= 2) & np.isfinite(xyz).all(axis=1))
    if len(used) < 2:
        return np.empty((2, 0), dtype=np.int64), len(used)
    asked = used[:: -(-len(used) // MOST)]
    _, near = KDTree(xyz[used]).query(xyz[asked], k=min(NEIGHBOURS + 1, len(used)))
    first, second = np.tile(asked, near.size // len(asked)), used[near.T.ravel()]
    row = np.zeros(tracks.landmarks, dtype=np.int64)
    row[tracks.landmark[rows]] = rows  # the first that counts, of each
    row = row[first]
    a, b = (_pixels(tracks.cam[row], unit[row], cameras, xyz[which]) for which in (first, second))
    close = (first != second) & (np.linalg.norm(a - b, axis=1) <= PIXELS)
    first, second = first[close], second[close]
    close = farthest_apart(tracks, unit, cameras, xyz, counts, first, second) <= PIXELS
    close[close] = ~_common_image(tracks, counts, first[close], second[close])
    return np.stack([first[close], second[close]]), len(asked)


def _interleaved(
    tracks: Tracks, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_], pairs: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Some of the pairs, drawn by chance, and whether the images of each stand among each other."""
    chosen = pairs[:, np.random.default_rng(0).permutation(pairs.shape[1])[:ASKED]]
    return chosen, np.array([_among(tracks, cameras, xyz, counts, a, b) >= AMONG for a, b in chosen.T], dtype=bool)


def _among(tracks: Tracks, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_], first: int, second: int) -> float:
    """Share of the images of two landmarks with one of the other's at most as far away as two of its own are in the median;
    as far as things move from image to image: the angle between two cameras and their distance over that of the landmark."""
    rows = [slice(tracks.ptr[j], tracks.ptr[j + 1]) for j in (first, second)]
    cams = [tracks.cam[row][counts[row]] for row in rows]
    R, t, _, _ = cameras
    both = np.concatenate(cams)
    centres = -np.einsum("nji,nj->ni", R[both], t[both])
    depth = float(np.median(np.linalg.norm(centres - xyz[first], axis=1)))
    cosine = 0.5 * (np.einsum("nij,mij->nm", R[both], R[both]) - 1.0)
    apart = np.arccos(np.clip(cosine, -1.0, 1.0)) + np.linalg.norm(centres[:, None] - centres, axis=2) / max(depth, 1e-300)
    n = len(cams[0])
    own = [np.median(block[np.triu_indices(len(block), 1)]) for block in (apart[:n, :n], apart[n:, n:])]
    near = np.concatenate([apart[:n, n:].min(axis=1) <= own[1], apart[:n, n:].min(axis=0) <= own[0]])
    return float(np.mean(near))


def farthest_apart(
    tracks: Tracks, unit: Array, cameras: Cameras, xyz: Array, counts: NDArray[np.bool_], first: Index, second: Index
) -> Array:
    """(pairs,) pixels between two landmarks in the image of either where they are farthest apart."""
    far = np.zeros(len(first))
    for one in (first, second):
        pair, rows = _rows(tracks, one)
        pair, rows = pair[counts[rows]], rows[counts[rows]]
        a, b = (_pixels(tracks.cam[rows], unit[rows], cameras, xyz[which[pair]]) for which in (first, second))
        np.maximum.at(far, pair, np.linalg.norm(a - b, axis=1))
    return far


def _common_image(tracks: Tracks, counts: NDArray[np.bool_], first: Index, second: Index) -> NDArray[np.bool_]:
    """(pairs,): whether an image sees both."""
    one, other = (
        (pair * tracks.cameras + tracks.cam[rows])[counts[rows]]
        for pair, rows in (_rows(tracks, landmarks) for landmarks in (first, second))
    )
    common = np.zeros(len(first), dtype=bool)
    common[np.intersect1d(one, other) // tracks.cameras] = True
    return common


def _rows(tracks: Tracks, landmarks: Index) -> tuple[Index, Index]:
    """Observations of landmarks, and of which of them each is."""
    length = tracks.ptr[landmarks + 1] - tracks.ptr[landmarks]
    which = np.repeat(np.arange(len(landmarks)), length)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(length) - length, length) + tracks.ptr[landmarks][which]


def _pixels(cam: Index, unit: Array, cameras: Cameras, X: Array) -> Array:
    """Where landmarks fall into images, in pixels from the principal point; a lens bends two that are close alike."""
    R, t, focal, _ = cameras
    x = np.einsum("nij,nj->ni", R[cam], X) + t[cam]
    return x[:, :2] / np.where(np.abs(x[:, 2:]) < 1e-12, 1e-12, x[:, 2:]) * focal[cam, None] * unit
