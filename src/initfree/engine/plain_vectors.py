"""The vectors of kernels as tuples, in Numba's documented interface alone: half of what `INITFREE_ENGINE=plain` is.

The same functions as in `engine.simd`, which does in vector registers what a compiler does here one number at a time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload, register_jitable

_FLAGS: Any = {"fastmath": {"contract", "reassoc", "nsz", "arcp"}, "nogil": True, "error_model": "numpy"}


def _written_out(parameters: str, each: str, lanes: int | tuple[int, ...]) -> Callable[..., Any]:
    """A function whose result is the tuple of `each` expression with k = 0, 1, ..., or with the given numbers."""
    places = range(lanes) if isinstance(lanes, int) else lanes
    return eval(f"lambda {parameters}: ({''.join(each.format(k=k) + ', ' for k in places)})")


def _of_length(parameters: str, by: str, each: str) -> Any:
    """A function for kernels whose result has a number for each of the tuple that is its parameter `by`."""
    names = parameters.split(", ")

    def function(*arguments: Any) -> Any:
        return _written_out(parameters, each, len(arguments[names.index(by)]))(*arguments)

    made = eval(f"lambda {parameters}: function({parameters})", {"function": function})

    def typed(*kinds: Any) -> Any:
        return _written_out(parameters, each, len(kinds[names.index(by)]))

    overload(made, jit_options=_FLAGS)(eval(f"lambda {parameters}: typed({parameters})", {"typed": typed}))
    return made


zeros: Any = _of_length("like", "like", "0.0")
load: Any = _of_length("array, offset, like", "like", "array[offset + {k}]")
add_product: Any = _of_length("total, vector, factor", "vector", "total[{k}] + vector[{k}] * factor")
add_products: Any = _of_length("total, first, second", "first", "total[{k}] + first[{k}] * second[{k}]")
add_squares: Any = _of_length(
    "total, first, second", "first", "total[{k}] + first[{k}] * first[{k}] + second[{k}] * second[{k}]"
)
difference: Any = _of_length("first, second", "first", "first[{k}] - second[{k}]")


def arranged(*places: int) -> Any:
    return register_jitable(**_FLAGS)(_written_out("vector", "vector[{k}]", places))


@register_jitable(**_FLAGS)
def room(shape: Any) -> Any:
    return np.empty(shape)


@register_jitable(**_FLAGS)
def number(array: Any, offset: Any) -> Any:
    return array[offset]


@register_jitable(**_FLAGS)
def total(vector: Any) -> Any:
    result = 0.0
    for k in range(len(vector)):
        result += vector[k]
    return result


@register_jitable(**_FLAGS)
def add_to(array: Any, offset: Any, vector: Any) -> None:
    for k in range(len(vector)):
        array[offset + k] += vector[k]


@register_jitable(**_FLAGS)
def store(array: Any, offset: Any, vector: Any) -> None:
    for k in range(len(vector)):
        array[offset + k] = vector[k]


@register_jitable(**_FLAGS)
def many(rows: Any, lanes: Any) -> Any:
    return np.zeros((len(rows), len(lanes)))


@register_jitable(**_FLAGS)
def add_outer(totals: Any, vector: Any, array: Any, offset: Any) -> Any:
    for r in range(totals.shape[0]):
        for k in range(len(vector)):
            totals[r, k] += vector[k] * array[offset + r]
    return totals


@register_jitable(**_FLAGS)
def add_many_to(array: Any, offset: Any, totals: Any) -> None:
    for r in range(totals.shape[0]):
        for k in range(totals.shape[1]):
            array[offset + r * totals.shape[1] + k] += totals[r, k]
