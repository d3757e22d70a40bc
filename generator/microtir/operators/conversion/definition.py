"""Define QUANTIZE, DEQUANTIZE and CAST by their rules and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import attributes, linear, problem, quantization, types
from microtir.operators.common.float_rescaling import StoredSums
from microtir.operators.common.multiplier import (
    QuantizedMultiplier,
    check_shift,
    quantize_multiplier,
)
from microtir.operators.definition import Definition, Trait


@dataclass(frozen=True, slots=True)
class Quantize(attributes.RescaledOperator):
    """Float to integer, or integer to integer of another quantisation.

    Of two nearest integers a float becomes the one away from zero, as TFLite's does, or the even
    one, as ONNX's.  Integers that are rescaled in float32 become reals and these integers again;
    rescaled exactly they are multiplied by the factor of both.
    TFLite and ONNX divide by the scale; PT2E multiplies by its reciprocal, a float32.
    """

    ties_to_even: bool = False
    by_reciprocal: bool = field(default=False, kw_only=True)
    rescaling: attributes.Rescaling = field(default=attributes.Rescaling.FIXED_POINT, kw_only=True)


@dataclass(frozen=True, slots=True)
class Dequantize(Operator):
    """Stored integers to real numbers; real ones, once of float16, stay as they are."""


@dataclass(frozen=True, slots=True)
class CastTo(Operator):
    """Conversion of stored values to the output's scalar type; quantisation plays no part."""

    name: ClassVar[str] = "cast"


@dataclass(frozen=True, slots=True)
class Tabulated(Operator):
    """Looks a stored int8 value x up: entry x + 128 of the `table`, 256 bytes that are int8.

    Frontends make it of functions of one element that have no operator of their own.
    """

    table: bytes = np.arange(-128, 128).astype(np.int8).tobytes()


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


def exact_sums(node: Node) -> StoredSums:
    """Derive the parameters of a QUANTIZE between integers that is rescaled exactly."""
    x, y = node.inputs[0].type, node.output.type
    factor = linear.sum_factor(x, y, 1, attributes.Rescaling.EXACT)
    low, high = (end - x.quant.zero_point for end in (x.dtype.min, x.dtype.max))
    limits = y.quant.zero_point, y.dtype.min, y.dtype.max
    return StoredSums(factor, low, high, *limits, attributes.Rescaling.EXACT)


def is_per_channel(node: Node) -> bool:
    """Return whether the input of a DEQUANTIZE has several scales."""
    quant = node.inputs[0].type.quantization
    return quant is not None and quant.is_per_channel


def _requantize_multipliers(node: Node) -> Iterator[problem.Problem]:
    if node.attributes(Quantize).rescaling.in_float:
        if any(tensor.dtype not in types.QUANTISED for tensor in (node.inputs[0], node.output)):
            yield problem.Problem("it is rescaled by a real number", "int8 or int16", node.output)
        return
    yield from check_shift(requantize_params(node.inputs[0].type, node.output.type).multiplier)


_F32, _I8, _U8 = DType.FLOAT32, DType.INT8, DType.UINT8
_I16, _I32, _U16 = DType.INT16, DType.INT32, DType.UINT16

_QUANTIZED = types.converting(
    *((source, _I8) for source in (_F32, _I8, _I16, _I32, _U8)),
    *((source, _I16) for source in (_F32, _I8, _I16, _I32, _U8, _U16)),
    *((source, _I32) for source in (_I8, _I16)),
    *((source, _U8) for source in (_F32, _I8, _U8)),
    *((source, _U16) for source in (_F32, _I16)),
)

DEFINITIONS = (
    Definition(
        Quantize,
        types=_QUANTIZED,
        quantization=quantization.OWN,
        multipliers=_requantize_multipliers,
        traits=frozenset({Trait.ELEMENTWISE, Trait.TABULATED}),
    ),
    Definition(
        Dequantize,
        types=types.converting(*((source, _F32) for source in (_I8, _U8, _I16, _U16, _F32))),
        quantization=quantization.DEQUANTIZED,
        traits=frozenset({Trait.ELEMENTWISE}),
    ),
    Definition(
        CastTo,
        types=types.ANY_TYPES,
        quantization=quantization.UNUSED,
        traits=frozenset({Trait.ELEMENTWISE}),
    ),
    Definition(
        Tabulated,
        types=types.converting((_I8, _I8)),
        quantization=quantization.UNUSED,
        traits=frozenset({Trait.ELEMENTWISE, Trait.TABULATED}),
    ),
)
