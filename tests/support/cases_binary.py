"""Recipes of operators of several inputs that work element by element, with broadcasting."""

from __future__ import annotations

import numpy as np

from microtir.operators.arithmetic.tflite import AddOptions, SubOptions
from microtir.operators.common.tflite_schema import BuiltinOperator, FusedOptions
from tests.support.sketch import Case, Quant, Shape, Sketch

_ARITHMETIC = {
    BuiltinOperator.ADD: AddOptions,
    BuiltinOperator.SUB: SubOptions,
    BuiltinOperator.MUL: FusedOptions,
}


def broadcast_shapes(s: Sketch) -> tuple[Shape, Shape, Shape]:
    """Return two shapes that broadcast, and their common shape."""
    common = s.image(5) if s.chance(0.5) else s.shape(0, 4)
    if s.chance(0.1):
        common = tuple(min(extent, 3) for extent in s.shape(5, 6))
    if s.chance(0.4):
        return common, common, common
    first = tuple(1 if s.chance(0.2) else extent for extent in common)
    second = tuple(
        1 if other == extent and s.chance(0.4) else extent
        for extent, other in zip(common, first, strict=True)
    )
    dropped = s.integer(0, max(len(common) - 1, 0))
    second = second[dropped:] if all(n == 1 for n in second[:dropped]) else second
    if s.chance(0.5):
        first, second = second, first
    return first, second, np.broadcast_shapes(first, second)


def second_operand(s: Sketch, shape: Shape, quant: Quant | None) -> int:
    """Add another input, or a constant."""
    if s.chance(0.3):
        return s.constant("constant", s.values(shape), quant)
    return s.input(shape, quant)


def arithmetic(s: Sketch) -> Case:
    """Draw ADD, SUB or MUL with broadcasting, equal or unequal quantisations, constants."""
    first, second, common = broadcast_shapes(s)
    options = _ARITHMETIC[s.code](activation=s.activation())
    if not s.is_quantised:
        operands = [s.input(first), second_operand(s, second, None)]
        return s.finish(operands, s.output(common), options)
    zero_points = (0, 0, 0)  # what MUL asks for in int16
    if s.is_int8 or s.code is not BuiltinOperator.MUL:
        zero_points = (s.any_zero_point(), s.any_zero_point(), s.any_zero_point())
    quant1, quant2 = (Quant(s.scale(), zero_point) for zero_point in zero_points[:2])
    if s.chance(0.2):
        quant2 = quant1
    largest = max(quant1.scale, quant2.scale)
    if s.code is BuiltinOperator.MUL:
        largest = quant1.scale * quant2.scale * np.iinfo(s.dtype).max * 0.8
    ratio = s.pick(0.05, 0.5, 1.0, 1.0, 2.0, 20.0)
    quant = Quant(float(np.float32(largest * ratio)), zero_points[2])
    operands = [s.input(first, quant1), second_operand(s, second, quant2)]
    return s.finish(operands, s.output(common, quant), options)


def squared_difference(s: Sketch) -> Case:
    """Draw SQUARED_DIFFERENCE with broadcasting; int16 is symmetric."""
    first, second, common = broadcast_shapes(s)
    if not s.is_quantised:
        operands = [s.input(first), second_operand(s, second, None)]
        return s.finish(operands, s.output(common))
    quant1, quant2 = s.quant(s.dtype), s.quant(s.dtype)
    largest = max(quant1.scale, quant2.scale) ** 2 * np.iinfo(s.dtype).max
    quant = Quant(float(np.float32(largest * s.pick(0.3, 1.0, 4.0))), s.zero_point(s.dtype))
    operands = [s.input(first, quant1), second_operand(s, second, quant2)]
    return s.finish(operands, s.output(common, quant))


def add_n(s: Sketch) -> Case:
    """Draw ADD_N of one shape and one quantisation, of as many inputs as make int32 wrap."""
    shape = s.shape()
    count = s.pick(2, 3, 3, 17)
    quant = s.quant() if s.is_int8 else None
    result = quant and Quant(float(np.float32(quant.scale * s.pick(0.6, 3.0))), s.zero_point())
    operands = [s.input(shape, quant) for _ in range(count)]
    return s.finish(operands, s.output(shape, result))


def power(s: Sketch) -> Case:
    """Draw POW of positive numbers, or ATAN2 of any, which LiteRT does not broadcast."""
    first, second, common = broadcast_shapes(s)
    if s.code is BuiltinOperator.ATAN2:
        first = second = common
        return s.finish([s.input(first), second_operand(s, second, None)], s.output(common))
    base = s.input(first, None, np.abs(s.values(first)) + np.float32(0.1))
    exponents = np.clip(s.values(second), -4, 4)
    return s.finish([base, s.input(second, None, exponents)], s.output(common))


