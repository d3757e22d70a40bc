"""Define QUANTIZE, DEQUANTIZE and CAST by their rules and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from microtir.dtype import DType
from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.multiplier import (
    QuantizedMultiplier,
    check_shift,
    quantize_multiplier,
)
from microtir.operators.common.problem import Problem
from microtir.operators.common.quantization import DEQUANTIZED, OWN, UNUSED
from microtir.operators.common.types import ANY_TYPES, converting
from microtir.operators.definition import Definition, Trait


@dataclass(frozen=True, slots=True)
class Quantize(Operator):
    """Float to integer, or integer to integer of another quantisation."""

    name: ClassVar[str] = "quantize"


@dataclass(frozen=True, slots=True)
class Dequantize(Operator):
    name: ClassVar[str] = "dequantize"


@dataclass(frozen=True, slots=True)
class CastTo(Operator):
    """Conversion of stored values to the output's scalar type; quantisation plays no part."""

    name: ClassVar[str] = "cast"


@dataclass(frozen=True, slots=True)
class QuantizeParams:
    """y = clamp(round(x / scale) + zero_point) for a float x; the quotient is a float32."""

    scale: float
    zero_point: int
    minimum: int
    maximum: int


def quantize_params(output: TensorType) -> QuantizeParams:
    """Derive the parameters of QUANTIZE from float32."""
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
    """Derive the parameters of QUANTIZE between integer types, computed in double."""
    return RequantizeParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multiplier=quantize_multiplier(input_type.quant.scale / output.quant.scale),
        minimum=output.dtype.min,
        maximum=output.dtype.max,
    )


def _requantize_multipliers(node: Node) -> Iterator[Problem]:
    yield from check_shift(requantize_params(node.inputs[0].type, node.output.type).multiplier)


_F32, _I8, _U8, _I16 = DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16

DEFINITIONS = (
    Definition(
        Quantize,
        types=converting((_F32, _I8), (_I8, _I8), (_I16, _I8), (_U8, _I8), (_I8, _U8)),
        quantization=OWN,
        multipliers=_requantize_multipliers,
        traits=frozenset({Trait.ELEMENTWISE, Trait.TABULATED}),
    ),
    Definition(
        Dequantize,
        types=converting((_I8, _F32), (_U8, _F32), (_I16, _F32)),
        quantization=DEQUANTIZED,
        traits=frozenset({Trait.ELEMENTWISE}),
    ),
    Definition(
        CastTo,
        types=ANY_TYPES,
        quantization=UNUSED,
        traits=frozenset({Trait.ELEMENTWISE}),
    ),
)
