"""Compute QUANTIZE, DEQUANTIZE and CAST element by element."""

from __future__ import annotations

import math

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Quantization, TensorType
from microtir.operators.common import arithmetic, attributes, float_sums, linear
from microtir.operators.common.formula import FormulaContext
from microtir.operators.conversion import definition as conversion


def quantize(layer: FormulaContext) -> None:
    """Emit QUANTIZE from float32, or between integer types that are no look-up."""
    node, x = layer.node, layer.image(0)
    source, target = node.inputs[0].type, node.output.type
    op = node.attributes(conversion.Quantize)
    if source.dtype is DType.FLOAT32:
        layer.rows(lambda *at: quantised(x.at(*at), target, op))
        return
    if op.rescaling is attributes.Rescaling.EXACT:
        sums, zero_point = conversion.exact_sums(node), source.quant.zero_point

        def exact(*at: te.Expr) -> te.Expr:
            centred = te.bind("centred", arithmetic.centred(x.at(*at), zero_point))
            return float_sums.stored_sum(centred, sums, target.dtype)

        layer.rows(exact)
        return
    if op.rescaling is attributes.Rescaling.FLOAT32:
        layer.rows(lambda *at: quantised(real(x.at(*at), source.quant), target, op))
        return
    params = conversion.requantize_params(source, target)
    low, high = params.minimum, params.maximum
    bits = source.dtype.bits + 1  # with the zero point
    # A product with 1; of 32 bits it is another where the shift before it leaves these.
    is_shift = source.quant.scale == target.quant.scale and source.dtype is not DType.INT32

    def from_integer(*at: te.Expr) -> te.Expr:
        value = _shifted(x.at(*at), -params.input_zero_point)
        scaled = (
            value if is_shift else arithmetic.requantise_wrapping(value, params.multiplier, bits)
        )
        if target.dtype is DType.INT32:
            return _shifted(scaled, params.output_zero_point)
        return arithmetic.stored(scaled, params.output_zero_point, low, high, target.dtype)

    layer.rows(from_integer)


def quantised(value: te.Expr, target: TensorType, op: conversion.Quantize) -> te.Expr:
    """Return a float as a stored integer."""
    quotient = _quotient(value, target, op)
    if op.ties_to_even:
        return nearest_even(te.bind("clamped", te.clamp(quotient, *_ends(target))), target)
    return _placed(te.clamp(te.round(quotient), *_ends(target)), target)


def _quotient(value: te.Expr, target: TensorType, op: conversion.Quantize) -> te.Expr:
    if op.by_reciprocal:
        return value * linear.reciprocal(target)
    return value / target.quant.scale


def nearest_even(clamped: te.Expr, target: TensorType) -> te.Expr:
    """Return what a quotient between the ends of a type is stored as, where ties are even."""
    return _placed(te.round_small(clamped), target)


def clamped_quotient(value: te.Expr, target: TensorType) -> te.Expr:
    """Return the quotient of a float and a scale, between the ends of a type."""
    return te.clamp(value / target.quant.scale, *_ends(target))


def _ends(target: TensorType) -> tuple[float, float]:
    """Return the least and the largest quotient; C leaves a float outside the integer undefined."""
    real = conversion.quantize_params(target)
    return float(real.minimum - real.zero_point), float(real.maximum - real.zero_point)


def _placed(rounded: te.Expr, target: TensorType) -> te.Expr:
    return te.cast(target.dtype, te.cast(DType.INT32, rounded) + target.quant.zero_point)


def real(value: te.Expr, quant: Quantization) -> te.Expr:
    """Return the float that a stored integer of one scale stands for."""
    return te.cast(DType.FLOAT32, arithmetic.centred(value, quant.zero_point)) * quant.scale


def _shifted(value: te.Expr, by: int) -> te.Expr:
    """Return a stored integer plus a zero point, INT32; an INT32 wraps."""
    if value.dtype is DType.INT32 and by:
        return te.bind("shifted", arithmetic.wrapped_int32(arithmetic.long(value) + by))
    return arithmetic.wide(value) + by


def dequantize(layer: FormulaContext) -> None:
    """Emit DEQUANTIZE to float32."""
    node = layer.node
    if node.inputs[0].dtype.is_float:
        same = layer.image(0)
        layer.rows(same.at)
        return
    quant = node.inputs[0].type.quant
    if quant.axis is not None:
        _dequantize_channels(layer, quant, quant.axis)
        return
    x = layer.image(0)
    layer.rows(lambda *at: real(x.at(*at), quant))


def _dequantize_channels(layer: FormulaContext, quant: Quantization, axis: int) -> None:
    x = layer.whole(0)
    scales = te.constant(np.array(quant.scales, np.float32), "scales")
    zero_points = te.constant(np.array(quant.zero_points, np.int32), "zero_points")

    def element(*at: te.Expr) -> te.Expr:
        centred_value = arithmetic.wide(x[at]) - zero_points[at[axis]]
        return te.cast(DType.FLOAT32, centred_value) * scales[at[axis]]

    layer.tensor(element)


def cast(layer: FormulaContext) -> None:
    """Emit CAST: integers keep their low bits, floats are truncated and saturate."""
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
        return _saturated(te.bind("value", value), dtype)
    if source.min >= dtype.min and source.max <= dtype.max:
        return te.cast(dtype, value)
    # TIR casts keep values; two's complement keeps the low bits.
    if dtype is DType.UINT64:
        return _unsigned(te.bind("wide", arithmetic.long(value)))
    if source is DType.UINT64 and dtype is DType.INT64:
        return _signed(value)
    mask, half = (1 << dtype.bits) - 1, -dtype.min
    low_bits = (
        arithmetic.long(value & te.const(mask, source) if source is DType.UINT64 else value) & mask
    )
    return te.cast(dtype, ((low_bits + half) & mask) - half if half else low_bits)


def _unsigned(value: te.Expr) -> te.Expr:
    """Return the bits of an INT64 as UINT64: all but the highest one, and that one."""
    low, high = value & DType.INT64.max, (value >> _TOP) & 1
    return te.cast(DType.UINT64, low) + (te.cast(DType.UINT64, high) << _TOP)


def _signed(value: te.Expr) -> te.Expr:
    """Return the bits of a UINT64 as INT64."""
    low, high = value & te.const(DType.INT64.max, DType.UINT64), value >> _TOP
    return arithmetic.long(low) + arithmetic.long(high) * te.const(DType.INT64.min, DType.INT64)


_TOP = 63
"""The number of the highest bit of 64."""


def _saturated(value: te.Expr, dtype: DType) -> te.Expr:
    """Return a float as an integer, outside the type the nearer end, of NaN 0."""
    beyond = math.ldexp(1.0, dtype.bits - dtype.is_signed)
    low, high, zero = (te.const(n, dtype) for n in (dtype.min, dtype.max, 0))
    inside = te.select(value >= float(dtype.min), te.cast(dtype, value), low)
    number = te.select(value >= beyond, high, inside)
    return te.select(value == value, number, zero)
