"""Define in numpy, to the bit, what conversions between scalar types compute."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.arrays import Meaning, as_output, dequantized, stored
from microtir.operators.common.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    Ints,
    multiply_by_quantized_multiplier,
    wrap,
)
from microtir.operators.conversion.definition import (
    CastTo,
    Dequantize,
    Quantize,
    quantize_params,
    requantize_params,
)


def quantize(op: Quantize, node: Node, x: Array) -> Array:
    """Compute QUANTIZE from float32, or between integer types.

    A quotient outside int32, which C leaves undefined, saturates; NaN gives the zero point.
    """
    source, output = node.inputs[0].type, node.output.type
    if not source.dtype.is_float:
        return as_output(quantized_requantize(op, stored(x), source, output), output)
    params = quantize_params(output)
    quotient = (x / np.float32(params.scale)).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient)
    shifted = _saturated(rounded) + params.zero_point
    return as_output(np.clip(shifted, params.minimum, params.maximum), output)


def _saturated(real: Array) -> Ints:
    """Return the integral doubles as integers within int32; NaN becomes 0."""
    finite = np.clip(np.nan_to_num(real, nan=0.0), INT32_MIN, INT32_MAX)
    return np.asarray(finite, np.int64)


def dequantize(_op: Dequantize, node: Node, x: Array) -> Array:
    """Compute DEQUANTIZE, per tensor or per channel."""
    return as_output(dequantized(x, node.inputs[0].type), node.output.type)


def cast_to(_op: CastTo, node: Node, x: Array) -> Array:
    """Compute CAST of stored values.

    Float to integer truncates to int32, saturating where C leaves the result undefined; integers
    then wrap to a narrower type. Anything but zero is true.
    """
    target = node.output.dtype
    if target is DType.BOOL:
        return np.asarray(x != 0)
    if target.is_float:
        return x.astype(target.value)
    integers = _saturated(np.trunc(x.astype(np.float64))) if x.dtype.kind == "f" else stored(x)
    bits = wrap(integers, target.bits) if target.bits < 64 else integers
    return bits.astype(target.value)


def quantized_requantize(
    _op: Quantize, x: Ints, input_type: TensorType, output: TensorType
) -> Ints:
    """Compute QUANTIZE of stored values of any integer type."""
    params = requantize_params(input_type, output)
    centred = wrap(x - params.input_zero_point)
    scaled = multiply_by_quantized_multiplier(centred, *params.multiplier)
    return np.clip(scaled + params.output_zero_point, params.minimum, params.maximum)


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        Quantize: quantize,
        Dequantize: dequantize,
        CastTo: cast_to,
    }
)
