"""Vectors inside kernels; kernels make no arrays unless they say so, what they need for themselves is on the stack."""

import numpy as np
import pytest
from numba.core.errors import NumbaError

from initfree.engine.kernels import kernel
from initfree.engine.simd import column_totals, fetch_to_read, fetch_to_write, load, room, store

ROWS = 2


def running_sums(x, into):
    last, table = room((1,)), room((ROWS, 3))
    last[0] = 0.0
    for k in range(x.size):
        for r in range(ROWS):
            for c in range(3):
                table[r, c] = x[k] + 10 * r + c
        last[0] += table[1, 2]
        into[k] = last[0]
    return table.shape, table.strides


def makes_an_array(x):
    return np.zeros(x.size).sum()


def makes_an_array_and_says_so(x):  # one of its own: kept machine code does not tell whether it may
    return np.zeros(x.size).sum()


def test_room_on_the_stack_is_an_array_that_stays_between_turns_of_a_loop():
    x = np.array([1.0, 2.0, 3.0])
    into = np.empty(3)
    shape, strides = kernel()(running_sums)(x, into)
    assert (shape, strides) == ((ROWS, 3), np.empty((ROWS, 3)).strides)
    assert into.tolist() == np.cumsum(x + 12.0).tolist()


def test_a_kernel_that_makes_an_array_has_to_say_so():
    with pytest.raises(NumbaError, match="zeros"):
        kernel()(makes_an_array)(np.ones(3))
    assert kernel(allocates=True)(makes_an_array_and_says_so)(np.ones(3)) == 0.0


def totals(tile, vector, lanes, into):
    fetch_to_read(tile, 0)
    fetch_to_write(into, 0)
    store(into, 0, column_totals(load(vector, 0, lanes), tile, 0))


@pytest.mark.parametrize("lanes", [4, 8])
def test_column_totals_are_a_product_with_the_transposed_tile_and_fetching_changes_nothing(lanes: int):
    rng = np.random.default_rng(lanes)
    tile, vector, into = rng.normal(size=(lanes, lanes)), rng.normal(size=lanes), np.empty(lanes)
    before = tile.copy()
    kernel()(totals)(tile.reshape(-1), vector, (0,) * lanes, into)
    np.testing.assert_allclose(into, before @ vector, rtol=1e-13, atol=1e-13)  # a row of the array is a column of the tile
    np.testing.assert_array_equal(tile, before)
