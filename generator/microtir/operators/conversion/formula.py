"""Compute QUANTIZE, DEQUANTIZE and CAST element by element."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from microtir import te
from microtir.dtype import DType
from microtir.graph.operator import Operator
from microtir.operators.common.arithmetic import centred, requantise, stored
from microtir.operators.common.formula import Formula, FormulaContext
from microtir.operators.conversion.definition import (
    CastTo,
    Dequantize,
    Quantize,
    quantize_params,
    requantize_params,
)


def quantize(layer: FormulaContext) -> None:
    """Emit QUANTIZE from float32, or between integer types that are no look-up."""
    node, x = layer.node, layer.image(0)
    source, target = node.inputs[0].type, node.output.type
    if source.dtype is DType.FLOAT32:
        real = quantize_params(target)

        def from_float(*at: te.Expr) -> te.Expr:
            # Clamped before the conversion: C leaves a float outside the integer undefined.
            low, high = real.minimum - real.zero_point, real.maximum - real.zero_point
            rounded = te.clamp(te.round(x.at(*at) / real.scale), float(low), float(high))
            return te.cast(target.dtype, te.cast(DType.INT32, rounded) + real.zero_point)

        layer.rows(from_float)
        return
    params = requantize_params(source, target)

    def from_integer(*at: te.Expr) -> te.Expr:
        scaled = requantise(centred(x.at(*at), params.input_zero_point), params.multiplier)
        return stored(
            scaled, params.output_zero_point, params.minimum, params.maximum, target.dtype
        )

    layer.rows(from_integer)


def dequantize(layer: FormulaContext) -> None:
    """Emit DEQUANTIZE to float32."""
    quant, x = layer.node.inputs[0].type.quant, layer.image(0)
    layer.rows(
        lambda *at: te.cast(DType.FLOAT32, centred(x.at(*at), quant.zero_point)) * quant.scale
    )


def cast(layer: FormulaContext) -> None:
    """Emit CAST: integers keep their low bits, floats are truncated."""
    x, dtype = layer.image(0), layer.node.output.dtype
    layer.rows(lambda *at: _convert(x.at(*at), dtype))


def _convert(value: te.Expr, dtype: DType) -> te.Expr:
    source = value.dtype
    if dtype is DType.BOOL:
        return value != te.const(0, source)
    if source is DType.BOOL:
        return te.select(value, te.const(1, dtype), te.const(0, dtype))
    if dtype.is_float or source is dtype:
        return te.cast(dtype, value)
    if source.is_float:
        return te.cast(dtype, te.clamp(value, float(dtype.min), _largest_float(dtype)))
    if source.min >= dtype.min and source.max <= dtype.max:
        return te.cast(dtype, value)
    # TIR casts keep values; two's complement keeps the low bits, so take them by a remainder.
    big = DType.INT64
    low_bits = (te.cast(big, value) - dtype.min) % (1 << dtype.bits) + dtype.min
    return te.cast(dtype, low_bits)


def _largest_float(dtype: DType) -> float:
    """Return the largest float32 that the integer type holds: 2^31 - 1 is not a float32."""
    return float(dtype.max) if dtype.bits <= 24 else math.ldexp(1.0 - 2.0**-24, dtype.bits - 1)


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        Quantize: Formula(quantize, 20),
        Dequantize: Formula(dequantize, 6),
        CastTo: Formula(cast, 4),
    }
)
