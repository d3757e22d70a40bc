"""Define ADD, SUB, MUL, MINIMUM and MAXIMUM, which broadcast as numpy: attributes and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node, SumRange, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import fixed_point, linear, problem, sums, types
from microtir.operators.common.attributes import Activation, RescaledOperator, Rescaling
from microtir.operators.common.multiplier import (
    QuantizedMultiplier,
    activation_range,
    check_shift,
    quantize_multiplier,
)
from microtir.operators.common.shapes import Shape, require, same_shape


@dataclass(frozen=True, slots=True)
class BinaryArithmetic(RescaledOperator):
    """An operator on two numbers.

    Rescaled by real numbers it is what DequantizeLinear of both, the operator and QuantizeLinear
    are.
    """

    activation: Activation = Activation.NONE
    rescaling: Rescaling = field(default=Rescaling.FIXED_POINT, kw_only=True)


@dataclass(frozen=True, slots=True)
class Add(BinaryArithmetic):
    """The sum of both inputs."""


@dataclass(frozen=True, slots=True)
class Sub(BinaryArithmetic):
    """Input 0 less input 1."""


@dataclass(frozen=True, slots=True)
class Mul(BinaryArithmetic):
    """Multiplies; LiteRT computes the factor of its products in float32."""

    float32_ratio: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Minimum(Operator):
    """Compares stored values, whatever their scales are."""


@dataclass(frozen=True, slots=True)
class Maximum(Operator):
    """Compares stored values, whatever their scales are."""


@dataclass(frozen=True, slots=True)
class SquaredDifference(Operator):
    """The square of input 0 less input 1."""


@dataclass(frozen=True, slots=True)
class AddN(Operator):
    """Adds two inputs or more, of one shape and one quantisation."""


@dataclass(frozen=True, slots=True)
class Pow(Operator):
    """Input 0 to the power of input 1."""


@dataclass(frozen=True, slots=True)
class Atan2(Operator):
    """Gives the angle of the point (input 1, input 0)."""


ADD_LEFT_SHIFTS: Mapping[DType, int] = MappingProxyType({DType.INT8: 20, DType.INT16: 15})
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

    def operand(self, position: int) -> tuple[int, QuantizedMultiplier]:
        """Return the zero point and the multiplier of an input."""
        if position == 0:
            return self.input1_zero_point, self.input1
        return self.input2_zero_point, self.input2


def add_params(
    op: Add | Sub, input1: TensorType, input2: TensorType, output: TensorType
) -> AddParams:
    """Derive the parameters of int8 and int16 ADD and SUB, computed in double."""
    left_shift = ADD_LEFT_SHIFTS[output.dtype]
    twice_max = 2.0 * max(input1.quant.scale, input2.quant.scale)
    factor = twice_max / ((1 << left_shift) * output.quant.scale)
    ends = activation_range(op.activation, output)
    return _rescaling_of(input1, input2, output, left_shift, factor, ends)


def _rescaling_of(
    input1: TensorType,
    input2: TensorType,
    output: TensorType,
    left_shift: int,
    factor: float,
    ends: tuple[int, int],
) -> AddParams:
    twice_max = 2.0 * max(input1.quant.scale, input2.quant.scale)
    return AddParams(
        left_shift=left_shift,
        input1_zero_point=input1.quant.zero_point,
        input2_zero_point=input2.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        input1=quantize_multiplier(input1.quant.scale / twice_max),
        input2=quantize_multiplier(input2.quant.scale / twice_max),
        output=quantize_multiplier(factor),
        activation_min=ends[0],
        activation_max=ends[1],
    )


DIFFERENCE_LEFT_SHIFTS: Mapping[DType, int] = MappingProxyType({DType.INT8: 7, DType.INT16: 0})
"""Both operands of SQUARED_DIFFERENCE are widened by this many bits before they are rescaled."""


def difference_params(input1: TensorType, input2: TensorType, output: TensorType) -> AddParams:
    """Derive the parameters of int8 and int16 SQUARED_DIFFERENCE, computed in double.

    They are used as those of SUB, but that `output` multiplies the square of the difference.
    """
    left_shift = DIFFERENCE_LEFT_SHIFTS[output.dtype]
    twice_max = 2.0 * max(input1.quant.scale, input2.quant.scale)
    factor = twice_max * twice_max / ((1 << 2 * left_shift) * output.quant.scale)
    ends = output.dtype.min, output.dtype.max
    return _rescaling_of(input1, input2, output, left_shift, factor, ends)


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
    """Derive the parameters of int8 and int16 MUL, computed in double, or in float32 as LiteRT."""
    low, high = activation_range(op.activation, output)
    real = np.float32 if op.float32_ratio else np.float64
    first, second, output_scale = (real(t.quant.scale) for t in (input1, input2, output))
    factor = float(first * second / output_scale)
    return MulParams(
        input1_zero_point=input1.quant.zero_point,
        input2_zero_point=input2.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multiplier=quantize_multiplier(factor),
        activation_min=low,
        activation_max=high,
    )


def whole_range(op: BinaryArithmetic, dtype: DType) -> tuple[int, int]:
    """Return the inclusive clamp of an int32 or int64 result; ADD of int32 has no activation."""
    minimum, maximum = dtype.min, dtype.max
    if isinstance(op, Add) and dtype is DType.INT32:
        return minimum, maximum
    low, high = op.activation.real_range
    return int(max(minimum, low)), int(min(maximum, high))


def _check_sum(node: Node, factor: QuantizedMultiplier, exponent: int) -> Iterator[problem.Problem]:
    """Find a factor of 1 or more, at which tflite-micro and LiteRT end the process."""
    if factor.shift > 0:
        largest = max(tensor.type.quant.scale for tensor in node.inputs)
        yield problem.Problem(
            f"it has the scale {node.output.type.quant.scale:.9g}, for which tflite-micro and"
            " LiteRT end the process",
            f"more than 2^{exponent} of {largest:.9g}, the largest scale of its inputs",
            node.output,
        )


def add_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find an output scale for which references end the process."""
    op = node.attributes(Add, Sub)
    if node.output.dtype not in types.QUANTISED or op.rescaling.in_float:
        return
    first, second = node.inputs[0].type, node.inputs[1].type
    params = add_params(op, first, second, node.output.type)
    yield from _check_sum(node, params.output, 1 - params.left_shift)


