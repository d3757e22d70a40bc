"""Define ADD, SUB, MUL, MINIMUM and MAXIMUM, which broadcast as numpy: attributes and rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from microtir.graph.ir import Node, SumRange, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.attributes import Activation
from microtir.operators.common.fixed_point import multiply_by_quantized_multiplier
from microtir.operators.common.multiplier import (
    QuantizedMultiplier,
    activation_range,
    check_shift,
    quantize_multiplier,
)
from microtir.operators.common.problem import Problem, Rule
from microtir.operators.common.quantization import EQUAL, OWN, QuantizationRule
from microtir.operators.common.shapes import broadcast_shape
from microtir.operators.common.sums import Interval, joined
from microtir.operators.common.types import COMPUTED
from microtir.operators.definition import ACTIVATIONS, Definition, SumsRule, Trait


@dataclass(frozen=True, slots=True)
class BinaryArithmetic(Operator):
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class Add(BinaryArithmetic):
    name: ClassVar[str] = "add"


@dataclass(frozen=True, slots=True)
class Sub(BinaryArithmetic):
    name: ClassVar[str] = "sub"


@dataclass(frozen=True, slots=True)
class Mul(BinaryArithmetic):
    name: ClassVar[str] = "mul"


@dataclass(frozen=True, slots=True)
class Minimum(Operator):
    """Never rescales: input and output quantisations are equal."""

    name: ClassVar[str] = "minimum"


@dataclass(frozen=True, slots=True)
class Maximum(Operator):
    """Never rescales: input and output quantisations are equal."""

    name: ClassVar[str] = "maximum"


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
    """Derive the parameters of int8 ADD and SUB, computed in double."""
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
    """Derive the parameters of int8 MUL, computed in double."""
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


def _add_multipliers(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, Add | Sub)
    first, second = node.inputs[0].type, node.inputs[1].type
    yield from check_shift(add_params(node.op, first, second, node.output.type).output, 0)


def _mul_multipliers(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, Mul)
    first, second = node.inputs[0].type, node.inputs[1].type
    yield from check_shift(mul_params(node.op, first, second, node.output.type).multiplier)


def _add_sums(node: Node, inputs: Sequence[Interval]) -> SumRange:
    """Bound the widened operands, rescaled and not, and their sum or difference."""
    op = node.op
    assert isinstance(op, Add | Sub)
    params = add_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    zero_points = params.input1_zero_point, params.input2_zero_point
    factors = params.input1, params.input2
    ranges: list[SumRange] = []
    for (low, high), zero_point, factor in zip(inputs, zero_points, factors, strict=True):
        ends = np.stack([low.min(), high.max()]) - zero_point << params.left_shift
        ranges.append(SumRange(int(ends[0]), int(ends[1])))
        ends = multiply_by_quantized_multiplier(ends, *factor)
        ranges.append(SumRange(int(ends[0]), int(ends[1])))
    first, second = ranges[1], ranges[3]
    if isinstance(op, Sub):
        second = SumRange(-second.high, -second.low)
    total = SumRange(first.low + second.low, first.high + second.high)
    return joined(*ranges, total, SumRange(0, 0))


def _mul_sums(node: Node, inputs: Sequence[Interval]) -> SumRange:
    """Bound one product of two centred operands."""
    ends = [
        (int(low.min()) - t.type.quant.zero_point, int(high.max()) - t.type.quant.zero_point)
        for t, (low, high) in zip(node.inputs, inputs, strict=True)
    ]
    products = [a * b for a in ends[0] for b in ends[1]]
    return SumRange(min(*products, 0), max(*products, 0))


def _binary(
    op: type[Operator],
    quantization: QuantizationRule,
    multipliers: Rule | None = None,
    sums: SumsRule | None = None,
    limits: str = "",
) -> Definition:
    return Definition(
        op,
        types=COMPUTED,
        quantization=quantization,
        shapes=broadcast_shape,
        inputs=(2, 2),
        multipliers=multipliers,
        sums=sums,
        traits=frozenset({Trait.ELEMENTWISE}),
        limits=limits,
    )


DEFINITIONS = (
    _binary(Add, OWN, _add_multipliers, _add_sums, ACTIVATIONS),
    _binary(Sub, OWN, _add_multipliers, _add_sums, ACTIVATIONS),
    _binary(Mul, OWN, _mul_multipliers, _mul_sums, ACTIVATIONS),
    _binary(Minimum, EQUAL),
    _binary(Maximum, EQUAL),
)
