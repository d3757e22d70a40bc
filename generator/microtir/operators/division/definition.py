"""Define DIV, FLOOR_DIV and FLOOR_MOD, which broadcast as numpy: attributes and rules.

What tflite-micro and LiteRT do with a divisor of 0, or with the lowest integer by -1, is an error
while the model runs, or undefined.  Generated C has no errors to report, so a result is defined:
DIV of integers saturates, with 0 for 0 / 0, and FLOOR_DIV does so for a divisor of 0; FLOOR_MOD is
0; floats are what IEEE has.  A constant divisor that holds a 0 is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import BinaryArithmetic
from microtir.operators.common import problem, shapes
from microtir.operators.common.multiplier import (
    QuantizedMultiplier,
    activation_range,
    check_shift,
    quantize_multiplier,
)
from microtir.operators.common.quantization import OWN_IF_NARROW, UNUSED, QuantizationRule
from microtir.operators.common.types import QUANTISED, TypeRule, equal_types
from microtir.operators.definition import ACTIVATIONS, Definition, Trait


@dataclass(frozen=True, slots=True)
class Div(BinaryArithmetic):
    """Divides real numbers; integers without a scale are rounded to zero.

    LiteRT computes the factor of quotients in float32.
    """

    float32_ratio: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class FloorDiv(Operator):
    """Divides and rounds to minus infinity."""


@dataclass(frozen=True, slots=True)
class FloorMod(Operator):
    """Gives the remainder of FloorDiv, which has the sign of the divisor."""


@dataclass(frozen=True, slots=True)
class DivParams:
    """Parameters of quantised DIV: the centred operands' quotient is requantised and clamped."""

    input1_zero_point: int
    input2_zero_point: int
    output_zero_point: int
    multiplier: QuantizedMultiplier
    activation_min: int
    activation_max: int


def div_params(op: Div, input1: TensorType, input2: TensorType, output: TensorType) -> DivParams:
    """Derive the parameters of int8 and int16 DIV.

    The factor is computed in double as tflite-micro does, or in float32 as LiteRT, which alone has
    int16.
    """
    low, high = activation_range(op.activation, output)
    scales = input1.quant.scale, input2.quant.scale, output.quant.scale
    in_float32 = op.float32_ratio or output.dtype is DType.INT16
    real = np.float32 if in_float32 else np.float64
    numerator, divisor, result = map(real, scales)
    return DivParams(
        input1_zero_point=input1.quant.zero_point,
        input2_zero_point=input2.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multiplier=quantize_multiplier(float(numerator / (divisor * result))),
        activation_min=low,
        activation_max=high,
    )


def may_shift_far(node: Node) -> bool:
    """Return whether a quotient may be shifted by more than 31 bits.

    There nothing is left of it; tflite-micro and LiteRT leave to the processor what such a shift
    gives.  The headroom of a numerator of one step is 30, the reciprocal of the largest divisor
    has been shifted by as many bits as a centred number has but one.
    """
    if not isinstance(node.op, Div) or node.output.dtype not in QUANTISED:
        return False
    first, second = (tensor.type for tensor in node.inputs)
    multiplier = div_params(node.op, first, second, node.output.type).multiplier
    return 30 + node.output.dtype.bits - 1 - multiplier.shift > 31


def _multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find a factor of 2^30 or more.

    References leave to the processor what a shift to the left gives.  Such a quotient is 2^28 at
    least, which saturates.
    """
    if node.output.dtype in QUANTISED:
        assert isinstance(node.op, Div)
        first, second = (tensor.type for tensor in node.inputs)
        params = div_params(node.op, first, second, node.output.type)
        yield from check_shift(params.multiplier)


def _dividing(
    op: type[Operator], types: TypeRule, quantization: QuantizationRule, limits: str
) -> Definition:
    return Definition(
        op,
        types=types,
        quantization=quantization,
        shapes=shapes.broadcast_shape,
        inputs=(2, 2),
        multipliers=_multipliers if op is Div else None,
        traits=frozenset({Trait.ELEMENTWISE, *((Trait.STORED,) if op is not Div else ())}),
        limits=limits,
    )


_F32, _I8, _I16, _I32 = DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32

_NOT_ZERO = "no 0 in a constant divisor of integers"

DEFINITIONS = (
    _dividing(
        Div,
        equal_types(_F32, _I8, _I16, _I32, DType.INT64, DType.UINT64),
        OWN_IF_NARROW,
        f"{ACTIVATIONS}; {_NOT_ZERO}",
    ),
    _dividing(FloorDiv, equal_types(_F32, _I8, _I16, _I32), UNUSED, "no 0 in a constant divisor"),
    _dividing(FloorMod, equal_types(_F32, _I8, _I16, _I32, DType.INT64), UNUSED, _NOT_ZERO),
)
