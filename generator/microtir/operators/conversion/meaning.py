"""Define in numpy, to the bit, what conversions between scalar types compute."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, TensorType
from microtir.operators.common import attributes, fixed_point, linear
from microtir.operators.common.arrays import as_output, dequantized, stored
from microtir.operators.conversion import definition as conversion


def quantize(op: conversion.Quantize, node: Node, x: Array) -> Array:
    """Compute QUANTIZE from float32, or between integer types.

    A quotient outside int32, which C leaves undefined, saturates; NaN gives the least value.
    """
    source, output = node.inputs[0].type, node.output.type
    if op.rescaling is attributes.Rescaling.EXACT:
        centred = stored(x) - source.quant.zero_point
        return as_output(conversion.exact_sums(node).stored(centred), output)
    if op.rescaling is attributes.Rescaling.FLOAT32:
        x = dequantized(x, source)
    elif not source.dtype.is_float:
        return as_output(quantized_requantize(op, stored(x), source, output), output)
    params = conversion.quantize_params(output)
    with np.errstate(over="ignore"):  # what overflows is an end of the range
        if op.by_reciprocal:
            quotient = (x * np.float32(linear.reciprocal(output))).astype(np.float64)
        else:
            quotient = (x / np.float32(params.scale)).astype(np.float64)
    if op.ties_to_even:
        rounded = np.rint(quotient)
    else:
        rounded = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient)
    low, high = fixed_point.INT32_MIN, fixed_point.INT32_MAX
    finite = np.clip(np.nan_to_num(rounded, nan=low), low, high)
    shifted = finite.astype(np.int64) + params.zero_point
    return as_output(np.clip(shifted, params.minimum, params.maximum), output)


def dequantize(_op: conversion.Dequantize, node: Node, x: Array) -> Array:
    """Compute DEQUANTIZE, per tensor or per channel."""
    source = node.inputs[0].type
    real = x if source.dtype.is_float else dequantized(x, source)
    return as_output(real, node.output.type)


def cast_to(_op: conversion.CastTo, node: Node, x: Array) -> Array:
    """Compute CAST of stored values.

    Float to integer truncates and saturates, and NaN becomes 0; an integer keeps its low bits.
    Anything but zero is true.
    """
    target = node.output.dtype
    if target is DType.BOOL:
        return np.asarray(x != 0)
    if target.is_float:
        return x.astype(target.value)
    if x.dtype.kind == "f":
        return _saturated(x.astype(np.float64), target)
    integers = stored(x)
    if target.bits < 64 and target.is_signed:
        integers = fixed_point.wrap(integers, target.bits)
    return integers.astype(target.value)


def _saturated(real: Array, dtype: DType) -> Array:
    """Return real numbers as integers, those outside the type as its ends, NaN as 0."""
    over = real >= math.ldexp(1.0, dtype.bits - dtype.is_signed)
    under = real < float(dtype.min)
    inside = np.trunc(np.where(over | under | np.isnan(real), 0.0, real)).astype(dtype.value)
    ends = np.where(over, dtype.max, dtype.min).astype(dtype.value)
    return np.where(over | under, ends, inside)


def quantized_requantize(
    _op: conversion.Quantize, x: fixed_point.Ints, input_type: TensorType, output: TensorType
) -> fixed_point.Ints:
    """Compute QUANTIZE of stored values of any integer type."""
    params = conversion.requantize_params(input_type, output)
    centred = fixed_point.wrap(x - params.input_zero_point)
    scaled = fixed_point.multiply_by_quantized_multiplier(centred, *params.multiplier)
    shifted = fixed_point.wrap(scaled + params.output_zero_point)
    return np.clip(shifted, params.minimum, params.maximum)


def tabulated(op: conversion.Tabulated, _node: Node, x: Array) -> Array:
    """Look every element up."""
    return np.frombuffer(op.table, np.int8)[stored(x) - DType.INT8.min]
