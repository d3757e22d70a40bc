"""Define reductions over axes by their attributes and rules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from microtir.graph.ir import Node, SumRange, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import linear, problem, sums, types
from microtir.operators.common.attributes import RescaledOperator, Rescaling
from microtir.operators.common.float_rescaling import StoredSums
from microtir.operators.common.multiplier import (
    QuantizedMultiplier,
    check_shift,
    quantize_multiplier,
    reduced,
)
from microtir.operators.common.shapes import Shape, require


@dataclass(frozen=True, slots=True)
class Reduction(Operator):
    """Base of what makes one element of all elements along `axes` (sorted, non-negative)."""

    axes: tuple[int, ...] = ()
    keep_dims: bool = False


@dataclass(frozen=True, slots=True)
class Mean(Reduction, RescaledOperator):
    rescaling: Rescaling = field(default=Rescaling.FIXED_POINT, kw_only=True)


@dataclass(frozen=True, slots=True)
class Sum(Reduction, RescaledOperator):
    """The sum; of integers that are not quantised modulo their type's range."""

    rescaling: Rescaling = field(default=Rescaling.FIXED_POINT, kw_only=True)


@dataclass(frozen=True, slots=True)
class ReduceMax(Reduction):
    """The largest stored value; of floats no NaN.

    TFLite gives at least the lowest finite float; with `infinite` minus infinity is a value, too.
    """

    infinite: bool = False


@dataclass(frozen=True, slots=True)
class ReduceMin(Reduction):
    """The smallest stored value; see ReduceMax."""

    infinite: bool = False


@dataclass(frozen=True, slots=True)
class ReduceProd(Reduction):
    """The product; of integers that are not quantised modulo their type's range."""


@dataclass(frozen=True, slots=True)
class ReduceAll(Reduction):
    """True where all elements are true."""


@dataclass(frozen=True, slots=True)
class ReduceAny(Reduction):
    """True where an element is true."""


@dataclass(frozen=True, slots=True)
class ArgExtremum(Operator):
    """Base of what finds the first extreme element along `axis` (non-negative).

    A NaN at the beginning is found; any other is passed over.
    """

    axis: int = 0


@dataclass(frozen=True, slots=True)
class ArgMax(ArgExtremum):
    """The place of the largest element."""


@dataclass(frozen=True, slots=True)
class ArgMin(ArgExtremum):
    """The place of the smallest element."""


def reduced_elements(node: Node) -> int:
    """Count the elements that each result of a reduction comes from."""
    return node.inputs[0].type.elements // max(node.output.type.elements, 1)


def is_rescaled(node: Node) -> bool:
    """Return whether a sum, mean or product is one of quantised values."""
    return node.inputs[0].dtype in types.QUANTISED


@dataclass(frozen=True, slots=True)
class SumParams:
    """y = clamp(requantise(sum of x - count * input_zero_point) + output_zero_point).

    `count` elements are added; a mean's division by it is folded into `multiplier`.
    """

    input_zero_point: int
    output_zero_point: int
    count: int
    multiplier: QuantizedMultiplier
    minimum: int
    maximum: int


def sum_params(op: Mean | Sum, input_type: TensorType, output: TensorType) -> SumParams:
    """Derive the parameters of a quantised sum or mean.

    A mean's count divides the integer multiplier after a left shift by floor(log2(count)), so that
    the multiplier keeps its precision; the quotient is truncated.
    """
    count = math.prod(input_type.shape[axis] for axis in op.axes)
    factor = quantize_multiplier(input_type.quant.scale / output.quant.scale)
    if isinstance(op, Mean):
        headroom = min(count.bit_length() - 1, 32, 31 + factor.shift)
        divided = (factor.multiplier << headroom) // count
        factor = QuantizedMultiplier(divided, factor.shift - headroom)
    return SumParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        count=count,
        multiplier=factor,
        minimum=output.dtype.min,
        maximum=output.dtype.max,
    )


def float_sum(node: Node) -> StoredSums:
    """Derive the parameters of a quantised sum or mean that is rescaled by a real number."""
    op, x, y = node.attributes(Mean, Sum), node.inputs[0].type, node.output.type
    count = reduced_elements(node)
    factor = linear.sum_factor(x, y, count if isinstance(op, Mean) else 1, op.rescaling)
    low, high = (count * (end - x.quant.zero_point) for end in (x.dtype.min, x.dtype.max))
    ends = y.dtype.min, y.dtype.max
    return StoredSums(factor, low, high, y.quant.zero_point, *ends, op.rescaling)


def product_factor(node: Node) -> QuantizedMultiplier:
    """Return what a quantised product is multiplied by behind each of its factors.

    So LiteRT divides the scale of the result among the factors, and 64 bits hold each product.
    """
    root = node.output.type.quant.scale ** (1.0 / reduced_elements(node))
    return reduced(quantize_multiplier(node.inputs[0].type.quant.scale / root))


_MOST_SHIFTS_OF_PRODUCTS = 14
"""More would be a shift to the left."""


def product_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find a factor of a product that has no fixed-point form."""
    if is_rescaled(node):
        yield from check_shift(product_factor(node), _MOST_SHIFTS_OF_PRODUCTS)


def reduced_shape(node: Node) -> tuple[Shape, ...]:
    """Return the shape of a reduction, less its axes or with one element along each."""
    op = node.attributes(Reduction)
    axes, shape = op.axes, node.inputs[0].shape
    require(
        list(axes) == sorted(set(axes)) and all(0 <= axis < len(shape) for axis in axes),
        f"axes {axes} for the shape {shape}",
        "axes of the input in ascending order",
    )
    return (
        tuple(
            1 if axis in axes else extent
            for axis, extent in enumerate(shape)
            if op.keep_dims or axis not in axes
        ),
    )


def first_axis(node: Node) -> int:
    """Return the first axis of several elements that a node works along; the rank without one."""
    op, shape = node.attributes(Reduction, ArgExtremum), node.inputs[0].shape
    if isinstance(op, ArgExtremum):
        return op.axis
    return min((axis for axis in op.axes if shape[axis] > 1), default=len(shape))


def position_shape(node: Node) -> tuple[Shape, ...]:
    """Return the shape of the places along an axis."""
    axis, shape = node.attributes(ArgExtremum).axis, node.inputs[0].shape
    require(0 <= axis < len(shape), f"axis {axis} for the shape {shape}", "an axis of the input")
    return ((*shape[:axis], *shape[axis + 1 :]),)


def sum_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find a factor of a sum or mean that has no fixed-point form."""
    op = node.attributes(Mean, Sum)
    if is_rescaled(node) and not op.rescaling.in_float:
        params = sum_params(op, node.inputs[0].type, node.output.type)
        yield from check_shift(params.multiplier)


def sum_bounds(node: Node, inputs: Sequence[sums.Interval]) -> SumRange:
    """Bound the sums of a node, given what its elements are."""
    zero_point = node.inputs[0].type.quant.zero_point if is_rescaled(node) else 0
    return sums.counted(reduced_elements(node), inputs, zero_point)
