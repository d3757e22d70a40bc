"""Parameters of operators that work element by element."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.fixed_point import INT16_MAX
from microtir.graph.ir import TensorType
from microtir.graph.ops import Activation, Add, LeakyRelu, Mul, Relu, Sub
from microtir.graph.quantization.multiplier import (
    QuantizedMultiplier,
    activation_range,
    quantize_multiplier,
    quantize_value,
)

ADD_LEFT_SHIFT = 20
"""Both operands of ADD and SUB are widened by this many bits before they are rescaled."""


@dataclass(frozen=True, slots=True)
class AddParams:
    """Parameters of ADD and SUB.

    Each operand is (x - zero_point) * 2^left_shift times its multiplier; the sum or difference
    times `output` plus the output's zero point is clamped. All shifts are <= 0.
    """

    left_shift: int
    input1_zero_point: int
    input2_zero_point: int
    output_zero_point: int
    input1: QuantizedMultiplier
    input2: QuantizedMultiplier
    output: QuantizedMultiplier
    activation_min: int
    activation_max: int


def add_params(
    op: Add | Sub, input1: TensorType, input2: TensorType, output: TensorType
) -> AddParams:
    """Parameters of int8 ADD and SUB, computed in double."""
    scale1, scale2 = input1.quant.scale, input2.quant.scale
    twice_max = 2.0 * max(scale1, scale2)
    widened = (1 << ADD_LEFT_SHIFT) * output.quant.scale
    low, high = activation_range(op.activation, output)
    return AddParams(
        left_shift=ADD_LEFT_SHIFT,
        input1_zero_point=input1.quant.zero_point,
        input2_zero_point=input2.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        input1=quantize_multiplier(scale1 / twice_max),
        input2=quantize_multiplier(scale2 / twice_max),
        output=quantize_multiplier(twice_max / widened),
        activation_min=low,
        activation_max=high,
    )


@dataclass(frozen=True, slots=True)
class MulParams:
    """Parameters of MUL: the product of both centred operands is requantised and clamped."""

    input1_zero_point: int
    input2_zero_point: int
    output_zero_point: int
    multiplier: QuantizedMultiplier
    activation_min: int
    activation_max: int


def mul_params(op: Mul, input1: TensorType, input2: TensorType, output: TensorType) -> MulParams:
    """Parameters of int8 MUL, computed in double."""
    low, high = activation_range(op.activation, output)
    factor = input1.quant.scale * input2.quant.scale / output.quant.scale
    return MulParams(
        input1_zero_point=input1.quant.zero_point,
        input2_zero_point=input2.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multiplier=quantize_multiplier(factor),
        activation_min=low,
        activation_max=high,
    )


@dataclass(frozen=True, slots=True)
class ReluParams:
    """Parameters of the RELU operators.

    RELU requantises and clamps.  RELU6 has no multiplier: it clamps stored values and copies
    them, so its zero points are both 0 here.
    """

    input_zero_point: int
    output_zero_point: int
    multiplier: QuantizedMultiplier | None
    activation_min: int
    activation_max: int


def relu_params(op: Relu, input_type: TensorType, output: TensorType) -> ReluParams:
    """Parameters of int8 RELU, RELU6 and RELU_N1_TO_1, computed in double.

    RELU_N1_TO_1 is not in tflite-micro; it is defined as RELU with another clamp.
    """
    if op.kind is Activation.RELU6:
        quant = input_type.quant
        six = quantize_value(6.0, quant.scale, quant.zero_point)
        six = max(input_type.dtype.min, min(input_type.dtype.max, six))
        return ReluParams(0, 0, None, quant.zero_point, six)
    factor = input_type.quant.scale / output.quant.scale
    low, high = activation_range(op.kind, output)
    return ReluParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multiplier=quantize_multiplier(factor),
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
    """Parameters of int8 LEAKY_RELU, computed in double."""
    scale = input_type.quant.scale
    return LeakyReluParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        identity=quantize_multiplier(scale / output.quant.scale),
        alpha=quantize_multiplier(scale * op.alpha / output.quant.scale),
        minimum=output.dtype.min,
        maximum=output.dtype.max,
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
    """Parameters of int8 HARD_SWISH, computed in double.

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
    return QuantizedMultiplier(min((multiplier + (1 << 15)) >> 16, INT16_MAX), shift)


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
    """Parameters of int8 LOGISTIC and TANH; the output's quantisation is fixed by definition."""
    scale = input_type.quant.scale
    multiplier = quantize_multiplier(scale * (1 << (31 - SIGMOID_INTEGER_BITS)))
    return SigmoidParams(
        input_zero_point=input_type.quant.zero_point,
        input_radius=input_radius(SIGMOID_INTEGER_BITS, multiplier.shift),
        multiplier=multiplier,
    )


def input_radius(integer_bits: int, left_shift: int) -> int:
    """Largest magnitude that stays below 2^integer_bits - 1 after scaling, rounded down."""
    largest = ((1 << integer_bits) - 1) << (31 - integer_bits)
    return largest >> left_shift if left_shift >= 0 else largest << -left_shift


@dataclass(frozen=True, slots=True)
class QuantizeParams:
    """y = clamp(round(x / scale) + zero_point) for a float x; the quotient is a float32."""

    scale: float
    zero_point: int
    minimum: int
    maximum: int


def quantize_params(output: TensorType) -> QuantizeParams:
    """Parameters of QUANTIZE from float32."""
    quant = output.quant
    return QuantizeParams(quant.scale, quant.zero_point, output.dtype.min, output.dtype.max)


@dataclass(frozen=True, slots=True)
class RequantizeParams:
    """y = clamp((x - input_zero_point) * multiplier + output_zero_point)."""

    input_zero_point: int
    output_zero_point: int
    multiplier: QuantizedMultiplier
    minimum: int
    maximum: int


def requantize_params(input_type: TensorType, output: TensorType) -> RequantizeParams:
    """Parameters of QUANTIZE between integer types, computed in double."""
    return RequantizeParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multiplier=quantize_multiplier(input_type.quant.scale / output.quant.scale),
        minimum=output.dtype.min,
        maximum=output.dtype.max,
    )
