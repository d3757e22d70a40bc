"""Define functions of one element that are no activations: attributes, parameters and rules."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import lookup, problem, types
from microtir.operators.common.multiplier import (
    MAX_INT16_SHIFT,
    MAX_SHIFT,
    QuantizedMultiplier,
    check_shift,
    quantize_multiplier,
    quantized_ratio,
)
from microtir.tir.ir import Array


@dataclass(frozen=True, slots=True)
class Abs(Operator):
    """The magnitude; LiteRT rounds the ratio of scales to float32."""

    float32_ratio: bool = False


@dataclass(frozen=True, slots=True)
class Neg(Operator):
    """Negation of stored values: quantisation plays no part."""


@dataclass(frozen=True, slots=True)
class Sign(Operator):
    """-1, 0 or 1."""


@dataclass(frozen=True, slots=True)
class Square(Operator):
    """x times x."""


@dataclass(frozen=True, slots=True)
class Sqrt(Operator):
    """The square root."""


@dataclass(frozen=True, slots=True)
class Rsqrt(Operator):
    """1 / sqrt(x); `by_table`, int16 is looked up as LiteRT does, which tflite-micro computes."""

    by_table: bool = False


@dataclass(frozen=True, slots=True)
class Exp(Operator):
    """The exponential function."""


@dataclass(frozen=True, slots=True)
class Log(Operator):
    """The natural logarithm."""


@dataclass(frozen=True, slots=True)
class Erf(Operator):
    """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""


@dataclass(frozen=True, slots=True)
class Sin(Operator):
    """The sine of an angle in radians."""


@dataclass(frozen=True, slots=True)
class Cos(Operator):
    """The cosine of an angle in radians."""


@dataclass(frozen=True, slots=True)
class Floor(Operator):
    """The largest whole number that is not above x."""


@dataclass(frozen=True, slots=True)
class Ceil(Operator):
    """The smallest whole number that is not below x."""


@dataclass(frozen=True, slots=True)
class Round(Operator):
    """Rounding to the nearest whole number, of two the even one."""


@dataclass(frozen=True, slots=True)
class ZerosLike(Operator):
    """Zeros in the shape and type of the input."""


@dataclass(frozen=True, slots=True)
class AbsParams:
    """y = clamp(|x - input_zero_point| * multiplier + output_zero_point).

    Where nothing is rescaled there is no multiplier.
    """

    input_zero_point: int
    output_zero_point: int
    multiplier: QuantizedMultiplier | None


def abs_params(op: Abs, input_type: TensorType, output: TensorType) -> AbsParams:
    """Derive the parameters of integer ABS."""
    x, y = input_type.quant, output.quant
    if x.scale == y.scale:
        return AbsParams(x.zero_point, y.zero_point, None)
    multiplier = quantized_ratio(x.scale, y.scale, in_float32=op.float32_ratio)
    return AbsParams(x.zero_point, y.zero_point, multiplier)


RSQRT_SHIFT = 20
"""Inverse square roots of integers are kept with so many bits behind the point."""


@dataclass(frozen=True, slots=True)
class RsqrtParams:
    """y = clamp((1 / sqrt(x - input_zero_point)) * multiplier + output_zero_point).

    The root has RSQRT_SHIFT fraction bits, which the shift of the multiplier takes back.
    """

    input_zero_point: int
    output_zero_point: int
    multiplier: QuantizedMultiplier


def rsqrt_params(input_type: TensorType, output: TensorType) -> RsqrtParams:
    """Derive the parameters of integer RSQRT, computed in double."""
    x, y = input_type.quant, output.quant
    multiplier, shift = quantize_multiplier(1.0 / (math.sqrt(x.scale) * y.scale))
    taken = QuantizedMultiplier(multiplier, shift - RSQRT_SHIFT)
    return RsqrtParams(x.zero_point, y.zero_point, taken)


def real_function(op: Exp | Log | Rsqrt, output: TensorType) -> lookup.RealFunction:
    """Return what the table of an integer EXP, LOG or RSQRT holds, given and giving real numbers.

    Where there is no logarithm it is the least number that the output can hold; where there is no
    root, the largest.
    """
    quant = output.quant
    least, most = (
        np.float32(end - quant.zero_point) * np.float32(quant.scale)
        for end in (output.dtype.min, output.dtype.max)
    )

    def exp(x: lookup.Floats) -> Array:
        return np.asarray(np.exp(x.astype(np.float64)))

    def log(x: lookup.Floats) -> Array:
        positive = x > 0
        return np.where(positive, np.log(np.where(positive, x, 1.0).astype(np.float64)), least)

    def rsqrt(x: lookup.Floats) -> Array:
        positive = x > 0
        roots = np.sqrt(np.where(positive, x, np.float32(1.0)))
        return np.asarray(np.where(positive, np.float32(1.0) / roots, most))

    if isinstance(op, Rsqrt):
        return rsqrt
    return exp if isinstance(op, Exp) else log


def int16_table(op: Exp | Log | Rsqrt, input_type: TensorType, output: TensorType) -> Array:
    """Return the table by which an int16 EXP, LOG or RSQRT is computed."""
    function = real_function(op, output)
    return lookup.table_of_int16(function, lookup.Affine.of(input_type), lookup.Affine.of(output))


def may_leave_float32(node: Node) -> bool:
    """Return whether a result may be too large for what LiteRT makes its table of.

    An EXP beyond float32 saturates here; LiteRT leaves to its compiler what it is as an integer.
    """
    if not isinstance(node.op, Exp) or node.output.dtype not in types.QUANTISED:
        return False
    source, output = node.inputs[0].type, node.output.type
    function = real_function(node.op, output)
    return bool(
        lookup.c_leaves_undefined(
            output.dtype, function, lookup.Affine.of(source), lookup.Affine.of(output)
        ).any()
    )


def abs_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find a ratio of scales that has no fixed-point form."""
    x = node.inputs[0].type
    if x.quantization is None or x.dtype is DType.INT32:
        return
    multiplier = abs_params(node.attributes(Abs), x, node.output.type).multiplier
    if multiplier is not None:
        yield from check_shift(multiplier, MAX_SHIFT if x.dtype is DType.INT8 else MAX_INT16_SHIFT)


_MOST_RSQRT_SHIFT = 10  # with RSQRT_SHIFT bits an int32 is full


def rsqrt_multipliers(node: Node) -> Iterator[problem.Problem]:
    """Find scales by which roots leave the range of the multiplier."""
    shift = rsqrt_params(node.inputs[0].type, node.output.type).multiplier.shift
    if not -31 <= shift <= _MOST_RSQRT_SHIFT:
        ends = f"2^{-31 + RSQRT_SHIFT} to 2^{_MOST_RSQRT_SHIFT + RSQRT_SHIFT}"
        yield problem.Problem("1 / (sqrt(input scale) * output scale) is out of range", ends)