def division(s: Sketch) -> Case:
    """Draw DIV, FLOOR_DIV or FLOOR_MOD, with quotients for which tflite-micro has a result."""
    first, second, common = broadcast_shapes(s)
    options = FusedOptions(s.activation()) if s.code is BuiltinOperator.DIV else None
    numerators, divisors = s.values(first), s.values(second)
    quants: list[Quant | None] = [None, None, None]
    zero = 0
    if s.is_quantised and s.code is BuiltinOperator.DIV:
        # Its shifts reach 31 bits, which is enough where a quotient of one is 128 steps or more.
        quotient = Quant(s.scale(1e-3, 1e-2), s.any_zero_point())
        divisor = Quant(s.scale(1e-3, 1e-2), s.any_zero_point())
        ratio = 2.0 ** s.rng.uniform(7.1, 16) if s.is_int8 else 2.0 ** s.rng.uniform(14.1, 15)
        largest = float(np.float32(divisor.scale * quotient.scale * ratio))
        quants, zero = [Quant(largest, s.any_zero_point()), divisor, quotient], divisor.zero_point
    elif s.dtype.kind == "i":
        numerators = np.maximum(numerators, np.iinfo(s.dtype).min + 1)
    divisors = np.where(divisors == zero, zero + (1 if zero <= 0 else -1), divisors)
    divisors = divisors.astype(s.dtype)
    if s.chance(0.3):
        y = s.constant("constant", divisors, quants[1])
        x = s.input(first, quants[0], numerators.astype(s.dtype))
    else:
        x = s.input(first, quants[0], numerators.astype(s.dtype))
        y = s.input(second, quants[1], divisors)
    return s.finish([x, y], s.output(common, quants[2]), options)


def extremum(s: Sketch) -> Case:
    """Draw a case: MINIMUM and MAXIMUM, whose quantisations do not count."""
    first, second, common = broadcast_shapes(s)
    quants = [s.quant(s.dtype) if s.is_quantised else None for _ in range(3)]
    if s.chance(0.5):
        quants = quants[:1] * 3
    operands = [s.input(first, quants[0]), second_operand(s, second, quants[1])]
    return s.finish(operands, s.output(common, quants[2]))


def compare(s: Sketch) -> Case:
    """Draw a comparison; values of both sides are often equal."""
    first, second, common = broadcast_shapes(s)
    quants: tuple[Quant | None, ...] = (None, None)
    if s.is_quantised:
        # Extreme ones reach thirty times this and are rounded to a power of two: still below 1,
        # from where tflite-micro stops the program.
        quants = tuple(Quant(s.scale(1e-3, 0.02), s.any_zero_point()) for _ in range(2))
        quants = quants[:1] * 2 if s.chance(0.4) else quants
    values = s.values(first)
    x = s.input(first, quants[0], values)
    if first != second or s.chance(0.5):
        y = second_operand(s, second, quants[1])
    else:
        others = np.where(s.values(second, np.bool_), values, s.values(second))
        y = s.input(second, quants[1], others)
    return s.finish([x, y], s.output(common, None, np.bool_))


def logical(s: Sketch) -> Case:
    """Draw LOGICAL_AND, LOGICAL_OR or LOGICAL_NOT."""
    first, second, common = broadcast_shapes(s)
    if s.code is BuiltinOperator.LOGICAL_NOT:
        return s.finish([s.input(first)], s.output(first))
    return s.finish([s.input(first), second_operand(s, second, None)], s.output(common))


def select(s: Sketch) -> Case:
    """Draw SELECT, whose condition may be one of rows, or SELECT_V2, which broadcasts all."""
    first, second, common = broadcast_shapes(s)
    if s.code is BuiltinOperator.SELECT:
        first = second = common
        condition = s.pick(common, (), common[:1])
    else:
        condition = tuple(1 if s.chance(0.3) else extent for extent in common)
        condition = condition[s.integer(0, len(common)) :]
    quant = s.quant(s.dtype) if s.is_quantised else None
    mask = s.values(condition, np.bool_)
    chooser = s.constant("condition", mask) if s.chance(0.2) else s.input(condition, None, mask)
    operands = [chooser, s.input(first, quant), second_operand(s, second, quant)]
    return s.finish(operands, s.output(common, quant))
