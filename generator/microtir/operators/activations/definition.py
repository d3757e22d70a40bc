"""Define activations, functions of one element, by their attributes and rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.attributes import Activation
from microtir.operators.common.fixed_point import INT16_MAX
from microtir.operators.common.multiplier import (
    QuantizedMultiplier,
    activation_range,
    check_shift,
    input_radius,
    quantize_multiplier,
    quantize_value,
)
from microtir.operators.common.problem import Problem, Rule
from microtir.operators.common.quantization import OWN, QuantizationRule, fixed
from microtir.operators.common.types import COMPUTED
from microtir.operators.definition import Definition, Trait


@dataclass(frozen=True, slots=True)
class Relu(Operator):
    """RELU, RELU6 and RELU_N1_TO_1 as operators of their own; `kind` is not NONE."""

    name: ClassVar[str] = "relu"
    kind: Activation = Activation.RELU


@dataclass(frozen=True, slots=True)
class LeakyRelu(Operator):
    name: ClassVar[str] = "leaky_relu"
    alpha: float = 0.0  # a float32 value


@dataclass(frozen=True, slots=True)
class HardSwish(Operator):
    name: ClassVar[str] = "hard_swish"


@dataclass(frozen=True, slots=True)
class Logistic(Operator):
    name: ClassVar[str] = "logistic"


@dataclass(frozen=True, slots=True)
class Tanh(Operator):
    name: ClassVar[str] = "tanh"


@dataclass(frozen=True, slots=True)
class Gelu(Operator):
    """x times the normal distribution function of x, or its approximation by a tanh."""

    name: ClassVar[str] = "gelu"
    approximate: bool = False


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
    """Derive the parameters of int8 RELU, RELU6 and RELU_N1_TO_1, computed in double.

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
    """Derive the parameters of int8 LEAKY_RELU, computed in double."""
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
    """Derive the parameters of int8 LOGISTIC and TANH, whose output quantisation is fixed."""
    scale = input_type.quant.scale
    multiplier = quantize_multiplier(scale * (1 << (31 - SIGMOID_INTEGER_BITS)))
    return SigmoidParams(
        input_zero_point=input_type.quant.zero_point,
        input_radius=input_radius(SIGMOID_INTEGER_BITS, multiplier.shift),
        multiplier=multiplier,
    )


def _relu_multipliers(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, Relu)
    multiplier = relu_params(node.op, node.inputs[0].type, node.output.type).multiplier
    if multiplier is not None:
        yield from check_shift(multiplier)


def _leaky_relu_multipliers(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, LeakyRelu)
    params = leaky_relu_params(node.op, node.inputs[0].type, node.output.type)
    yield from check_shift(params.identity)
    yield from check_shift(params.alpha)


def _hard_swish_multipliers(node: Node) -> Iterator[Problem]:
    params = hard_swish_params(node.inputs[0].type, node.output.type)
    yield from check_shift(params.output, 0)
    yield from check_shift(params.reluish)


def _function(
    op: type[Operator], quantization: QuantizationRule = OWN, multipliers: Rule | None = None
) -> Definition:
    return Definition(
        op,
        types=COMPUTED,
        quantization=quantization,
        multipliers=multipliers,
        traits=frozenset({Trait.ELEMENTWISE, Trait.TABULATED}),
    )


DEFINITIONS = (
    _function(Relu, multipliers=_relu_multipliers),
    _function(LeakyRelu, multipliers=_leaky_relu_multipliers),
    _function(HardSwish, multipliers=_hard_swish_multipliers),
    _function(Logistic, fixed(Fraction(1, 256), -128)),
    _function(Tanh, fixed(Fraction(1, 128), 0)),
    _function(Gelu),
)
