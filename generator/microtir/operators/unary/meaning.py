"""Define in numpy, to the bit, what functions of one element compute that are no activations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.arrays import Doubles, Meaning, as_output, stored
from microtir.operators.common.fixed_point import (
    Ints,
    inverse_square_root,
    multiply_by_quantized_multiplier,
    wrap,
)
from microtir.operators.common.lookup import Affine, table_of_int8
from microtir.operators.common.lookup_meaning import looked_up_int16
from microtir.operators.unary.definition import (
    RSQRT_SHIFT,
    Abs,
    Ceil,
    Cos,
    Erf,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
    ZerosLike,
    abs_params,
    int16_table,
    real_function,
    rsqrt_params,
)

Real: TypeAlias = Callable[[Doubles], Array]
Stored: TypeAlias = Callable[[Operator, Ints, TensorType, TensorType], Ints]


_ERF = np.frompyfunc(math.erf, 1, 1)


def _function(real: Real, of_stored: Stored | None = None) -> Meaning:
    """Compute a function of real numbers, rounded once, or one of stored integers.

    Args:
        real: the function; an argument that it has no result for gives NaN or an infinity.
        of_stored: given the operator, integers, and the types of input and output; what it gives
            wraps to the output's type.
    """

    def meaning(op: Operator, node: Node, x: Array) -> Array:
        source, output = node.inputs[0].type, node.output.type
        if output.dtype.is_float:
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                return as_output(real(x.astype(np.float64)), output)
        assert of_stored is not None
        result = of_stored(op, stored(x), source, output)
        return as_output(_wrapped(result, output.dtype), output)

    return meaning


def _wrapped(values: Ints, dtype: DType) -> Ints:
    return values if dtype.bits == 64 else wrap(values, dtype.bits)


def _clamped(values: Ints, output: TensorType) -> Ints:
    return np.clip(values, output.dtype.min, output.dtype.max)


def quantized_abs(op: Operator, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """Compute ABS of stored values, which are no real numbers where nothing is quantised."""
    if input_type.dtype is DType.INT32 or input_type.quantization is None:
        return np.abs(x)
    assert isinstance(op, Abs)
    params = abs_params(op, input_type, output)
    size = np.abs(x - params.input_zero_point)
    if params.multiplier is not None:
        size = multiply_by_quantized_multiplier(size, *params.multiplier)
    return _clamped(size + params.output_zero_point, output)


def quantized_sqrt(_op: Operator, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """Compute SQRT of stored values, rounded down; below 0, where LiteRT fails, that of 0."""
    source, result = input_type.quant, output.quant
    centred = np.maximum(x - source.zero_point, 0).astype(np.float32)
    root = np.sqrt(np.float32(source.scale) * centred) / np.float32(result.scale)
    return _clamped(np.trunc(root).astype(np.int64) + result.zero_point, output)


def quantized_rsqrt(_op: Operator, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """Compute RSQRT of stored values; below 0, where tflite-micro fails, that of 0, the most."""
    params = rsqrt_params(input_type, output)
    centred = x - params.input_zero_point
    multiplier, shift = inverse_square_root(np.maximum(centred, 0))
    root = multiply_by_quantized_multiplier(1, multiplier, shift + RSQRT_SHIFT)
    scaled = multiply_by_quantized_multiplier(root, *params.multiplier) + params.output_zero_point
    return np.where(centred > 0, _clamped(scaled, output), output.dtype.max)


def quantized_by_table(op: Operator, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """Compute EXP or LOG of stored values by a table, as LiteRT."""
    assert isinstance(op, Exp | Log)
    if input_type.dtype is DType.INT16:
        return looked_up_int16(x, int16_table(op, input_type, output))
    function = real_function(op, output)
    table = table_of_int8(function, Affine.of(input_type), Affine.of(output))
    return table.astype(np.int64)[x - DType.INT8.min]


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        Abs: _function(np.abs, quantized_abs),
        Neg: _function(np.negative, lambda _op, x, _source, _output: -x),
        Sign: _function(np.sign, lambda _op, x, _source, _output: np.sign(x)),
        Square: _function(np.square),
        Sqrt: _function(np.sqrt, quantized_sqrt),
        Rsqrt: _function(lambda x: 1.0 / np.sqrt(x), quantized_rsqrt),
        Exp: _function(np.exp, quantized_by_table),
        Log: _function(np.log, quantized_by_table),
        Erf: _function(lambda x: np.asarray(_ERF(x), np.float64)),
        Sin: _function(np.sin),
        Cos: _function(np.cos),
        Floor: _function(np.floor),
        Ceil: _function(np.ceil),
        Round: _function(np.rint),
        ZerosLike: _function(np.zeros_like, lambda _op, x, _source, _output: np.zeros_like(x)),
    }
)
