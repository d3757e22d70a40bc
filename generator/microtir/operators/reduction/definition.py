"""Define MEAN by its attributes and rules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.ir import Node, SumRange, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.multiplier import (
    QuantizedMultiplier,
    check_shift,
    quantize_multiplier,
)
from microtir.operators.common.problem import Problem
from microtir.operators.common.quantization import OWN
from microtir.operators.common.shapes import Shape, require
from microtir.operators.common.sums import Interval, counted
from microtir.operators.common.types import COMPUTED
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class Mean(Operator):
    """Mean over `axes` (sorted, non-negative)."""

    name: ClassVar[str] = "mean"
    axes: tuple[int, ...] = ()
    keep_dims: bool = False


@dataclass(frozen=True, slots=True)
class MeanParams:
    """y = clamp(requantise(sum of x - count * input_zero_point) + output_zero_point).

    `count` elements are averaged; the division is folded into `multiplier`.
    """

    input_zero_point: int
    output_zero_point: int
    count: int
    multiplier: QuantizedMultiplier
    minimum: int
    maximum: int


def mean_params(op: Mean, input_type: TensorType, output: TensorType) -> MeanParams:
    """Derive the parameters of an int8 mean.

    The count divides the integer multiplier after a left shift by floor(log2(count)), so that
    the multiplier keeps its precision; the quotient is truncated.
    """
    count = math.prod(input_type.shape[axis] for axis in op.axes)
    multiplier, shift = quantize_multiplier(input_type.quant.scale / output.quant.scale)
    headroom = min(count.bit_length() - 1, 32, 31 + shift)
    folded = QuantizedMultiplier((multiplier << headroom) // count, shift - headroom)
    return MeanParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        count=count,
        multiplier=folded,
        minimum=output.dtype.min,
        maximum=output.dtype.max,
    )


def _mean_shape(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, Mean)
    axes, shape = node.op.axes, node.inputs[0].shape
    require(
        list(axes) == sorted(set(axes)) and all(0 <= axis < len(shape) for axis in axes),
        f"axes {axes} for the shape {shape}",
        "axes of the input in ascending order",
    )
    return (
        tuple(
            1 if axis in axes else extent
            for axis, extent in enumerate(shape)
            if node.op.keep_dims or axis not in axes
        ),
    )


def _mean_multipliers(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, Mean)
    yield from check_shift(mean_params(node.op, node.inputs[0].type, node.output.type).multiplier)


def _mean_sums(node: Node, inputs: Sequence[Interval]) -> SumRange:
    count = node.inputs[0].type.elements // max(node.output.type.elements, 1)
    return counted(count, inputs, node.inputs[0].type.quant.zero_point)


def _terms(node: Node) -> int:
    return node.inputs[0].type.elements // max(node.output.type.elements, 1)


DEFINITIONS = (
    Definition(
        Mean,
        types=COMPUTED,
        quantization=OWN,
        shapes=_mean_shape,
        multipliers=_mean_multipliers,
        sums=_mean_sums,
        terms=_terms,
        limits="constant axes",
    ),
)
