"""Define L2_NORMALIZATION over the last axis by its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, SumRange
from microtir.graph.operator import Operator
from microtir.operators.common import images, problem, shapes, sums, types
from microtir.operators.common.quantization import OWN, FixedOutput, QuantizationRule, fixed
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class L2Normalize(Operator):
    """x divided by the root of the sum of squares of its row, the last axis.

    An int8 result has scale 1/128 and zero point 0, whatever its tensor says, as tflite-micro has
    it; a uint8 one must have the zero point 128.
    """


EPSILON = 1e-6
"""Least root of a sum of squares of floats, which is the divisor."""

OUTPUT_BITS = 7
"""Int8 results are multiples of 2^-7."""

UINT8_ZERO = 128
"""The zero point of uint8 results."""

NORMALIZED_OF_INT8 = Quantization((2.0**-OUTPUT_BITS,), (0,))
"""Quantisation of an int8 result, whatever its tensor says."""

_LARGEST_SQUARE = (DType.INT8.max - DType.INT8.min) ** 2
MAX_ROW = DType.INT32.max // _LARGEST_SQUARE
"""Most elements of an int8 row whose squares add up within an int32."""


def _row_length(node: Node) -> Iterator[problem.Problem]:
    x = node.inputs[0]
    if x.shape[-1] > MAX_ROW:
        yield problem.Problem(f"it has rows of {x.shape[-1]} elements", f"at most {MAX_ROW}", x)


def _sums(node: Node, inputs: Sequence[sums.Interval]) -> SumRange:
    low, high = inputs[0]
    zero_point = node.inputs[0].type.quant.zero_point
    farthest = max(abs(int(low.min()) - zero_point), abs(int(high.max()) - zero_point))
    return SumRange(0, node.inputs[0].shape[-1] * farthest**2)


_OF_UINT8 = fixed(FixedOutput(DType.UINT8, DType.UINT8, Fraction(1, 1 << OUTPUT_BITS), UINT8_ZERO))
"""LiteRT compares the scale of a uint8 result; nobody looks at that of an int8 one."""

DEFINITIONS = (
    Definition(
        L2Normalize,
        types=types.COMPUTED.also(types.TypeSignature((DType.UINT8,), DType.UINT8)),
        quantization=QuantizationRule(
            _OF_UINT8.check,
            OWN.words,
            fixed=MappingProxyType({(DType.INT8, DType.INT8): NORMALIZED_OF_INT8}),
        ),
        shapes=shapes.same_rows,
        one_image=images.unless_along_images(lambda node: len(node.inputs[0].shape) - 1),
        multipliers=_row_length,
        sums=_sums,
        terms=lambda node: node.inputs[0].shape[-1],
        limits="over the last axis",
    ),
)
