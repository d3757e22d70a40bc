"""Define in numpy, to the bit, what functions of one element compute that are no activations."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import arrays, fixed_point, lookup, lookup_meaning
from microtir.operators.common.fixed_point import Ints
from microtir.operators.unary import definition as unary

_ERF = np.frompyfunc(math.erf, 1, 1)


def erf(x: arrays.Doubles) -> arrays.Doubles:
    """Compute ERF in double."""
    return np.asarray(_ERF(x), np.float64)


def _clamped(values: Ints, output: TensorType) -> Ints:
    return np.clip(values, output.dtype.min, output.dtype.max)


def quantized_abs(op: Operator, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """Compute ABS of stored values, which are no real numbers where nothing is quantised."""
    if input_type.dtype is DType.INT32 or input_type.quantization is None:
        return np.abs(x)
    assert isinstance(op, unary.Abs)
    params = unary.abs_params(op, input_type, output)
    size = np.abs(x - params.input_zero_point)
    if params.multiplier is not None:
        size = fixed_point.multiply_by_quantized_multiplier(size, *params.multiplier)
    return _clamped(size + params.output_zero_point, output)


def quantized_sqrt(_op: Operator, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """Compute SQRT of stored values, rounded down; below 0, where LiteRT fails, that of 0."""
    source, result = input_type.quant, output.quant
    centred = np.maximum(x - source.zero_point, 0).astype(np.float32)
    root = np.sqrt(np.float32(source.scale) * centred) / np.float32(result.scale)
    return _clamped(np.trunc(root).astype(np.int64) + result.zero_point, output)


def quantized_rsqrt(op: Operator, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """Compute RSQRT of stored values; below 0, where tflite-micro fails, that of 0, the most."""
    assert isinstance(op, unary.Rsqrt)
    if op.by_table:
        return lookup_meaning.looked_up_int16(x, unary.int16_table(op, input_type, output))
    params = unary.rsqrt_params(input_type, output)
    centred = x - params.input_zero_point
    multiplier, shift = fixed_point.inverse_square_root(np.maximum(centred, 0))
    root = fixed_point.multiply_by_quantized_multiplier(1, multiplier, shift + unary.RSQRT_SHIFT)
    scaled = (
        fixed_point.multiply_by_quantized_multiplier(root, *params.multiplier)
        + params.output_zero_point
    )
    return np.where(centred > 0, _clamped(scaled, output), output.dtype.max)


def quantized_by_table(op: Operator, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """Compute EXP or LOG of stored values by a table, as LiteRT."""
    assert isinstance(op, unary.Exp | unary.Log)
    if input_type.dtype is DType.INT16:
        return lookup_meaning.looked_up_int16(x, unary.int16_table(op, input_type, output))
    function = unary.real_function(op, output)
    table = lookup.table_of_int8(function, lookup.Affine.of(input_type), lookup.Affine.of(output))
    return table.astype(np.int64)[x - DType.INT8.min]
