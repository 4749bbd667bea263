"""Vectors of a fixed number of doubles inside kernels: what stays in registers while a sum goes through memory.

LLVM does not find them by itself in sums over short rows: it unrolls the row and stays scalar. A vector of 8 is two
registers of 4 where the machine has these, whatever it has elsewhere. Flat arrays, offsets in numbers; nothing is checked.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, config, types
from numba.extending import intrinsic, models, register_model

from initfree.data.tracks import Array


class Vector(types.Type):
    """So many doubles."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"Vector({lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.DoubleType(), kind.lanes))


LANES_2, LANES_3, LANES_4, LANES_6, LANES_8 = (0,) * 2, (0,) * 3, (0,) * 4, (0,) * 6, (0,) * 8
"""tuples say by their length, which the compiler knows, how long a vector is"""

_LONGEST = 32
"""lanes of a vector"""
_OTHER = any(vars(config).get(name) for name in ("CPU_NAME", "CPU_FEATURES"))
"""whether Numba is told to compile for another machine than this"""
WIDE = bool(get_host_cpu_features().get("avx512f")) and not _OTHER
"""whether this machine has 32 registers of eight numbers; others are taken to have 16 of four"""


def vectors(count: int, size: int) -> Array:
    """A flat array of `count` times `size` numbers, with room behind it: a vector may read over its end."""
    return np.zeros(count * size + _LONGEST)


def rows_of(flat: Array, *shape: int) -> Array:
    """The numbers of `vectors` in their shape, (count, *shape)."""
    size = math.prod(shape)
    count = max(len(flat) - _LONGEST, 0) // size
    return flat[: count * size].reshape(count, *shape)


def _address(context, builder, kind, array, offset, lanes):
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), ir.VectorType(ir.DoubleType(), lanes).as_pointer())


def _spread(builder, number, lanes):
    """A number in all lanes."""
    kind = ir.VectorType(ir.DoubleType(), lanes)
    unset, first = ir.Constant(kind, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
    return builder.shuffle_vector(builder.insert_element(unset, number, first), unset, everywhere)


@intrinsic
def _zeros(_typing, like: Any) -> Any:
    def generate(_context, _builder, signature, _arguments):
        return ir.Constant(ir.VectorType(ir.DoubleType(), signature.return_type.lanes), None)

    return Vector(len(like))(like), generate


@intrinsic(prefer_literal=True)
def _room(_typing, shape: Any) -> Any:
    numbers = [length.literal_value for length in shape]
    kind = types.Array(types.float64, len(numbers), "C")

    def generate(context, builder, _signature, _arguments):
        from numba.np.arrayobj import make_array, populate_array  # only a compiler needs it, and it takes long to load

        data = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), math.prod(numbers)))
        array = make_array(kind)(context, builder)
        strides = [8 * math.prod(numbers[k + 1 :]) for k in range(len(numbers))]
        lengths, steps = ([ir.Constant(ir.IntType(64), n) for n in each] for each in (numbers, strides))
        start = builder.bitcast(data, array.data.type)
        populate_array(array, start, lengths, steps, ir.Constant(ir.IntType(64), 8), meminfo=None)
        return array._getvalue()

    return kind(shape), generate


@intrinsic
def _load(_typing, array: Any, offset: Any, like: Any) -> Any:
    def generate(context, builder, signature, arguments):
        lanes = signature.return_type.lanes
        value = builder.load(_address(context, builder, signature.args[0], arguments[0], arguments[1], lanes))
        value.align = 8
        return value

    return Vector(len(like))(array, types.intp, like), generate


@intrinsic
def _number(_typing, array: Any, offset: Any) -> Any:
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(data, [arguments[1]]))

    return array.dtype(array, types.intp), generate


@intrinsic
def _add_product(_typing, total: Any, vector: Any, factor: Any) -> Any:
    def generate(_context, builder, signature, arguments):
        spread = _spread(builder, arguments[2], signature.return_type.lanes)
        product = builder.fmul(arguments[1], spread, flags=("contract",))
        return builder.fadd(arguments[0], product, flags=("contract",))

    return total(total, vector, types.float64), generate


@intrinsic
def _add_products(_typing, total: Any, first: Any, second: Any) -> Any:
    def generate(_context, builder, _signature, arguments):
        product = builder.fmul(arguments[1], arguments[2], flags=("contract",))
        return builder.fadd(arguments[0], product, flags=("contract",))

    return total(total, first, second), generate


@intrinsic
def _difference(_typing, first: Any, second: Any) -> Any:
    def generate(_context, builder, _signature, arguments):
        return builder.fsub(*arguments)

    return first(first, second), generate