def mul_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find a factor of products that has no fixed-point form."""
    op = node.attributes(Mul)
    if node.output.dtype not in types.QUANTISED or op.rescaling.in_float:
        return
    first, second = node.inputs[0].type, node.inputs[1].type
    yield from check_shift(mul_params(op, first, second, node.output.type).multiplier)


def difference_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find a factor of squares that has no fixed-point form."""
    if node.output.dtype in types.QUANTISED:
        first, second = node.inputs[0].type, node.inputs[1].type
        yield from check_shift(difference_params(first, second, node.output.type).output)


def exact_factor(first: TensorType, second: TensorType, output: TensorType) -> float:
    """Return the double next to the factor of products in PT2E."""
    return linear.exact_factors(first, second, output)[0]


def add_n_params(node: Node) -> AddParams:
    """Derive the parameters of int8 ADD_N: those of ADD, of inputs that have one scale."""
    first = node.inputs[0].type
    return add_params(Add(), first, first, node.output.type)


MOST_ADDED = 14
"""Most rescaled int8 operands whose sum with a zero point stays below 2^31."""


def add_n_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find an output scale for which references end the process."""
    if node.output.dtype in types.QUANTISED:
        params = add_n_params(node)
        yield from _check_sum(node, params.output, 1 - params.left_shift)


def add_n_shape(node: Node) -> tuple[Shape, ...]:
    """Return the shape that all inputs have."""
    shapes = {tensor.shape for tensor in node.inputs}
    require(len(shapes) == 1, f"shapes {', '.join(map(str, sorted(shapes)))}", "equal ones")
    return same_shape(node)


def add_sums(node: Node, inputs: Sequence[sums.Interval]) -> SumRange | None:
    """Bound the widened operands, rescaled and not, and their sum or difference."""
    op = node.attributes(Add, Sub)
    if node.output.dtype not in types.QUANTISED or op.rescaling.in_float:
        return None
    params = add_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    zero_points = params.input1_zero_point, params.input2_zero_point
    factors = params.input1, params.input2
    ranges: list[SumRange] = []
    for (low, high), zero_point, factor in zip(inputs, zero_points, factors, strict=True):
        ends = np.stack([low.min(), high.max()]) - zero_point << params.left_shift
        ranges.append(SumRange(int(ends[0]), int(ends[1])))
        ends = fixed_point.multiply_by_quantized_multiplier(ends, *factor)
        ranges.append(SumRange(int(ends[0]), int(ends[1])))
    first, second = ranges[1], ranges[3]
    if isinstance(op, Sub):
        second = SumRange(-second.high, -second.low)
    total = SumRange(first.low + second.low, first.high + second.high)
    return sums.joined(*ranges, total, SumRange(0, 0))


def mul_sums(node: Node, inputs: Sequence[sums.Interval]) -> SumRange | None:
    """Bound one product of two centred operands."""
    if node.output.dtype not in types.QUANTISED or node.attributes(Mul).rescaling.in_float:
        return None
    ends = [
        (int(low.min()) - t.type.quant.zero_point, int(high.max()) - t.type.quant.zero_point)
        for t, (low, high) in zip(node.inputs, inputs, strict=True)
    ]
    products = [a * b for a in ends[0] for b in ends[1]]
    return SumRange(min(*products, 0), max(*products, 0))
