"""Define in numpy, to the bit, what element-wise operators of two inputs compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, TensorType
from microtir.operators.arithmetic import definition as arithmetic
from microtir.operators.common import attributes, linear, types
from microtir.operators.common.arrays import Meaning, activate, as_output, dequantized, stored
from microtir.operators.common.fixed_point import Ints, multiply_by_quantized_multiplier, wrap

Function: TypeAlias = Callable[[Array, Array], Array]


def of_two(function: Function, quantised: Callable[..., Array]) -> Meaning:
    """Compute a function of two numbers, with broadcasting.

    Args:
        function: of floats, and of integers without a scale, which wrap.
        quantised: given the operator, the node and both inputs that are rescaled in fixed point.
    """

    def meaning(op: arithmetic.BinaryArithmetic, node: Node, first: Array, second: Array) -> Array:
        output = node.output.type
        if output.dtype in types.QUANTISED:
            if op.rescaling is attributes.Rescaling.EXACT:
                return _exact(op, node, function, first, second)
            if op.rescaling is attributes.Rescaling.FLOAT32:
                return _in_float(op, node, function, first, second)
            return quantised(op, node, first, second)
        with np.errstate(over="ignore"):  # of scalars; arrays wrap in silence
            result = function(first, second)
        if output.dtype.is_float:
            return as_output(activate(result, op.activation), output)
        return as_output(np.clip(result, *arithmetic.whole_range(op, output.dtype)), output)

    return meaning


def total(op: arithmetic.Add | arithmetic.Sub, node: Node, first: Array, second: Array) -> Array:
    """Compute quantised ADD and SUB."""
    sign, output = 1 if isinstance(op, arithmetic.Add) else -1, node.output.type
    params = arithmetic.add_params(op, node.inputs[0].type, node.inputs[1].type, output)
    x1, x2 = _rescaled(params, first, second)
    scaled = multiply_by_quantized_multiplier(x1 + sign * x2, *params.output)
    return _finished(params, scaled, output)


def product(op: arithmetic.Mul, node: Node, first: Array, second: Array) -> Array:
    """Compute quantised MUL."""
    output = node.output.type
    params = arithmetic.mul_params(op, node.inputs[0].type, node.inputs[1].type, output)
    x1 = stored(first) - params.input1_zero_point
    x2 = stored(second) - params.input2_zero_point
    return _finished(params, multiply_by_quantized_multiplier(x1 * x2, *params.multiplier), output)


def _in_float(
    op: arithmetic.BinaryArithmetic, node: Node, function: Function, first: Array, second: Array
) -> Array:
    """Compute step by step in float32, as ONNX defines it: of two nearest integers the even one."""
    output = node.output.type
    real = function(
        dequantized(first, node.inputs[0].type), dequantized(second, node.inputs[1].type)
    )
    quotients = activate(real, op.activation).astype(np.float32) / np.float32(output.quant.scale)
    shifted = np.rint(quotients) + output.quant.zero_point
    return as_output(np.clip(shifted, output.dtype.min, output.dtype.max), output)


def _exact(
    op: arithmetic.BinaryArithmetic, node: Node, function: Function, first: Array, second: Array
) -> Array:
    """Compute in doubles, which hold what float32 scales give: of two integers the even one."""
    output, types_ = node.output.type, [tensor.type for tensor in node.inputs]
    centred = [
        (stored(x) - type_.quant.zero_point).astype(np.float64)
        for x, type_ in zip((first, second), types_, strict=True)
    ]
    if isinstance(op, arithmetic.Mul):
        reals = function(*centred) * arithmetic.exact_factor(types_[0], types_[1], output)
    else:
        scales = [float(np.float32(type_.quant.scale)) for type_ in types_]
        reals = function(centred[0] * scales[0], centred[1] * scales[1])
        reals = reals * linear.reciprocal(output)
    ends = linear.float_range(op.activation, output, op.rescaling)
    return as_output(np.clip(np.rint(reals) + output.quant.zero_point, *ends), output)


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


def _finished(
    params: arithmetic.AddParams | arithmetic.MulParams, scaled: Ints, output: TensorType
) -> Array:
    shifted = scaled + params.output_zero_point
    return as_output(np.clip(shifted, params.activation_min, params.activation_max), output)
