"""Define activations, functions of one element, by their attributes and rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import attributes, fixed_point, problem, sigmoid_table
from microtir.operators.common.multiplier import (
    MAX_INT16_SHIFT,
    MAX_SHIFT,
    QuantizedMultiplier,
    activation_range,
    check_shift,
    input_radius,
    quantize_multiplier,
    quantized_ratio,
)
from microtir.operators.common.quantization import FixedOutput, QuantizationRule, fixed


@dataclass(frozen=True, slots=True)
class Relu(Operator):
    """RELU, RELU6 and RELU_N1_TO_1 as operators of their own; `kind` is not NONE.

    LiteRT rounds the ratio of scales to float32, tflite-micro has it as a double.
    """

    kind: attributes.Activation = attributes.Activation.RELU
    float32_ratio: bool = False


@dataclass(frozen=True, slots=True)
class LeakyRelu(Operator):
    """x from 0 on, else alpha times x; with ratios of scales in float32 as LiteRT has it."""

    alpha: float = 0.0  # a float32 value
    float32_ratio: bool = False


@dataclass(frozen=True, slots=True)
class Prelu(Operator):
    """x from 0 on, else x times the element of input 1, which broadcasts, at its place.

    LiteRT computes both factors in float32.
    """

    float32_ratio: bool = False


@dataclass(frozen=True, slots=True)
class Elu(Operator):
    """x from 0 on, else exp(x) - 1."""


@dataclass(frozen=True, slots=True)
class HardSwish(Operator):
    """x times RELU6 of x + 3, divided by 6."""


@dataclass(frozen=True, slots=True)
class Logistic(Operator):
    """1 / (1 + exp(-x))."""


@dataclass(frozen=True, slots=True)
class Tanh(Operator):
    """The hyperbolic tangent."""


@dataclass(frozen=True, slots=True)
class Gelu(Operator):
    """x times the normal distribution function of x, or its approximation by a tanh."""

    approximate: bool = False


@dataclass(frozen=True, slots=True)
class ReluParams:
    """Parameters of the RELU operators, which requantise and clamp.

    RELU6 in one scale has no multiplier, and its zero points are both 0 here.
    """

    input_zero_point: int
    output_zero_point: int
    multiplier: QuantizedMultiplier | None
    activation_min: int
    activation_max: int


def relu_params(op: Relu, input_type: TensorType, output: TensorType) -> ReluParams:
    """Derive the parameters of integer RELU, RELU6 and RELU_N1_TO_1.

    RELU_N1_TO_1 is not in tflite-micro, and RELU6 has one scale there.
    """
    low, high = activation_range(op.kind, output)
    if op.kind is attributes.Activation.RELU6 and input_type.quantization == output.quantization:
        return ReluParams(0, 0, None, low, high)
    scales = input_type.quant.scale, output.quant.scale
    return ReluParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multiplier=quantized_ratio(*scales, in_float32=op.float32_ratio),
        activation_min=low,
        activation_max=high,
    )


@dataclass(frozen=True, slots=True)
class LeakyReluParams:
    """Parameters of LEAKY_RELU: `identity` for values at or above zero, `alpha` below.

    `alpha.multiplier` is negative for a negative alpha; its magnitude is applied first and the
    rounded product negated.
    """

    input_zero_point: int
    output_zero_point: int
    identity: QuantizedMultiplier
    alpha: QuantizedMultiplier
    minimum: int
    maximum: int


def leaky_relu_params(op: LeakyRelu, input_type: TensorType, output: TensorType) -> LeakyReluParams:
    """Derive the parameters of integer LEAKY_RELU."""
    scale, output_scale = input_type.quant.scale, output.quant.scale
    product = scale * op.alpha
    if op.float32_ratio:
        product = float(np.float32(product))
    return LeakyReluParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        identity=quantized_ratio(scale, output_scale, in_float32=op.float32_ratio),
        alpha=quantized_ratio(product, output_scale, in_float32=op.float32_ratio),
        minimum=output.dtype.min,
        maximum=output.dtype.max,
    )


@dataclass(frozen=True, slots=True)
class PreluParams:
    """Parameters of PRELU: `identity` for values from zero on, `product` below for alpha * x."""

    input_zero_point: int
    alpha_zero_point: int
    output_zero_point: int
    identity: QuantizedMultiplier
    product: QuantizedMultiplier


def prelu_params(
    op: Prelu, input_type: TensorType, alpha: TensorType, output: TensorType
) -> PreluParams:
    """Derive the parameters of integer PRELU, computed in double, or in float32 as LiteRT."""
    real = np.float32 if op.float32_ratio else np.float64
    scale, slope, output_scale = (real(t.quant.scale) for t in (input_type, alpha, output))
    return PreluParams(
        input_zero_point=input_type.quant.zero_point,
        alpha_zero_point=alpha.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        identity=quantize_multiplier(float(scale / output_scale)),
        product=quantize_multiplier(float(scale * slope / output_scale)),
    )


@dataclass(frozen=True, slots=True)
class HardSwishParams:
    """Parameters of HARD_SWISH: 16-bit multipliers with their exponents (as `shift`)."""

    input_zero_point: int
    output_zero_point: int
    output: QuantizedMultiplier  # shift <= 0
    reluish: QuantizedMultiplier
    minimum: int
    maximum: int


def hard_swish_params(input_type: TensorType, output: TensorType) -> HardSwishParams:
    """Derive the parameters of int8 HARD_SWISH, computed in double.

    Inputs are widened by 7 bits; `reluish` maps [-3, 3] to the range of an int16.
    """
    high_resolution = input_type.quant.scale / 128.0
    reluish_scale = 3.0 / 32768.0
    return HardSwishParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        output=_narrow_to_int16(high_resolution / output.quant.scale),
        reluish=_narrow_to_int16(high_resolution / reluish_scale),
        minimum=output.dtype.min,
        maximum=output.dtype.max,
    )


def _narrow_to_int16(real: float) -> QuantizedMultiplier:
    multiplier, shift = quantize_multiplier(real)
    return QuantizedMultiplier(min((multiplier + (1 << 15)) >> 16, fixed_point.INT16_MAX), shift)


@dataclass(frozen=True, slots=True)
class SigmoidParams:
    """Parameters of LOGISTIC and TANH: centred inputs become Q4 fixed point.

    Centred inputs at or beyond +-`input_radius` saturate.
    """

    input_zero_point: int
    input_radius: int
    multiplier: QuantizedMultiplier


SIGMOID_INTEGER_BITS = 4


def sigmoid_params(input_type: TensorType) -> SigmoidParams:
    """Derive the parameters of int8 LOGISTIC and TANH, whose output quantisation is fixed."""
    scale = input_type.quant.scale
    multiplier = quantize_multiplier(scale * (1 << (31 - SIGMOID_INTEGER_BITS)))
    return SigmoidParams(
        input_zero_point=input_type.quant.zero_point,
        input_radius=input_radius(SIGMOID_INTEGER_BITS, multiplier.shift),
        multiplier=multiplier,
    )


LOGISTIC_SHIFTS, TANH_SHIFTS = (0,), (0, 1)
"""Shifts for which int16 scales of 2^(shift - 12) have an exact scaling in LOGISTIC and TANH."""


def table_scaling(op: Logistic | Tanh, input_type: TensorType) -> sigmoid_table.SigmoidScaling:
    """Derive what takes an int16 input of LOGISTIC or TANH to the table of sigmoids."""
    shifts = LOGISTIC_SHIFTS if isinstance(op, Logistic) else TANH_SHIFTS
    return sigmoid_table.sigmoid_scaling(input_type.quant.scale, shifts)


def table_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find scales that have no fixed-point form."""
    op, x = node.attributes(Logistic, Tanh), node.inputs[0].type
    if x.dtype is DType.INT16:
        yield from sigmoid_table.check_scaling(table_scaling(op, x))


