"""Vectors inside kernels; kernels make no arrays unless they say so, what they need for themselves is on the stack."""

import numpy as np
import pytest
from numba.core.errors import NumbaError

from initfree.engine.choice import PLAIN
from initfree.engine.kernels import kernel
from initfree.engine.vectors import (
    add_many_to,
    add_outer,
    add_product,
    add_products,
    add_squares,
    add_to,
    arranged,
    difference,
    load,
    many,
    number,
    room,
    store,
    total,
    zeros,
)

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


@pytest.mark.skipif(PLAIN, reason="the plain engine counts references in all kernels")
def test_a_kernel_that_makes_an_array_has_to_say_so():
    with pytest.raises(NumbaError, match="zeros"):
        kernel()(makes_an_array)(np.ones(3))
    assert kernel(allocates=True)(makes_an_array_and_says_so)(np.ones(3)) == 0.0


_reversed = arranged(3, 2, 1, 0)


def operations(x, y, lanes, rows, into, table):
    v, w = load(x, 1, lanes), load(y, 0, lanes)
    store(into, 0, add_product(zeros(lanes), v, number(y, 2)))
    store(into, 4, add_products(w, v, w))
    store(into, 8, add_squares(zeros(lanes), v, w))
    store(into, 12, difference(v, w))
    store(into, 16, _reversed(v))
    into[20] = total(v)
    add_to(into, 21, v)
    add_many_to(table, 0, add_outer(add_outer(many(rows, lanes), v, x, 0), w, y, 1))


def test_operations_are_those_of_numpy():
    x, y = np.random.default_rng(0).normal(size=(2, 8))
    v, w = x[1:5], y[:4]
    into, table = np.zeros(25), np.ones(12)
    kernel()(operations)(x, y, (0,) * 4, (0,) * 3, into, table)
    expected = np.concatenate([v * y[2], w + v * w, v**2 + w**2, v - w, v[::-1], [v.sum()], v])
    np.testing.assert_allclose(into, expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(table.reshape(3, 4), 1.0 + np.outer(x[:3], v) + np.outer(y[1:4], w), rtol=1e-14, atol=1e-14)
