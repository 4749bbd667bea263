"""Rows of sums of the reduced system of metric cameras (`engine.reduction`).

One thread eliminates and sums a range of landmarks while its numbers are in the thread's cache. `left` is (G, Q, e, M, u,
shift) of `eliminate_landmarks`, `flat` its first three, `layout` is (rows, lanes, width, size) of `blocks.couple`.
"""

from initfree.engine.kernels import kernel
from initfree.stages.euclidean import kernels, lens_kernels
from initfree.stages.euclidean.blocks import couple

_eliminate, _eliminate_with_lens = kernels.eliminate_landmarks, lens_kernels.eliminate_landmarks


@kernel()
def metric(
    begin, end, tracks, landmark_ranges, lists_of_rows, layout, flat, left, sums, slots, cameras, xyz, image, weight, damping
):
    """Of groups begin ... end, of cameras with a focal length, k1 and k2."""
    ranges, lists, groups, group_rows = landmark_ranges
    ptr, cam = tracks
    rows, lanes, width, size = layout
    G, Q, e, M, u, shift = left
    for group in range(begin, end):
        sums[size * group_rows[group] : size * group_rows[group + 1]] = 0.0
        for t in range(groups[group], groups[group + 1]):
            first, last = ranges[t], ranges[t + 1]
            _eliminate(first, last, ptr, cam, slots, cameras, xyz, image, weight, damping, G, Q, e, M, u, shift)
            couple(lists[t], lists[t + 1], lists_of_rows, rows, lanes, width, size, flat, sums)


@kernel()
def lens(begin, end, tracks, landmark_ranges, lists_of_rows, layout, flat, left, sums, R, linear, weight, damping, still):
    """Of groups begin ... end, of cameras with lenses of any model; linear is (x, residual, A, T)."""
    ranges, lists, groups, group_rows = landmark_ranges
    ptr, cam = tracks
    rows, lanes, width, size = layout
    x, residual, A, T = linear
    G, Q, e, M, u, shift = left
    for group in range(begin, end):
        sums[size * group_rows[group] : size * group_rows[group + 1]] = 0.0
        for t in range(groups[group], groups[group + 1]):
            first, last = ranges[t], ranges[t + 1]
            _eliminate_with_lens(first, last, ptr, cam, R, x, residual, A, T, weight, damping, still, G, Q, e, M, u, shift)
            couple(lists[t], lists[t + 1], lists_of_rows, rows, lanes, width, size, flat, sums)
