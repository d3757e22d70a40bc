"""Define in numpy, to the bit, what activations compute."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, TensorType
from microtir.operators.activations import definition as activations
from microtir.operators.activations import gelu_table
from microtir.operators.common import fixed_point, lookup_meaning, sigmoid_table_meaning
from microtir.operators.common.arrays import Doubles, activate, as_output, stored
from microtir.operators.common.fixed_point import (
    Ints,
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    saturating_shift_left,
    truncating_shift_right,
    wrap,
)
from microtir.operators.common.lookup import Affine, Floats, RealFunction, table_of_int8


def relu(op: activations.Relu, x: Doubles) -> Array:
    """Compute RELU, RELU6 and RELU_N1_TO_1."""
    return activate(x, op.kind)


def leaky_relu(op: activations.LeakyRelu, x: Doubles) -> Array:
    """Compute LEAKY_RELU: x where x > 0, else alpha * x."""
    return np.where(x > 0, x, x * np.float32(op.alpha))


def prelu(op: activations.Prelu, node: Node, x: Array, alpha: Array) -> Array:
    """Compute PRELU: x where x >= 0, else alpha * x, with broadcasting."""
    output = node.output.type
    if output.dtype.is_float:
        return as_output(np.where(x >= 0, x, x * alpha), output)
    params = activations.prelu_params(op, node.inputs[0].type, node.inputs[1].type, output)
    centred = stored(x) - params.input_zero_point
    below = centred * (stored(alpha) - params.alpha_zero_point)
    below = multiply_by_quantized_multiplier(below, *params.product)
    above = multiply_by_quantized_multiplier(centred, *params.identity)
    result = np.where(centred >= 0, above, below) + params.output_zero_point
    return as_output(np.clip(result, output.dtype.min, output.dtype.max), output)


def elu(_op: activations.Elu, x: Doubles) -> Array:
    """Compute ELU: x where x >= 0, else exp(x) - 1."""
    return np.where(x < 0, np.expm1(np.minimum(x, 0.0)), x)


def quantized_elu(
    _op: activations.Elu, x: Ints, input_type: TensorType, output: TensorType
) -> Ints:
    """Compute ELU of stored values, as LiteRT."""
    return _looked_up(x, _elu_of_table, input_type, output)


def _elu_of_table(x: Floats) -> Floats:
    """Return ELU as tables have it: exponential and difference are both rounded to float32."""
    power = np.exp(np.minimum(x, 0.0).astype(np.float64)).astype(np.float32)
    return np.where(x < 0, power - np.float32(1.0), x)


def _looked_up(x: Ints, function: RealFunction, input_type: TensorType, output: TensorType) -> Ints:
    table = table_of_int8(function, Affine.of(input_type), Affine.of(output))
    return stored(table)[x - DType.INT8.min]


def hard_swish(_op: activations.HardSwish, x: Doubles) -> Array:
    """Compute HARD_SWISH: x * clamp(x + 3, 0, 6) / 6, each step in float32."""
    single = x.astype(np.float32)
    gate = np.clip(single + np.float32(3.0), np.float32(0.0), np.float32(6.0))
    return np.asarray(single * gate / np.float32(6.0))


def logistic(_op: activations.Logistic, x: Doubles) -> Array:
    """Compute LOGISTIC: 1 / (1 + exp(-x)).

    The float form is the function itself. tflite-micro replaces it by exp(x) below -9, which
    differs by at most 1.6e-8.
    """
    magnitude = np.exp(-np.abs(x))
    return np.where(x < 0, magnitude, 1.0) / (1.0 + magnitude)


def gelu(op: activations.Gelu, x: Doubles) -> Array:
    """Compute GELU: x * erfc(-x / sqrt(2)) / 2, or its approximation by a tanh.

    The latter is x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2.
    """
    if op.approximate:
        factor = 1.0 + np.tanh(gelu_table.TANH_FACTOR * (x + 0.044715 * x**3))
    else:
        factor = np.asarray(gelu_table.ERFC(-x * math.sqrt(0.5)), np.float64)
    return 0.5 * x * factor


def quantized_relu(
    op: activations.Relu, x: Ints, input_type: TensorType, output: TensorType
) -> Ints:
    """Compute RELU, RELU6 or RELU_N1_TO_1 of stored values."""
    params = activations.relu_params(op, input_type, output)
    if params.multiplier is not None:
        centred = x - params.input_zero_point
        x = multiply_by_quantized_multiplier(centred, *params.multiplier)
        x = x + params.output_zero_point
    return np.clip(x, params.activation_min, params.activation_max)


def quantized_leaky_relu(
    op: activations.LeakyRelu, x: Ints, input_type: TensorType, output: TensorType
) -> Ints:
    """Compute LEAKY_RELU of stored values."""
    params = activations.leaky_relu_params(op, input_type, output)
    centred = x - params.input_zero_point
    multiplier, shift = params.alpha
    below = multiply_by_quantized_multiplier(centred, abs(multiplier), shift)
    below = -below if multiplier < 0 else below
    above = multiply_by_quantized_multiplier(centred, *params.identity)
    result: Ints = np.where(centred >= 0, above, below) + params.output_zero_point
    return np.clip(result, params.minimum, params.maximum)


def quantized_hard_swish(
    _op: activations.HardSwish, x: Ints, input_type: TensorType, output: TensorType
) -> Ints:
    """Compute HARD_SWISH, x * relu6(x + 3) / 6, of stored values, in 16-bit fixed point."""
    params = activations.hard_swish_params(input_type, output)
    wide = (x - params.input_zero_point) << 7
    scaled = saturating_rounding_doubling_high_mul(wide, params.output.multiplier, bits=16)
    exponent = params.reluish.shift
    # The last bit of a left shift comes after the multiplication: only there may it saturate.
    reluish = saturating_shift_left(wide, max(exponent - 1, 0), bits=16)
    reluish = saturating_rounding_doubling_high_mul(reluish, params.reluish.multiplier, bits=16)
    if exponent > 0:
        reluish = saturating_shift_left(reluish, 1, bits=16)
    elif exponent < 0:
        reluish = rounding_divide_by_pot(reluish, -exponent, bits=16)
    weight = (reluish + (1 << 15)) >> 1
    # This product is truncated, to cancel the bias of the roundings before it.
    product = truncating_shift_right(weight * scaled, 15)
    result = rounding_divide_by_pot(product, -params.output.shift, bits=16)
    result = wrap(result + params.output_zero_point, bits=16)
    return np.clip(result, params.minimum, params.maximum)


def quantized_logistic(
    op: activations.Logistic, x: Ints, input_type: TensorType, _output: TensorType
) -> Ints:
    """Compute LOGISTIC of stored values; of int8 the output has scale 1/256 and zero point -128."""
    if input_type.dtype is DType.INT16:
        return sigmoid_table_meaning.logistic_of_int16(x, activations.table_scaling(op, input_type))
    return _saturating_sigmoid(
        x,
        input_type,
        lambda q4: (
            rounding_divide_by_pot(fixed_point.logistic(q4, activations.SIGMOID_INTEGER_BITS), 23)
            - 128
        ),
    )


def quantized_tanh(
    op: activations.Tanh, x: Ints, input_type: TensorType, _output: TensorType
) -> Ints:
    """Compute TANH of stored values; of int8 the output has scale 1/128 and zero point 0."""
    if input_type.dtype is DType.INT16:
        return sigmoid_table_meaning.tanh_of_int16(x, activations.table_scaling(op, input_type))
    return _saturating_sigmoid(
        x,
        input_type,
        lambda q4: rounding_divide_by_pot(
            fixed_point.tanh(q4, activations.SIGMOID_INTEGER_BITS), 24
        ),
    )


def _saturating_sigmoid(x: Ints, input_type: TensorType, function: Callable[[Ints], Ints]) -> Ints:
    """Apply `function` (Q4 to stored values) inside the radius; saturate outside."""
    params = activations.sigmoid_params(input_type)
    centred = x - params.input_zero_point
    radius = params.input_radius
    low, high = DType.INT8.min, DType.INT8.max
    inside = np.clip(centred, -radius, radius)
    q4 = multiply_by_quantized_multiplier(inside, *params.multiplier)
    result = np.clip(function(q4), low, high)
    result = np.where(centred >= radius, high, result)
    return np.where(centred <= -radius, low, result)


def quantized_gelu(
    op: activations.Gelu, x: Ints, input_type: TensorType, output: TensorType
) -> Ints:
    """Compute GELU of stored values, as LiteRT."""
    if output.dtype is DType.INT16:
        table = gelu_table.gelu_table_of_int16(op, input_type, output)
        return lookup_meaning.looked_up_int16(x, table)
    return _looked_up(x, gelu_table.gelu_in_float32(op), input_type, output)
