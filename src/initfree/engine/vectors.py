"""Vectors of a fixed number of doubles inside kernels, and arrays that a kernel has for itself.

A tuple says by its length, which the compiler knows, how long a vector is. The fast engine has vectors in registers and
arrays on the stack (`simd`), the plain one tuples and arrays of Numba (`plain_vectors`). Arrays are flat and offsets count
numbers, which nothing checks.

    room(shape)                            an array of the kernel's own; its shape is known to the compiler
    zeros(lanes)                           a vector
    load(array, offset, lanes)             array[offset:offset + len(lanes)]
    store(array, offset, vector)           array[offset:...] = vector
    number(array, offset)                  array[offset], which may not count from the end
    arranged(0, 2, ...)                    makes a function of a vector: its numbers at these places
    total(vector)                          the sum of its numbers
    difference(one, other)                 one - other
    add_product(total, vector, number)     total + vector * number
    add_products(total, one, other)        total + one * other, number by number
    add_squares(total, one, other)         total + one² + other², number by number
    add_to(array, offset, vector)          array[offset:...] += vector
    many(rows, lanes)                      len(rows) vectors of zeros
    add_outer(many, vector, array, offset)   many[r] + vector * array[offset + r]
    add_many_to(array, offset, many)       array[offset:...] += one vector after the other
"""

import math

import numpy as np
from llvmlite.binding import get_host_cpu_features
from numba import config

from initfree.data.tracks import Array
from initfree.engine.choice import PLAIN

if PLAIN:
    from initfree.engine import plain_vectors as chosen
else:
    from initfree.engine import simd as chosen

add_many_to, add_outer, add_product, add_products = (
    chosen.add_many_to,
    chosen.add_outer,
    chosen.add_product,
    chosen.add_products,
)
add_squares, add_to, arranged, difference = chosen.add_squares, chosen.add_to, chosen.arranged, chosen.difference
load, many, number, room = chosen.load, chosen.many, chosen.number, chosen.room
store, total, zeros = chosen.store, chosen.total, chosen.zeros

LANES_2, LANES_3, LANES_4, LANES_6, LANES_8 = (0,) * 2, (0,) * 3, (0,) * 4, (0,) * 6, (0,) * 8

_LONGEST = 32
"""lanes of a vector"""
_OTHER = any(vars(config).get(name) for name in ("CPU_NAME", "CPU_FEATURES"))
"""whether Numba compiles for another machine than this"""
WIDE = not PLAIN and bool(get_host_cpu_features().get("avx512f")) and not _OTHER
"""whether this machine has 32 registers of eight numbers; others count as having 16 of four"""


def vectors(count: int, size: int) -> Array:
    """A flat array of `count` times `size` numbers, with room behind it: a vector may read over its end."""
    return np.zeros(count * size + _LONGEST)


def rows_of(flat: Array, *shape: int) -> Array:
    """The numbers of `vectors` in their shape, (count, *shape)."""
    size = math.prod(shape)
    count = max(len(flat) - _LONGEST, 0) // size
    return flat[: count * size].reshape(count, *shape)
