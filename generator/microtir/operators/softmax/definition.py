"""Define SOFTMAX and LOG_SOFTMAX over the last axis by their attributes and rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, Quantization, SumRange, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import attributes, images, linear, shapes, sums
from microtir.operators.common.lookup import Affine, table_of_int16
from microtir.operators.common.multiplier import (
    MAX_INT16_SHIFT,
    QuantizedMultiplier,
    check_shift,
    input_radius,
    quantize_multiplier,
)
from microtir.operators.common.problem import Problem
from microtir.operators.common.quantization import (
    FixedOutput,
    QuantizationRule,
    fixed,
    unless_in_float,
)
from microtir.operators.common.types import COMPUTED, TypeRule, converting
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class Softmax(attributes.RescaledOperator):
    """Softmax over the last axis.

    Rescaled in float32, powers of differences are rounded to multiples of 2^-24, and quotients of
    floats to the nearest integer, of two the even one.
    """

    beta: float = 1.0  # a float32 value
    rescaling: attributes.Rescaling = field(default=attributes.Rescaling.FIXED_POINT, kw_only=True)


@dataclass(frozen=True, slots=True)
class LogSoftmax(Operator):
    """Logarithm of softmax over the last axis."""


DIFFERENCE_INTEGER_BITS = 5
"""Differences to the row's maximum are Q5: exp(-16) and below do not count."""

SUM_INTEGER_BITS = 12
"""Sums of exponentials are Q12: a row of 4096 equal elements would overflow."""

LOG_OUTPUT_INTEGER_BITS = 4
"""LOG_SOFTMAX gives Q4 in int8: scale 1/16, zero point 127."""


@dataclass(frozen=True, slots=True)
class SoftmaxParams:
    """`multiplier` (shift >= 0) takes differences to Q5; those below `difference_min` give 0."""

    multiplier: QuantizedMultiplier
    difference_min: int


def softmax_params(op: Softmax, input_type: TensorType) -> SoftmaxParams:
    """Derive the parameters of int8 SOFTMAX; its output has scale 1/256 and zero point -128."""
    multiplier = _difference_multiplier(op.beta, input_type.quant.scale)
    return SoftmaxParams(multiplier, -input_radius(DIFFERENCE_INTEGER_BITS, multiplier.shift))


def _difference_multiplier(beta: float, scale: float) -> QuantizedMultiplier:
    real = beta * scale * (1 << (31 - DIFFERENCE_INTEGER_BITS))
    return quantize_multiplier(min(real, float((1 << 31) - 1)))


@dataclass(frozen=True, slots=True)
class LogSoftmaxParams:
    """Parameters of LOG_SOFTMAX; `reverse` (shift <= 0) takes Q5 back to stored differences."""

    multiplier: QuantizedMultiplier
    reverse: QuantizedMultiplier
    difference_min: int


def log_softmax_params(input_type: TensorType) -> LogSoftmaxParams:
    """Derive the parameters of int8 LOG_SOFTMAX."""
    multiplier = _difference_multiplier(1.0, input_type.quant.scale)
    return LogSoftmaxParams(
        multiplier=multiplier,
        reverse=quantize_multiplier((1 << (31 - multiplier.shift)) / multiplier.multiplier),
        difference_min=-input_radius(DIFFERENCE_INTEGER_BITS, multiplier.shift),
    )


EXPONENTIAL_RANGE = 10.0
"""SOFTMAX of int16 knows exponentials of 0 to -10; 65535 steps are so much."""


def int16_multiplier(op: Softmax, input_type: TensorType) -> QuantizedMultiplier:
    """Derive what takes differences of stored int16 values to steps of the table."""
    step = EXPONENTIAL_RANGE / 65535.0
    return quantize_multiplier(input_type.quant.scale * op.beta / step)


def exponential_table() -> Array:
    """Return the table of exp(x) for the stored values x * 65535 / 10 + 32767, in Q15."""
    source = Affine(float(np.float32(EXPONENTIAL_RANGE) / np.float32(65535)), DType.INT16.max)
    return table_of_int16(lambda x: np.exp(x.astype(np.float64)), source, _Q15)


def reciprocal_table() -> Array:
    """Return the table of 1 / (1 + x) for the stored values x * 65535 - 32768, in Q15."""
    source = Affine(float(np.float32(1.0) / np.float32(65535)), DType.INT16.min)
    return table_of_int16(lambda x: np.float32(1.0) / (np.float32(1.0) + x), source, _Q15)


_Q15 = Affine(float(np.float32(2.0) / np.float32(65535)))


