"""Define CUMSUM by its attributes and rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node, SumRange, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import fixed_point, images, multiplier, problem, quantization, sums
from microtir.operators.common.shapes import Shape, require
from microtir.operators.common.types import QUANTISED, equal_types
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class Cumsum(Operator):
    """Sums of the elements along `axis` (non-negative) up to each of them.

    An exclusive sum leaves the element itself out; a reverse one begins at the end.
    """

    axis: int = 0
    exclusive: bool = False
    reverse: bool = False


LEFT_SHIFT = 20


@dataclass(frozen=True, slots=True)
class CumsumParams:
    """y = clamp(requantise(start + sum of rescaled x) + output_zero_point).

    An x is centred, widened by `LEFT_SHIFT` bits and halved. tflite-micro begins with what it so
    makes of the zero point's negative, not with 0, and every result is too low by a zero point.
    """

    input_zero_point: int
    output_zero_point: int
    start: int
    input: multiplier.QuantizedMultiplier
    output: multiplier.QuantizedMultiplier
    minimum: int
    maximum: int


def cumsum_params(input_type: TensorType, output: TensorType) -> CumsumParams:
    """Derive the parameters of a quantised CUMSUM, computed in double."""
    scale, zero_point = input_type.quant.scale, input_type.quant.zero_point
    twice = 2.0 * scale
    half = multiplier.quantize_multiplier(scale / twice)
    return CumsumParams(
        input_zero_point=zero_point,
        output_zero_point=output.quant.zero_point,
        start=int(fixed_point.multiply_by_quantized_multiplier(-zero_point << LEFT_SHIFT, *half)),
        input=half,
        output=multiplier.quantize_multiplier(twice / ((1 << LEFT_SHIFT) * output.quant.scale)),
        minimum=output.dtype.min,
        maximum=output.dtype.max,
    )


def _axis(node: Node) -> int:
    return node.attributes(Cumsum).axis


def _shape(node: Node) -> tuple[Shape, ...]:
    axis, shape = node.attributes(Cumsum).axis, node.inputs[0].shape
    require(0 <= axis < len(shape), f"axis {axis} for the shape {shape}", "an axis of the input")
    return (shape,)


def _multipliers(node: Node) -> Iterator[problem.Problem]:
    if node.output.dtype in QUANTISED:
        yield from multiplier.check_shift(
            cumsum_params(node.inputs[0].type, node.output.type).output, 0
        )


def _sums(node: Node, inputs: Sequence[sums.Interval]) -> SumRange:
    """Bound the last sum, of elements as they are or as they are rescaled."""
    count = node.inputs[0].shape[node.attributes(Cumsum).axis]
    ends, start = [int(inputs[0][0].min()), int(inputs[0][1].max())], 0
    if node.output.dtype in QUANTISED:
        params = cumsum_params(node.inputs[0].type, node.output.type)
        start = params.start
        ends = [(end - params.input_zero_point) << LEFT_SHIFT for end in ends]
    low, high = count * min(ends[0], 0), count * max(ends[1], 0)
    return SumRange(min(start, 0) + low, max(start, 0) + high)


DEFINITIONS = (
    Definition(
        Cumsum,
        types=equal_types(DType.FLOAT32, DType.INT8, DType.INT32, DType.INT64),
        quantization=quantization.OWN_IF_NARROW,
        shapes=_shape,
        one_image=images.unless_along_images(_axis),
        multipliers=_multipliers,
        sums=_sums,
        limits="constant axis",
    ),
)
