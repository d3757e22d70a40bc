"""Define in numpy, to the bit, what operators that divide compute."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, TensorType
from microtir.operators.arithmetic.definition import whole_range
from microtir.operators.common import fixed_point, types
from microtir.operators.common.arrays import activate, as_output, stored
from microtir.operators.division.definition import Div, FloorDiv, FloorMod, div_params


def div(op: Div, node: Node, first: Array, second: Array) -> Array:
    """Compute DIV with broadcasting."""
    output = node.output.type
    if output.dtype in types.QUANTISED:
        return _quantised(op, node, first, second)
    if output.dtype is DType.UINT64:
        return _unsigned(op, first, second)
    if output.dtype.is_int:
        return _whole(op, output, stored(first), stored(second))
    with np.errstate(all="ignore"):
        quotient = first / second
    largest = np.finfo(np.float32).max  # the reference kernels' clamp where there is no activation
    return as_output(activate(np.clip(quotient, -largest, largest), op.activation), output)


def _whole(op: Div, output: TensorType, first: fixed_point.Ints, second: fixed_point.Ints) -> Array:
    """Divide and round to zero; saturates, for a divisor of 0, too."""
    lowest, highest = output.dtype.min, output.dtype.max
    overflows = (first == lowest) & (second == -1)
    divisor = np.where((second == 0) | overflows, 1, second)
    rounds_up = (first % divisor != 0) & ((first < 0) != (divisor < 0))
    quotient = np.where(overflows, highest, first // divisor + rounds_up)
    beyond = np.where(first > 0, highest, np.where(first < 0, lowest, 0))
    limited = np.where(second == 0, beyond, quotient)
    return as_output(np.clip(limited, *whole_range(op, output.dtype)), output)


def _unsigned(op: Div, first: Array, second: Array) -> Array:
    """Divide what int64 does not hold; a divisor of 0 saturates."""
    quotient = first // np.where(second == 0, np.uint64(1), second)
    beyond = np.where(first > 0, np.uint64(DType.UINT64.max), np.uint64(0))
    limit = np.uint64(whole_range(op, DType.UINT64)[1])
    return np.asarray(np.minimum(np.where(second == 0, beyond, quotient), limit))


def _quantised(op: Div, node: Node, first: Array, second: Array) -> Array:
    """Multiply by the fixed-point reciprocal of the divisor, and requantise."""
    output = node.output.type
    params = div_params(op, node.inputs[0].type, node.inputs[1].type, output)
    x, y = stored(first) - params.input1_zero_point, stored(second) - params.input2_zero_point
    x, y = np.where(y < 0, -x, x), np.abs(y)
    inverse, bits = fixed_point.reciprocal(np.maximum(y, 1), 31)
    headroom = fixed_point.count_leading_zeros(np.where(x < 0, ~x, x)) - 1
    quotient = fixed_point.saturating_rounding_doubling_high_mul(x << headroom, inverse)
    scaled = fixed_point.saturating_rounding_doubling_high_mul(
        quotient, params.multiplier.multiplier
    )
    right = headroom + bits - params.multiplier.shift
    # More than 31 bits are beyond the reference kernels' function: there nothing is left.
    rounded = np.where(
        right > 31, 0, fixed_point.rounding_divide_by_pot(scaled, np.clip(right, 0, 31))
    )
    limited = np.where(y == 0, np.sign(x) << 20, rounded) + params.output_zero_point
    return as_output(np.clip(limited, params.activation_min, params.activation_max), output)


def floor_div(_op: FloorDiv, node: Node, first: Array, second: Array) -> Array:
    """Compute FLOOR_DIV with broadcasting."""
    output = node.output.type
    if output.dtype.is_float:
        with np.errstate(all="ignore"):
            return as_output(np.floor(first.astype(np.float64) / second), output)
    x, y = stored(first), stored(second)
    quotient = x // np.where(y == 0, 1, y)
    limits = output.dtype.min, output.dtype.max
    saturated = np.clip(np.sign(x) << 32, *limits)
    # The lowest number by -1 wraps, as in LiteRT.
    wrapped = np.where(quotient > output.dtype.max, output.dtype.min, quotient)
    return as_output(np.where(y == 0, saturated, wrapped), output)


def floor_mod(_op: FloorMod, node: Node, first: Array, second: Array) -> Array:
    """Compute FLOOR_MOD with broadcasting."""
    output = node.output.type
    if output.dtype.is_float:
        with np.errstate(all="ignore"):
            remainder = np.fmod(first, second)
            turned = (remainder != 0) & ((second < 0) != (remainder < 0))
            return as_output(np.where(turned, remainder + second, remainder), output)
    x, y = stored(first), stored(second)
    # Everything is a multiple of -1; numpy's remainder of the lowest number overflows.
    divisor = np.where((y == 0) | (y == -1), 1, y)
    return as_output(x % divisor, output)
