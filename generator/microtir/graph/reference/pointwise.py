"""Operators that work element by element."""

from __future__ import annotations

import numpy as np

from microtir.graph.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    Ints,
    multiply_by_quantized_multiplier,
    wrap,
)
from microtir.graph.ir import Array, Node
from microtir.graph.ops import (
    Add,
    CastTo,
    Dequantize,
    HardSwish,
    LeakyRelu,
    Logistic,
    Maximum,
    Minimum,
    Mul,
    Quantize,
    Relu,
    Sub,
    Tanh,
)
from microtir.graph.quantization import add_params, mul_params, quantize_params
from microtir.graph.quantization.tables import (
    quantized_hard_swish,
    quantized_leaky_relu,
    quantized_logistic,
    quantized_relu,
    quantized_requantize,
    quantized_tanh,
)
from microtir.graph.reference.arrays import activate, as_output, dequantized, stored
from microtir.tir.dtype import DType


def add(op: Add | Sub, node: Node, first: Array, second: Array) -> Array:
    """ADD and SUB with broadcasting."""
    sign = 1 if isinstance(op, Add) else -1
    output = node.output.type
    if output.dtype.is_float:
        return as_output(activate(first + sign * second, op.activation), output)
    params = add_params(op, node.inputs[0].type, node.inputs[1].type, output)
    one = 1 << params.left_shift
    x1 = (stored(first) - params.input1_zero_point) * one
    x2 = (stored(second) - params.input2_zero_point) * one
    total = multiply_by_quantized_multiplier(x1, *params.input1)
    total = total + sign * multiply_by_quantized_multiplier(x2, *params.input2)
    scaled = multiply_by_quantized_multiplier(total, *params.output) + params.output_zero_point
    return as_output(np.clip(scaled, params.activation_min, params.activation_max), output)


def mul(op: Mul, node: Node, first: Array, second: Array) -> Array:
    """MUL with broadcasting."""
    output = node.output.type
    if output.dtype.is_float:
        return as_output(activate(first * second, op.activation), output)
    params = mul_params(op, node.inputs[0].type, node.inputs[1].type, output)
    x1 = stored(first) - params.input1_zero_point
    x2 = stored(second) - params.input2_zero_point
    scaled = multiply_by_quantized_multiplier(x1 * x2, *params.multiplier)
    shifted = scaled + params.output_zero_point
    return as_output(np.clip(shifted, params.activation_min, params.activation_max), output)


def minimum(_op: Minimum, _node: Node, first: Array, second: Array) -> Array:
    """MINIMUM of stored values, with broadcasting."""
    return np.minimum(first, second)


def maximum(_op: Maximum, _node: Node, first: Array, second: Array) -> Array:
    """MAXIMUM of stored values, with broadcasting."""
    return np.maximum(first, second)


def relu(op: Relu, node: Node, x: Array) -> Array:
    """RELU, RELU6 and RELU_N1_TO_1."""
    source, output = node.inputs[0].type, node.output.type
    if output.dtype.is_float:
        return as_output(activate(x, op.kind), output)
    return as_output(quantized_relu(op, stored(x), source, output), output)


def leaky_relu(op: LeakyRelu, node: Node, x: Array) -> Array:
    """LEAKY_RELU: x where x > 0, else alpha * x."""
    source, output = node.inputs[0].type, node.output.type
    if output.dtype.is_float:
        return as_output(np.where(x > 0, x, x * np.float32(op.alpha)), output)
    return as_output(quantized_leaky_relu(op, stored(x), source, output), output)


def hard_swish(op: HardSwish, node: Node, x: Array) -> Array:
    """HARD_SWISH: x * clamp(x + 3, 0, 6) / 6."""
    source, output = node.inputs[0].type, node.output.type
    if output.dtype.is_float:
        gate = np.clip(x + np.float32(3.0), np.float32(0.0), np.float32(6.0))
        return as_output(x * gate / np.float32(6.0), output)
    return as_output(quantized_hard_swish(op, stored(x), source, output), output)


def logistic(op: Logistic, node: Node, x: Array) -> Array:
    """LOGISTIC: 1 / (1 + exp(-x)).

    The float form is the function itself. tflite-micro replaces it by exp(x) below -9, which
    differs by at most 1.6e-8.
    """
    source, output = node.inputs[0].type, node.output.type
    if output.dtype.is_float:
        magnitude = np.exp(-np.abs(x.astype(np.float64)))
        return as_output(np.where(x < 0, magnitude, 1.0) / (1.0 + magnitude), output)
    return as_output(quantized_logistic(op, stored(x), source, output), output)


def tanh(op: Tanh, node: Node, x: Array) -> Array:
    """TANH."""
    source, output = node.inputs[0].type, node.output.type
    if output.dtype.is_float:
        return as_output(np.tanh(x.astype(np.float64)), output)
    return as_output(quantized_tanh(op, stored(x), source, output), output)


def quantize(op: Quantize, node: Node, x: Array) -> Array:
    """QUANTIZE from float32, or between integer types.

    A quotient outside int32, which C leaves undefined, saturates; NaN gives the zero point.
    """
    source, output = node.inputs[0].type, node.output.type
    if not source.dtype.is_float:
        return as_output(quantized_requantize(op, stored(x), source, output), output)
    params = quantize_params(output)
    quotient = (x / np.float32(params.scale)).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient)
    shifted = _saturated(rounded) + params.zero_point
    return as_output(np.clip(shifted, params.minimum, params.maximum), output)


def _saturated(real: Array) -> Ints:
    """Integral doubles as integers within int32; NaN becomes 0."""
    finite = np.clip(np.nan_to_num(real, nan=0.0), INT32_MIN, INT32_MAX)
    return np.asarray(finite, np.int64)


def dequantize(_op: Dequantize, node: Node, x: Array) -> Array:
    """DEQUANTIZE, per tensor or per channel."""
    return as_output(dequantized(x, node.inputs[0].type), node.output.type)


def cast_to(_op: CastTo, node: Node, x: Array) -> Array:
    """CAST of stored values.

    Float to integer truncates to int32, saturating where C leaves the result undefined; integers
    then wrap to a narrower type. Anything but zero is true.
    """
    target = node.output.dtype
    if target is DType.BOOL:
        return np.asarray(x != 0)
    if target.is_float:
        return x.astype(target.value)
    integers = _saturated(np.trunc(x.astype(np.float64))) if x.dtype.kind == "f" else stored(x)
    bits = wrap(integers, target.bits) if target.bits < 64 else integers
    return bits.astype(target.value)
