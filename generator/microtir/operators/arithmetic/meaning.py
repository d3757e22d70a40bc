"""Define in numpy, to the bit, what element-wise operators of two inputs compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic import definition as arithmetic
from microtir.operators.common import attributes, types
from microtir.operators.common.arrays import Meaning, activate, as_output, dequantized, stored
from microtir.operators.common.fixed_point import Ints, multiply_by_quantized_multiplier, wrap


def _plain(
    op: arithmetic.BinaryArithmetic,
    output: TensorType,
    function: Callable[[Array, Array], Array],
    first: Array,
    second: Array,
) -> Array:
    """Compute in the type of the operands: floats, and integers without a scale, which wrap."""
    with np.errstate(over="ignore"):  # of scalars; arrays wrap in silence
        result = function(first, second)
    if output.dtype.is_float:
        return as_output(activate(result, op.activation), output)
    return as_output(np.clip(result, *arithmetic.whole_range(op, output.dtype)), output)


def add(op: arithmetic.Add | arithmetic.Sub, node: Node, first: Array, second: Array) -> Array:
    """Compute ADD and SUB with broadcasting."""
    sign = 1 if isinstance(op, arithmetic.Add) else -1
    output = node.output.type
    if output.dtype not in types.QUANTISED:
        return _plain(op, output, np.add if sign == 1 else np.subtract, first, second)
    if op.rescaling is attributes.Rescaling.FLOAT32:
        return _in_float(op, node, np.add if sign == 1 else np.subtract, first, second)
    params = arithmetic.add_params(op, node.inputs[0].type, node.inputs[1].type, output)
    x1, x2 = _rescaled(params, first, second)
    scaled = multiply_by_quantized_multiplier(x1 + sign * x2, *params.output)
    return _finished(params, scaled, output)


def mul(op: arithmetic.Mul, node: Node, first: Array, second: Array) -> Array:
    """Compute MUL with broadcasting."""
    output = node.output.type
    if output.dtype not in types.QUANTISED:
        return _plain(op, output, np.multiply, first, second)
    if op.rescaling is attributes.Rescaling.FLOAT32:
        return _in_float(op, node, np.multiply, first, second)
    params = arithmetic.mul_params(op, node.inputs[0].type, node.inputs[1].type, output)
    x1 = stored(first) - params.input1_zero_point
    x2 = stored(second) - params.input2_zero_point
    scaled = multiply_by_quantized_multiplier(x1 * x2, *params.multiplier)
    shifted = scaled + params.output_zero_point
    return as_output(np.clip(shifted, params.activation_min, params.activation_max), output)


def _in_float(
    op: arithmetic.BinaryArithmetic,
    node: Node,
    function: Callable[[Array, Array], Array],
    first: Array,
    second: Array,
) -> Array:
    """Compute step by step in float32, as ONNX defines it: of two nearest integers the even one."""
    output = node.output.type
    real = function(
        dequantized(first, node.inputs[0].type), dequantized(second, node.inputs[1].type)
    )
    quotients = activate(real, op.activation).astype(np.float32) / np.float32(output.quant.scale)
    shifted = np.rint(quotients) + output.quant.zero_point
    return as_output(np.clip(shifted, output.dtype.min, output.dtype.max), output)


def squared_difference(
    _op: arithmetic.SquaredDifference, node: Node, first: Array, second: Array
) -> Array:
    """Compute SQUARED_DIFFERENCE with broadcasting."""
    output = node.output.type
    if output.dtype not in types.QUANTISED:
        with np.errstate(over="ignore"):
            difference = first - second
            return as_output(difference * difference, output)
    params = arithmetic.difference_params(node.inputs[0].type, node.inputs[1].type, output)
    x1, x2 = _rescaled(params, first, second)
    scaled = multiply_by_quantized_multiplier((x1 - x2) * (x1 - x2), *params.output)
    return _finished(params, scaled, output)


def add_n(_op: arithmetic.AddN, node: Node, *values: Array) -> Array:
    """Compute ADD_N, as tflite-micro: in int8 it begins with what the zero point stands for."""
    output = node.output.type
    if output.dtype.is_float:
        return as_output(np.sum(np.stack(values).astype(np.float64), axis=0), output)
    if output.dtype is DType.INT32:
        return as_output(wrap(np.sum([stored(value) for value in values], axis=0)), output)
    params = arithmetic.add_n_params(node)
    one = 1 << params.left_shift
    total = multiply_by_quantized_multiplier(-params.input1_zero_point * one, *params.input1)
    for value in values:
        total = total + _rescaled(params, value, value)[0]
    return _finished(params, multiply_by_quantized_multiplier(wrap(total), *params.output), output)


def _rescaled(params: arithmetic.AddParams, first: Array, second: Array) -> tuple[Ints, Ints]:
    """Return both operands centred, widened and rescaled."""
    one = 1 << params.left_shift
    x1 = (stored(first) - params.input1_zero_point) * one
    x2 = (stored(second) - params.input2_zero_point) * one
    return (
        multiply_by_quantized_multiplier(x1, *params.input1),
        multiply_by_quantized_multiplier(x2, *params.input2),
    )


def _finished(params: arithmetic.AddParams, scaled: Ints, output: TensorType) -> Array:
    shifted = scaled + params.output_zero_point
    return as_output(np.clip(shifted, params.activation_min, params.activation_max), output)


def power(_op: arithmetic.Pow, node: Node, first: Array, second: Array) -> Array:
    """Compute POW with broadcasting, in double."""
    with np.errstate(all="ignore"):
        return as_output(np.power(first.astype(np.float64), second), node.output.type)


def atan2(_op: arithmetic.Atan2, node: Node, first: Array, second: Array) -> Array:
    """Compute ATAN2 with broadcasting, in double."""
    return as_output(np.arctan2(first.astype(np.float64), second), node.output.type)


def minimum(_op: arithmetic.Minimum, _node: Node, first: Array, second: Array) -> Array:
    """Compute MINIMUM of stored values, with broadcasting."""
    return np.minimum(first, second)


def maximum(_op: arithmetic.Maximum, _node: Node, first: Array, second: Array) -> Array:
    """Compute MAXIMUM of stored values, with broadcasting."""
    return np.maximum(first, second)


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        arithmetic.Add: add,
        arithmetic.Sub: add,
        arithmetic.Mul: mul,
        arithmetic.SquaredDifference: squared_difference,
        arithmetic.AddN: add_n,
        arithmetic.Pow: power,
        arithmetic.Atan2: atan2,
        arithmetic.Minimum: minimum,
        arithmetic.Maximum: maximum,
    }
)
