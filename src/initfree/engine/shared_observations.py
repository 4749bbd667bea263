"""Which observations meet in the block of a camera pair: those of the landmarks that both cameras see, pair by pair.

A block is summed in registers while its list lasts, so lists are as long as the cache allows: landmarks are cut into so many
ranges that what a range's observations left fits into it, and no more than leave lists long enough to pay for adding a
block to memory. Eight bytes for two observations that meet; made once for the same tracks.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.kernels import kernel
from initfree.tracks import Index, Tracks

IN_CACHE = 4000
"""Observations whose numbers stay in a core's cache"""
_LONG = 8
"""Entries of a list, on average, that pay for adding a block to memory"""


@dataclass(frozen=True)
class SharedObservations:
    """For every pair of `CameraPairs.covisible` the observations (a, b) of the same landmarks, a of its later camera."""

    ptr: Index
    """those of pair n in range t of the landmarks are ptr[t, n]:ptr[t, n + 1], (ranges, pairs + 1)"""
    later: NDArray[np.int32]
    """a"""
    earlier: NDArray[np.int32]
    """b"""
    work: Index
    """of each pair, cumulative, (pairs + 1,)"""

    @property
    def arrays(self) -> tuple[Index, NDArray[np.int32], NDArray[np.int32]]:
        """As kernels take it."""
        return self.ptr, self.later, self.earlier


_made: WeakKeyDictionary[Tracks, SharedObservations] = WeakKeyDictionary()


def shared_observations(tracks: Tracks) -> SharedObservations:
    """Kept as long as the tracks are."""
    found = _made.get(tracks)
    if found is None:
        found = _made[tracks] = _listed(tracks)
    return found


def _listed(tracks: Tracks) -> SharedObservations:
    pairs = CameraPairs.covisible(tracks)
    length = np.diff(tracks.ptr)
    entries = int((length * (length - 1) // 2).sum())
    ranges = max(1, min(tracks.observations // IN_CACHE, entries // (_LONG * len(pairs))))
    layout = tracks.ptr, tracks.cam, tracks.landmark, tracks.camera_ptr, tracks.by_camera
    count = np.zeros((ranges, len(pairs)), dtype=np.int64)
    nothing = np.empty(0, dtype=np.int32)
    _list(layout, (pairs.ptr, pairs.column), count, nothing, nothing)
    ends = np.cumsum(count.reshape(-1)).reshape(count.shape)
    ptr = np.column_stack([ends[:, 0] - count[:, 0], ends])
    later, earlier = np.empty(entries, dtype=np.int32), np.empty(entries, dtype=np.int32)
    _list(layout, (pairs.ptr, pairs.column), ptr[:, :-1].copy(), later, earlier)
    # What a pair costs beside its entries, so that many pairs with few of them count too.
    work = np.concatenate([[0], np.cumsum(count.sum(axis=0) + 4)])
    return SharedObservations(ptr, later, earlier, work)


@kernel()
def _list(tracks, pairs, place, later, earlier):
    """Count at place[range, pair], and fill what is counted where there is room for it."""
    ptr, cam, landmark, camera_ptr, by_camera = tracks
    pair_ptr, column = pairs
    number = np.empty(camera_ptr.size - 1, dtype=np.int64)
    for i in range(camera_ptr.size - 1):
        for n in range(pair_ptr[i], pair_ptr[i + 1]):
            number[column[n]] = n
        for index in range(camera_ptr[i], camera_ptr[i + 1]):
            a = by_camera[index]
            first = ptr[landmark[a]]
            t = first * place.shape[0] // cam.size
            for b in range(first, a):
                n = number[cam[b]]
                if later.size > 0:
                    later[place[t, n]] = a
                    earlier[place[t, n]] = b
                place[t, n] += 1
