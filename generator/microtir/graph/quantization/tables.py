"""Results of operators with one int8 input and one int8 output, for all 256 stored values.

Such an operator is a look-up whatever it computes.  Entry i belongs to the stored value i - 128.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from microtir.graph.fixed_point import (
    Ints,
    logistic,
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    saturating_shift_left,
    tanh,
    truncating_shift_right,
    wrap,
)
from microtir.graph.ir import TensorType
from microtir.graph.ops import (
    HardSwish,
    LeakyRelu,
    Logistic,
    Operator,
    Quantize,
    Relu,
    Tanh,
)
from microtir.graph.quantization.elementwise import (
    SIGMOID_INTEGER_BITS,
    hard_swish_params,
    leaky_relu_params,
    relu_params,
    requantize_params,
    sigmoid_params,
)
from microtir.tir.dtype import DType


def quantized_relu(op: Relu, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """RELU, RELU6 or RELU_N1_TO_1 of stored values."""
    params = relu_params(op, input_type, output)
    if params.multiplier is not None:
        centred = x - params.input_zero_point
        x = multiply_by_quantized_multiplier(centred, *params.multiplier)
        x = x + params.output_zero_point
    return np.clip(x, params.activation_min, params.activation_max)


def quantized_leaky_relu(
    op: LeakyRelu, x: Ints, input_type: TensorType, output: TensorType
) -> Ints:
    """LEAKY_RELU of stored values."""
    params = leaky_relu_params(op, input_type, output)
    centred = x - params.input_zero_point
    multiplier, shift = params.alpha
    below = multiply_by_quantized_multiplier(centred, abs(multiplier), shift)
    below = -below if multiplier < 0 else below
    above = multiply_by_quantized_multiplier(centred, *params.identity)
    result: Ints = np.where(centred >= 0, above, below) + params.output_zero_point
    return np.clip(result, params.minimum, params.maximum)


def quantized_hard_swish(
    _op: HardSwish, x: Ints, input_type: TensorType, output: TensorType
) -> Ints:
    """HARD_SWISH, x * relu6(x + 3) / 6, of stored values, in 16-bit fixed point."""
    params = hard_swish_params(input_type, output)
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


def quantized_logistic(_op: Logistic, x: Ints, input_type: TensorType, _output: TensorType) -> Ints:
    """LOGISTIC of stored values; the output has scale 1/256 and zero point -128."""
    return _saturating_sigmoid(
        x,
        input_type,
        lambda q4: rounding_divide_by_pot(logistic(q4, SIGMOID_INTEGER_BITS), 23) - 128,
    )


def quantized_tanh(_op: Tanh, x: Ints, input_type: TensorType, _output: TensorType) -> Ints:
    """TANH of stored values; the output has scale 1/128 and zero point 0."""
    return _saturating_sigmoid(
        x, input_type, lambda q4: rounding_divide_by_pot(tanh(q4, SIGMOID_INTEGER_BITS), 24)
    )


def _saturating_sigmoid(x: Ints, input_type: TensorType, function: Callable[[Ints], Ints]) -> Ints:
    """Apply `function` (Q4 to stored values) inside the radius; saturate outside."""
    params = sigmoid_params(input_type)
    centred = x - params.input_zero_point
    radius = params.input_radius
    low, high = DType.INT8.min, DType.INT8.max
    inside = np.clip(centred, -radius, radius)
    q4 = multiply_by_quantized_multiplier(inside, *params.multiplier)
    result = np.clip(function(q4), low, high)
    result = np.where(centred >= radius, high, result)
    return np.where(centred <= -radius, low, result)


def quantized_requantize(
    _op: Quantize, x: Ints, input_type: TensorType, output: TensorType
) -> Ints:
    """QUANTIZE of stored values of any integer type."""
    params = requantize_params(input_type, output)
    centred = wrap(x - params.input_zero_point)
    scaled = multiply_by_quantized_multiplier(centred, *params.multiplier)
    return np.clip(scaled + params.output_zero_point, params.minimum, params.maximum)


_FUNCTIONS: Mapping[type[Operator], Callable[..., Ints]] = MappingProxyType(
    {
        Relu: quantized_relu,
        LeakyRelu: quantized_leaky_relu,
        HardSwish: quantized_hard_swish,
        Logistic: quantized_logistic,
        Tanh: quantized_tanh,
        Quantize: quantized_requantize,
    }
)


def has_table(op: Operator, input_type: TensorType, output: TensorType) -> bool:
    """Whether the operator is a look-up of 256 entries for these types."""
    return type(op) in _FUNCTIONS and input_type.dtype is output.dtype is DType.INT8


def lookup_table(op: Operator, input_type: TensorType, output: TensorType) -> npt.NDArray[np.int8]:
    """The 256 results of the operator; entry i belongs to the stored value i - 128.

    Raises:
        KeyError: the operator is not one of those that `has_table` accepts.
    """
    stored = np.arange(DType.INT8.min, DType.INT8.max + 1, dtype=np.int64)
    return _FUNCTIONS[type(op)](op, stored, input_type, output).astype(np.int8)