def _shift_limit(node: Node) -> int:
    """Return the largest left shift; of int16 values it may not leave an int32."""
    return MAX_SHIFT if node.inputs[0].dtype is DType.INT8 else MAX_INT16_SHIFT


def relu_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find scales that have no fixed-point form."""
    op = node.attributes(Relu)
    multiplier = relu_params(op, node.inputs[0].type, node.output.type).multiplier
    if multiplier is not None:
        yield from check_shift(multiplier, _shift_limit(node))


def leaky_relu_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find scales that have no fixed-point form."""
    params = leaky_relu_params(node.attributes(LeakyRelu), node.inputs[0].type, node.output.type)
    yield from check_shift(params.identity, _shift_limit(node))
    yield from check_shift(params.alpha, _shift_limit(node))


def prelu_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find scales that have no fixed-point form."""
    x, alpha = (tensor.type for tensor in node.inputs)
    params = prelu_params(node.attributes(Prelu), x, alpha, node.output.type)
    centred_bits = x.dtype.bits + 1
    yield from check_shift(params.identity, DType.INT32.bits - centred_bits)
    yield from check_shift(params.product, DType.INT32.bits - centred_bits - alpha.dtype.bits)


def hard_swish_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find scales that have no fixed-point form."""
    params = hard_swish_params(node.inputs[0].type, node.output.type)
    yield from check_shift(params.output, 0)
    yield from check_shift(params.reluish)


LOGISTIC_OF_INT8 = Quantization((1 / 256,), (-128,))
TANH_OF_INT8 = Quantization((1 / 128,), (0,))
"""Quantisation of the results of LOGISTIC and TANH for int8."""


def fixed_output(quantization: Quantization) -> QuantizationRule:
    """Fix the quantisation of an int8 output as given, and that of an int16 one."""
    scale = Fraction(quantization.scale)
    return fixed(
        FixedOutput(DType.INT8, DType.INT8, scale, quantization.zero_point),
        FixedOutput(DType.INT16, DType.INT16, Fraction(1, 1 << 15), 0),
    )
