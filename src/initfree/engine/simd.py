"""Vectors of a fixed number of doubles inside kernels: what stays in registers while a sum goes through memory.

LLVM does not find them by itself in sums over short rows: it unrolls the row and stays scalar. A vector of 8 is two
registers of 4 where the machine has these, whatever it has elsewhere. Flat arrays, offsets in numbers; nothing is checked.
"""

import math
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model


class Vector(types.Type):
    """So many doubles."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"Vector({lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.DoubleType(), kind.lanes))


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
room: Any = _room
load: Any = _load
number: Any = _number
add_product: Any = _add_product
add_squares: Any = _add_squares
add_to: Any = _add_to
many: Any = _many
add_outer: Any = _add_outer
add_many_to: Any = _add_many_to
add_products: Any = _add_products
difference: Any = _difference
total: Any = _total
store: Any = _store
