"""The order in which the blocks of the reduced camera system are summed: ranges and groups of landmarks.

Every two observations of a landmark add to the block of their cameras, and each to the block of its own camera. A range is a
run of landmarks whose numbers fit into a core's cache: one pass over it eliminates the landmarks, a second sums the terms of
a block in registers and adds the sum to memory. Where cameras are many, a problem orders landmarks that the same cameras
see one after the other (`problem.build_problem`), so that a range adds many terms to few blocks.

Ranges form groups. Each group has sums of its own, which are added at the end in the order of the groups: threads write
nothing in common, and results do not depend on their number.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from initfree.data.tracks import Index, Tracks
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.kernels import kernel

_IN_CACHE = 4000
"""Observations whose numbers stay in a core's cache"""
_LONG = 8
"""Times that a range should add to a block, to pay for adding its sum to memory"""
_PAYS = 32
"""Times that a group should add to a block, to pay for sums of its own"""
_FEW = 2000
"""Pairs of cameras of which every group is expected to have most"""
_LARGE = 25_000
"""Observations of a group, where there are more pairs than that"""
_MOST = 4, 8
"""groups of few pairs, and of many"""
_TWICE = 2
"""rows of sums for each pair, at most, where pairs are many"""

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Reduction:
    """Landmarks in ranges, ranges in groups; a row of sums for every block that a group has."""

    ranges: Index
    """landmarks of range t are ranges[t]:ranges[t + 1]"""
    groups: Index
    """ranges of group s are groups[s]:groups[s + 1]"""
    group_rows: Index
    """rows of sums of group s are group_rows[s]:group_rows[s + 1]"""
    lists: Index
    """lists of range t are lists[t]:lists[t + 1], one for each pair of cameras with common landmarks in it, and one for each
    camera, (ranges + 1,)"""
    row: Numbers
    """row of sums to which a list adds, (lists,)"""
    ptr: Index
    """the observations of list l are ptr[l]:ptr[l + 1]"""
    later: Numbers
    """a, of the pair's later camera"""
    earlier: Numbers
    """b, of the same landmark; a itself in the list of a camera's own block"""
    pair_ptr: Index
    """rows of pair n of `CameraPairs.covisible`, or of camera n, are pair_rows[pair_ptr[n]:pair_ptr[n + 1]]"""
    pair_rows: Numbers
    work: Index
    """observations before each group, (groups + 1,)"""
    range_work: Index
    """work of the ranges before each, in observations, (ranges + 1,): passes over ranges are cut where groups are, so that a
    thread reads what it wrote itself"""

    @property
    def rows(self) -> int:
        return int(self.group_rows[-1])

    @property
    def of_pairs(self) -> tuple[Index, Numbers]:
        """Arguments of kernels: the rows of each pair."""
        return self.pair_ptr, self.pair_rows

    @property
    def lists_of_rows(self) -> tuple[Numbers, Index, Numbers, Numbers]:
        """Arguments of kernels: the row of each list, and its observations."""
        return self.row, self.ptr, self.later, self.earlier

    @property
    def landmark_ranges(self) -> tuple[Index, Index, Index, Index]:
        """Arguments of kernels: ranges and their lists, groups and their rows."""
        return self.ranges, self.lists, self.groups, self.group_rows


_made: tuple[WeakKeyDictionary[Tracks, Reduction], ...] = WeakKeyDictionary(), WeakKeyDictionary()


def reduction_of(tracks: Tracks, *, coupled: bool) -> Reduction:
    """`coupled`: for blocks of two cameras too, not of each camera alone. Kept as long as the tracks are."""
    found = _made[coupled].get(tracks)
    if found is None:
        found = _made[coupled][tracks] = _made_of(tracks, coupled)
    return found