MAX_SOFTMAX_ROW_INT16 = 65535
"""Most elements whose exponentials, at most 2^15 each, add up within an int32."""

MAX_SOFTMAX_ROW = (1 << SUM_INTEGER_BITS) - 1
"""Most elements whose exponentials, at most 1 each, add up within the sum's format."""


FLOAT_BITS = 24
"""Powers that are rescaled in float32 are integers of so many bits, which a float32 holds."""

LEAST_FLOAT_SCALE = 2.0**-12
"""Least scale of an output for which the powers are exact, to a part of its step."""


def float_powers(op: Softmax, input_type: TensorType) -> Array:
    """Return exp(-d) in Q24 for differences d = 0, 1, ... 255 of stored values."""
    step = float(np.float32(input_type.quant.scale)) * op.beta
    powers = np.exp(-step * np.arange(256))
    return np.asarray(np.rint(np.ldexp(powers, FLOAT_BITS)), np.int32)


def _float_multipliers(node: Node) -> Iterator[Problem]:
    scale = node.output.type.quant.scale
    if any(tensor.dtype is not DType.INT8 for tensor in (node.inputs[0], node.output)):
        yield Problem("it is rescaled in float32", "int8 where that is done", node.output)
    elif scale < LEAST_FLOAT_SCALE:
        legal = f"at least {LEAST_FLOAT_SCALE:g} where float32 rescales"
        yield Problem(f"its scale is {scale:g}", legal, node.output)


def _softmax_multipliers(node: Node) -> Iterator[Problem]:
    if linear.rescales_in_float(node):
        yield from _float_multipliers(node)
        return
    x = node.inputs[0]
    beta = node.op.beta if isinstance(node.op, Softmax) else 1.0
    least = 2.0 ** (DIFFERENCE_INTEGER_BITS - 31)
    longest = MAX_SOFTMAX_ROW
    if isinstance(node.op, Softmax) and x.dtype is DType.INT16:
        yield from check_shift(int16_multiplier(node.op, x.type), MAX_INT16_SHIFT)
        longest = MAX_SOFTMAX_ROW_INT16
    elif beta * x.type.quant.scale <= least:
        yield Problem(f"beta times its scale is {beta * x.type.quant.scale:g}", f"> {least:g}", x)
    if x.shape[-1] > longest:
        yield Problem(f"it has rows of {x.shape[-1]} elements", f"at most {longest}", x)


def _softmax_sums(node: Node, _inputs: Sequence[sums.Interval]) -> SumRange:
    """Bound the sum of one power of at most 1 for each element of a row."""
    bits = FLOAT_BITS if linear.rescales_in_float(node) else 31 - SUM_INTEGER_BITS
    return SumRange(0, node.inputs[0].shape[-1] << bits)


def _last_axis(node: Node) -> int:
    return len(node.inputs[0].shape) - 1


def _terms(node: Node) -> int:
    return node.inputs[0].shape[-1]


def _over_last_axis(
    op: type[Operator], quantization: QuantizationRule, types: TypeRule = COMPUTED
) -> Definition:
    return Definition(
        op,
        types=types,
        quantization=quantization,
        shapes=shapes.same_rows,
        one_image=images.unless_along_images(_last_axis),
        multipliers=_softmax_multipliers,
        sums=_softmax_sums,
        terms=_terms,
        limits="over the last axis",
    )


_I8, _I16 = DType.INT8, DType.INT16
_SOFTMAX_TYPES = converting((DType.FLOAT32, DType.FLOAT32), (_I8, _I8), (_I8, _I16), (_I16, _I16))
SOFTMAX_OF_INT8 = Quantization((1 / 256,), (-128,))
"""Quantisation of SOFTMAX's int8 outputs in TFLite."""

SOFTMAX_OF_INT16 = Quantization((2.0**-16,), (-(1 << 15),))
"""Quantisation of SOFTMAX's int16 outputs for int8 inputs in TFLite."""

_SOFTMAX_OUTPUT = fixed(
    FixedOutput(_I8, _I8, Fraction(1, 256), -128),
    FixedOutput(_I8, _I16, Fraction(1, 1 << 16), -(1 << 15)),
    FixedOutput(_I16, _I16, Fraction(1, 1 << 15), 0),
)

DEFINITIONS = (
    _over_last_axis(Softmax, unless_in_float(_SOFTMAX_OUTPUT), _SOFTMAX_TYPES),
    _over_last_axis(LogSoftmax, fixed(FixedOutput(_I8, _I8, Fraction(1, 16), 127))),
)
