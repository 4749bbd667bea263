"""Rows of sums of the reduced system of metric cameras: ranges of landmarks in turn, eliminated and summed up by one thread
while what they leave is in its cache (`engine.shares`). `left` is (G, Q, e, M, u, shift) of `condense`, `flat` the first
three, `layout` (rows, lanes, width, size) of `blocks.couple`.
"""

from initfree.engine.kernels import kernel
from initfree.stages.euclidean import kernels, lens_kernels
from initfree.stages.euclidean.blocks import couple

_condense, _condense_lens = kernels.condense, lens_kernels.condense


@kernel()
def metric(begin, end, tracks, taken, met, layout, flat, left, sums, slots, cameras, xyz, image, weight, damping):
    """Of shares begin ... end, of cameras with a focal length, k1 and k2."""
    ranges, lists, shares, share_rows = taken
    ptr, cam = tracks
    rows, lanes, width, size = layout
    G, Q, e, M, u, shift = left
    for share in range(begin, end):
        sums[size * share_rows[share] : size * share_rows[share + 1]] = 0.0
        for t in range(shares[share], shares[share + 1]):
            first, last = ranges[t], ranges[t + 1]
            _condense(first, last, ptr, cam, slots, cameras, xyz, image, weight, damping, G, Q, e, M, u, shift)
            couple(lists[t], lists[t + 1], met, rows, lanes, width, size, flat, sums)


@kernel()
def lens(begin, end, tracks, taken, met, layout, flat, left, sums, R, linear, weight, damping, still):
    """Of shares begin ... end, of cameras with lenses of any model; linear is (x, residual, A, T)."""
    ranges, lists, shares, share_rows = taken
    ptr, cam = tracks
    rows, lanes, width, size = layout
    x, residual, A, T = linear
    G, Q, e, M, u, shift = left
    for share in range(begin, end):
        sums[size * share_rows[share] : size * share_rows[share + 1]] = 0.0
        for t in range(shares[share], shares[share + 1]):
            first, last = ranges[t], ranges[t + 1]
            _condense_lens(first, last, ptr, cam, R, x, residual, A, T, weight, damping, still, G, Q, e, M, u, shift)
            couple(lists[t], lists[t + 1], met, rows, lanes, width, size, flat, sums)
