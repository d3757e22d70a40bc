"""Recipes of operators that work element by element, and of those over the last axis."""

from __future__ import annotations

import numpy as np

from microtir.operators.activations.tflite import LeakyReluOptions
from microtir.operators.arithmetic.tflite import AddOptions, MulOptions, SubOptions
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteType
from microtir.operators.conversion.tflite import CastOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from tests.support.sketch import Case, Quant, Shape, Sketch

_ARITHMETIC = {
    BuiltinOperator.ADD: AddOptions,
    BuiltinOperator.SUB: SubOptions,
    BuiltinOperator.MUL: MulOptions,
}

_FIXED_OUTPUT = {
    BuiltinOperator.LOGISTIC: Quant(1 / 256, -128),
    BuiltinOperator.TANH: Quant(1 / 128, 0),
    BuiltinOperator.SOFTMAX: Quant(1 / 256, -128),
    BuiltinOperator.LOG_SOFTMAX: Quant(16 / 256, 127),
}


def _broadcast_shapes(s: Sketch) -> tuple[Shape, Shape, Shape]:
    """Return two shapes that broadcast, and their common shape."""
    common = s.image(5) if s.chance(0.5) else s.shape(1, 4)
    if s.chance(0.4):
        return common, common, common
    first = tuple(1 if s.chance(0.2) else extent for extent in common)
    second = tuple(
        1 if other == extent and s.chance(0.4) else extent
        for extent, other in zip(common, first, strict=True)
    )
    dropped = s.integer(0, len(common) - 1)
    second = second[dropped:] if all(n == 1 for n in second[:dropped]) else second
    if s.chance(0.5):
        first, second = second, first
    return first, second, np.broadcast_shapes(first, second)


def _second_operand(s: Sketch, shape: Shape, quant: Quant | None) -> int:
    if s.chance(0.3):
        return s.constant("constant", s.values(shape), quant)
    return s.input(shape, quant)


def arithmetic(s: Sketch) -> Case:
    """Draw ADD, SUB or MUL with broadcasting, equal or unequal quantisations, constants."""
    first, second, common = _broadcast_shapes(s)
    options = _ARITHMETIC[s.code](activation=s.activation())
    if not s.is_int8:
        operands = [s.input(first), _second_operand(s, second, None)]
        return s.finish(operands, s.output(common), options)
    quant1, quant2 = s.quant(), s.quant()
    if s.chance(0.2):
        quant2 = quant1
    largest = max(quant1.scale, quant2.scale)
    if s.code is BuiltinOperator.MUL:
        largest = quant1.scale * quant2.scale * 100
    ratio = s.pick(0.05, 0.5, 1.0, 1.0, 2.0, 20.0)
    quant = Quant(float(np.float32(largest * ratio)), s.zero_point())
    operands = [s.input(first, quant1), _second_operand(s, second, quant2)]
    return s.finish(operands, s.output(common, quant), options)


def extremum(s: Sketch) -> Case:
    """Draw a case: MINIMUM and MAXIMUM: all quantisations are equal."""
    first, second, common = _broadcast_shapes(s)
    quant = s.quant() if s.is_int8 else None
    operands = [s.input(first, quant), _second_operand(s, second, quant)]
    return s.finish(operands, s.output(common, quant))


def _every_value(s: Sketch) -> tuple[int, ...]:
    """Draw an input shape; int8 cases cover all 256 values."""
    return (4, 64) if s.is_int8 else s.shape()


def _unary(s: Sketch, x_quant: Quant, y_quant: Quant, options: Options | None = None) -> Case:
    shape = _every_value(s)
    if not s.is_int8:
        return s.finish([s.input(shape)], s.output(shape), options)
    values = s.rng.permutation(np.arange(-128, 128).astype(np.int8)).reshape(shape)
    x = s.input(shape, x_quant, values)
    return s.finish([x], s.output(shape, y_quant), options)


def _rescaled(s: Sketch, quant: Quant, low: float, high: float) -> Quant:
    """Return another quantisation whose scale is the given one times 2^low to 2^high."""
    ratio = 2.0 ** s.rng.uniform(low, high)
    return Quant(float(np.float32(quant.scale * ratio)), s.zero_point())