def _made_of(tracks: Tracks, coupled: bool) -> Reduction:
    pairs = CameraPairs.covisible(tracks) if coupled else CameraPairs.only(tracks.cameras)
    length = np.diff(tracks.ptr)
    two = length * (length - 1) // 2 if coupled else np.zeros_like(length)
    cached, met = tracks.observations // _IN_CACHE, int(two.sum()) // len(pairs)
    many = len(pairs) > _FEW or not coupled
    large = _LARGE if coupled else _IN_CACHE  # a camera's own block alone is worth a sum anywhere
    groups = min(tracks.observations // large, _MOST[1]) if many else min(met // _PAYS, _MOST[0])
    groups = 1 << max(groups.bit_length() - 1, 0)
    each = max(1, (cached if many else min(cached, met // _LONG)) // groups)
    # What a landmark takes in the mean of the stages: five for each observation, one for every two of them.
    taken = np.concatenate([[0], np.cumsum(5 * length + two)])
    ranges = np.searchsorted(taken, np.linspace(0, taken[-1], groups * each + 1)).astype(np.int64)
    ranges[0], ranges[-1] = 0, tracks.landmarks
    first = np.concatenate([[0], np.cumsum(two + length)])[ranges]
    number, later, earlier = (np.empty(first[-1], dtype=np.int32) for _ in range(3))
    lists = np.zeros(len(ranges), dtype=np.int64)
    _number(tracks.ptr, tracks.cam, coupled, pairs.ptr, pairs.column, number)
    _count(first, number, len(pairs), lists)
    lists = np.cumsum(lists)
    pair, ptr = np.empty(lists[-1], dtype=np.int64), np.zeros(lists[-1] + 1, dtype=np.int64)
    _fill(ranges, first, tracks.ptr, coupled, number, len(pairs), lists, pair, ptr, later, earlier)
    unseen = np.setdiff1d(np.arange(len(pairs)), pair)  # a camera that sees nothing has a row all the same, of zeros
    while True:
        of_group = np.arange(0, len(ranges), (len(ranges) - 1) // groups)
        has = np.repeat(np.arange(groups), np.diff(lists[of_group])) * len(pairs) + pair
        keys, row = np.unique(np.concatenate([has, unseen]), return_inverse=True)
        if groups == 1 or not many or not coupled or len(keys) <= _TWICE * len(pairs):
            break
        groups //= 2  # neighbours are not together: sums would be more than they are worth
    of_row = keys % len(pairs)
    return Reduction(
        ranges=ranges,
        groups=of_group,
        group_rows=np.searchsorted(keys, np.arange(groups + 1) * len(pairs)),
        lists=lists,
        row=row[: len(pair)].astype(np.int32),
        ptr=ptr,
        later=later,
        earlier=earlier,
        pair_ptr=np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=len(pairs)))]),
        pair_rows=np.argsort(of_row, kind="stable").astype(np.int32),
        work=tracks.ptr[ranges[of_group]],
        range_work=taken[ranges] * tracks.observations // max(int(taken[-1]), 1),
    )


@kernel(inline="always")
def add_up(n, of_pairs, sums, size):
    """Where the first row of pair n begins, `size` numbers to which its rows of later groups are added."""
    ptr, rows = of_pairs
    first = size * np.int64(rows[ptr[n]])
    for index in range(ptr[n] + 1, ptr[n + 1]):
        at = size * np.int64(rows[index])
        for k in range(size):
            sums[first + k] += sums[at + k]
    return first


@kernel()
def _number(ptr, cam, coupled, pair_ptr, column, number):
    """The pair of cameras of every two observations, landmark by landmark: (0, 0), (1, 0), (1, 1), (2, 0) ..., or, if not
    `coupled`, of each with itself."""
    entry = 0
    for j in range(ptr.size - 1):
        for a in range(ptr[j], ptr[j + 1]):
            # Cameras of a landmark ascend, and so do the columns of a row.
            n = pair_ptr[cam[a]]
            for b in range(ptr[j] if coupled else a, a + 1):
                while column[n] != cam[b]:
                    n += 1
                number[entry] = n
                entry += 1


@kernel(allocates=True)
def _count(first, number, pairs, lists):
    """Different pairs of range t, at lists[t + 1]."""
    last = np.full(pairs, -1, dtype=np.int64)
    for t in range(first.size - 1):
        for entry in range(first[t], first[t + 1]):
            if last[number[entry]] != t:
                last[number[entry]] = t
                lists[t + 1] += 1


@kernel(allocates=True)
def _fill(ranges, first, tracks_ptr, coupled, number, pairs, lists, pair, ptr, later, earlier):
    """Lists of every range, pairs as they come first: their pairs, and their observations a and b."""
    last = np.full(pairs, -1, dtype=np.int64)
    place = np.empty(pairs, dtype=np.int64)
    for t in range(first.size - 1):
        count = lists[t]
        for entry in range(first[t], first[t + 1]):
            n = number[entry]
            if last[n] != t:
                last[n] = t
                place[n] = count
                pair[count] = n
                count += 1
            ptr[place[n] + 1] += 1
        for at in range(lists[t], lists[t + 1]):
            ptr[at + 1] += ptr[at]
            place[pair[at]] = ptr[at]
        entry = first[t]
        for j in range(ranges[t], ranges[t + 1]):
            for a in range(tracks_ptr[j], tracks_ptr[j + 1]):
                for b in range(tracks_ptr[j] if coupled else a, a + 1):
                    n = number[entry]
                    later[place[n]], earlier[place[n]] = a, b
                    place[n] += 1
                    entry += 1