@intrinsic
def _total(_typing, vector: Any) -> Any:
    def generate(_context, builder, signature, arguments):
        places = [ir.Constant(ir.IntType(32), n) for n in range(signature.args[0].lanes)]
        first, *rest = [builder.extract_element(arguments[0], place) for place in places]
        for number in rest:
            first = builder.fadd(first, number)
        return first

    return types.float64(vector), generate


def arranged(*places: int) -> Any:
    """A function of a vector: its numbers at these places, one for each lane of the result."""

    @intrinsic
    def arrange(_typing, vector: Any) -> Any:
        def generate(_context, builder, signature, arguments):
            unset = ir.Constant(arguments[0].type, ir.Undefined)
            mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))
            return builder.shuffle_vector(arguments[0], unset, mask)

        return Vector(len(places))(vector), generate

    return arrange


@intrinsic
def _add_squares(_typing, total: Any, first: Any, second: Any) -> Any:
    def generate(_context, builder, _signature, arguments):
        total, *vectors = arguments
        for vector in vectors:
            square = builder.fmul(vector, vector, flags=("contract",))
            total = builder.fadd(total, square, flags=("contract",))
        return total

    return total(total, first, second), generate


@intrinsic
def _add_to(_typing, array: Any, offset: Any, vector: Any) -> Any:
    def generate(context, builder, signature, arguments):
        lanes = signature.args[2].lanes
        place = _address(context, builder, signature.args[0], arguments[0], arguments[1], lanes)
        before = builder.load(place)
        before.align = 8
        builder.store(builder.fadd(before, arguments[2]), place).align = 8
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def _many(_typing, rows: Any, lanes: Any) -> Any:
    def generate(context, builder, signature, _arguments):
        zero = ir.Constant(ir.VectorType(ir.DoubleType(), signature.return_type.dtype.lanes), None)
        return context.make_tuple(builder, signature.return_type, [zero] * len(signature.return_type))

    return types.UniTuple(Vector(len(lanes)), len(rows))(rows, lanes), generate


@intrinsic
def _add_outer(_typing, totals: Any, vector: Any, array: Any, offset: Any) -> Any:
    def generate(context, builder, signature, arguments):
        before, vector, array, offset = arguments
        data, after = context.make_array(signature.args[2])(context, builder, array).data, []
        for r in range(len(totals)):
            place = builder.gep(data, [builder.add(offset, ir.Constant(offset.type, r))])
            product = builder.fmul(vector, _spread(builder, builder.load(place), vector.type.count), flags=("contract",))
            after.append(builder.fadd(builder.extract_value(before, r), product, flags=("contract",)))
        return context.make_tuple(builder, signature.return_type, after)

    return totals(totals, vector, array, types.intp), generate


@intrinsic
def _add_many_to(_typing, array: Any, offset: Any, totals: Any) -> Any:
    def generate(context, builder, signature, arguments):
        array, offset, totals = arguments
        kind, lanes = signature.args[2], signature.args[2].dtype.lanes
        for r in range(len(kind)):
            at = builder.add(offset, ir.Constant(offset.type, r * lanes))
            place = _address(context, builder, signature.args[0], array, at, lanes)
            before = builder.load(place)
            before.align = 8
            builder.store(builder.fadd(before, builder.extract_value(totals, r)), place).align = 8
        return context.get_dummy_value()

    return types.void(array, types.intp, totals), generate


@intrinsic
def _store(_typing, array: Any, offset: Any, vector: Any) -> Any:
    def generate(context, builder, signature, arguments):
        place = _address(context, builder, signature.args[0], arguments[0], arguments[1], signature.args[2].lanes)
        builder.store(arguments[2], place).align = 8
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


zeros: Any = _zeros
"""zeros(lanes)"""
room: Any = _room
"""room(shape): an array on the stack, its shape known to the compiler; what is in it stays between turns of a loop"""
load: Any = _load
"""load(array, offset, lanes)"""
number: Any = _number
"""number(array, offset): array[offset], which may not count from the end"""
add_product: Any = _add_product
"""add_product(total, vector, number): total + vector * number"""
add_squares: Any = _add_squares
"""add_squares(total, one, other): total + one² + other², number by number"""
add_to: Any = _add_to
"""add_to(array, offset, vector): array[offset:] += vector"""
many: Any = _many
"""many(rows, lanes): as many vectors of zeros as rows has numbers"""
add_outer: Any = _add_outer
"""add_outer(many, vector, array, offset): to each of many the vector times a number, those from array[offset] on"""
add_many_to: Any = _add_many_to
"""add_many_to(array, offset, many): array[offset:] += one vector after the other"""
add_products: Any = _add_products
"""add_products(total, one, other): total + one * other, number by number"""
difference: Any = _difference
"""difference(one, other): one - other"""
total: Any = _total
"""total(vector): the sum of its numbers"""
store: Any = _store
"""store(array, offset, vector): array[offset:] = vector"""