def relu(s: Sketch) -> Case:
    """Draw a case: RELU rescales, RELU6 keeps the quantisation."""
    quant = s.quant()
    rescales = s.code is BuiltinOperator.RELU and s.chance(0.7)
    return _unary(s, quant, _rescaled(s, quant, -4, 4) if rescales else quant)


def leaky_relu(s: Sketch) -> Case:
    """Draw a case: LEAKY_RELU with alpha of any sign."""
    alpha = float(np.float32(s.pick(0.1, 0.3, 0.0, 1.5, -0.2, s.rng.uniform(0, 1))))
    quant = s.quant()
    return _unary(s, quant, _rescaled(s, quant, -4, 4), LeakyReluOptions(alpha))


def hard_swish(s: Sketch) -> Case:
    """Draw a HARD_SWISH; tflite-micro asks for an output scale of 1/128 of the input's or more."""
    quant = s.quant()
    return _unary(s, quant, _rescaled(s, quant, -6.5, 3))


def fixed_output(s: Sketch) -> Case:
    """Draw a case: LOGISTIC, TANH, SOFTMAX, LOG_SOFTMAX: the output's quantisation is fixed."""
    quant = Quant(s.scale(1e-4, 8.0), s.zero_point())
    options: Options | None = None
    if s.code is BuiltinOperator.SOFTMAX:
        options = SoftmaxOptions(float(np.float32(s.pick(1.0, 1.0, 0.5, 2.0))))
    if s.code in (BuiltinOperator.LOGISTIC, BuiltinOperator.TANH):
        return _unary(s, quant, _FIXED_OUTPUT[s.code])
    shape = (*s.shape(0, 2), s.integer(1, 20))
    if not s.is_int8:
        return s.finish([s.input(shape)], s.output(shape), options)
    x = s.input(shape, quant)
    return s.finish([x], s.output(shape, _FIXED_OUTPUT[s.code]), options)


def quantize(s: Sketch) -> Case:
    """Draw a case: QUANTIZE from float, and between integer types."""
    shape = s.shape()
    target = np.dtype(
        s.pick(*{
            "float32": ("int8",),
            "int8": ("int8", "int8", "uint8"),
            "int16": ("int8",),
            "uint8": ("int8",),
        }[s.dtype.name])
    )  # fmt: skip
    y_quant = Quant(s.scale(), s.zero_point(target))
    if s.dtype.kind == "f":
        return s.finish([s.input(shape)], s.output(shape, y_quant, target))
    # Keeps the requantised value within int32, as the kernels assume.
    widest = 2 if s.dtype.itemsize == 2 else 6
    ratio = 2.0 ** s.rng.uniform(-6 + widest, widest)
    if s.dtype.itemsize == target.itemsize == 1 and s.chance(0.4):
        ratio = 1.0
    x_quant = Quant(float(np.float32(y_quant.scale * ratio)), s.zero_point(s.dtype))
    return s.finish([s.input(shape, x_quant)], s.output(shape, y_quant, target))


def dequantize(s: Sketch) -> Case:
    """Draw a case: DEQUANTIZE to float32."""
    shape = s.shape()
    quant = s.quant(s.dtype)
    return s.finish([s.input(shape, quant)], s.output(shape, None, np.float32))


def cast(s: Sketch) -> Case:
    """Draw a CAST between types that tflite-micro has; floats stay in the target's range."""
    shape = s.shape()
    target = np.dtype(s.pick("int8", "int16", "int32", "float32"))
    values = s.values(shape)
    if s.dtype.kind == "f" and target.kind in "iu":
        info = np.iinfo(target)
        values = np.clip(values * 20, max(info.min, -2e9), min(info.max, 2e9)).astype(np.float32)
    options = CastOptions(TfliteType[s.dtype.name.upper()], TfliteType[target.name.upper()])
    return s.finish([s.input(shape, values=values)], s.output(shape, None, target), options)
