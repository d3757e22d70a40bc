"""Define in numpy, to the bit, what SOFTMAX and LOG_SOFTMAX compute."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, TensorType
from microtir.operators.common import attributes, lookup_meaning
from microtir.operators.common.arrays import as_output, stored
from microtir.operators.common.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    UINT32_MAX,
    Ints,
    count_leading_zeros,
    exp_on_negative_values,
    log_of_value_above_one,
    multiply_by_quantized_multiplier,
    reciprocal,
    rescale,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from microtir.operators.softmax.definition import (
    DIFFERENCE_INTEGER_BITS,
    LOG_OUTPUT_INTEGER_BITS,
    SUM_INTEGER_BITS,
    LogSoftmax,
    LogSoftmaxParams,
    Softmax,
    SoftmaxParams,
    exponential_table,
    float_powers,
    int16_multiplier,
    log_softmax_params,
    reciprocal_table,
    softmax_params,
)


def softmax(op: Softmax, node: Node, x: Array) -> Array:
    """Compute SOFTMAX over the last axis; float exponentials are rounded to their type."""
    output = node.output.type
    if output.dtype.is_float:
        difference = (x - x.max(axis=-1, keepdims=True)) * np.float32(op.beta)
        exponentials = np.exp(difference.astype(np.float64)).astype(x.dtype)
        total = exponentials.sum(axis=-1, keepdims=True, dtype=np.float64)
        return as_output(exponentials / total, output)
    if node.inputs[0].dtype is DType.INT16:
        return as_output(_softmax_of_int16(op, stored(x), node.inputs[0].type), output)
    if op.rescaling is attributes.Rescaling.FLOAT32:
        return as_output(_softmax_in_float(op, stored(x), node.inputs[0].type, output), output)
    params = softmax_params(op, node.inputs[0].type)
    difference, exponentials, total = _exponentials(stored(x), params)
    inverse, bits_over_one = reciprocal(total, SUM_INTEGER_BITS)
    product = saturating_rounding_doubling_high_mul(inverse, exponentials)
    exponent = bits_over_one + 31 - output.dtype.bits
    result = rounding_divide_by_pot(product, exponent) + output.dtype.min
    result = np.where(difference >= params.difference_min, result, output.dtype.min)
    return as_output(np.clip(result, output.dtype.min, output.dtype.max), output)


def _softmax_in_float(op: Softmax, x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    """Compute SOFTMAX of stored values by a table of powers, and quotients in float32."""
    powers = float_powers(op, input_type)[x.max(axis=-1, keepdims=True) - x].astype(np.int64)
    total = powers.sum(axis=-1, keepdims=True).astype(np.float32)
    quotient = powers.astype(np.float32) / total / np.float32(output.quant.scale)
    result = np.rint(quotient).astype(np.int64) + output.quant.zero_point
    return np.asarray(np.clip(result, output.dtype.min, output.dtype.max))


def _softmax_of_int16(op: Softmax, x: Ints, input_type: TensorType) -> Ints:
    """Compute SOFTMAX of stored values by two tables: of exponentials, and of 1 over their sum."""
    low, high = DType.INT16.min, DType.INT16.max
    difference = x - x.max(axis=-1, keepdims=True)
    steps = multiply_by_quantized_multiplier(difference, *int16_multiplier(op, input_type))
    powers = lookup_meaning.looked_up_int16(np.clip(steps + high, low, high), exponential_table())
    total = powers.sum(axis=-1, keepdims=True)
    headroom = count_leading_zeros(total)
    # The sum normalised to [1, 2) in Q16, less 1.5: what the table of reciprocals is asked.
    normalised = ((total << (headroom - 1)) + (1 << 13)) >> 14
    above = np.clip(normalised - (1 << 16) - (1 << 15), low, high)
    scale = lookup_meaning.looked_up_int16(above, reciprocal_table())
    right = 31 - headroom
    return np.asarray(np.clip((powers * scale + (1 << (right - 1))) >> right, 0, high))


def _exponentials(x: Ints, params: SoftmaxParams | LogSoftmaxParams) -> tuple[Ints, Ints, Ints]:
    """Return differences to each row's maximum, their exponentials in Q0, their sums in Q12.

    A sum of 4,096 or more leaves int32.  SOFTMAX reads it as unsigned; LOG_SOFTMAX, of which C
    leaves the result undefined then, as the largest int32.
    """
    difference = x - x.max(axis=-1, keepdims=True)
    counts = difference >= params.difference_min
    in_q5 = _in_q5(np.where(counts, difference, 0), params)
    exponentials = np.where(counts, exp_on_negative_values(in_q5, DIFFERENCE_INTEGER_BITS), 0)
    largest = UINT32_MAX if isinstance(params, SoftmaxParams) else INT32_MAX
    total = rescale(exponentials, 0, SUM_INTEGER_BITS).sum(axis=-1, keepdims=True)
    return difference, exponentials, np.minimum(total, largest)


def _in_q5(difference: Ints, params: SoftmaxParams | LogSoftmaxParams) -> Ints:
    return multiply_by_quantized_multiplier(difference, *params.multiplier)


def log_softmax(_op: LogSoftmax, node: Node, x: Array) -> Array:
    """Compute LOG_SOFTMAX over the last axis."""
    output = node.output.type
    if output.dtype.is_float:
        return as_output(_float_log_softmax(x), output)
    return as_output(_quantized_log_softmax(stored(x), node.inputs[0].type, output), output)


def _float_log_softmax(x: Array) -> Array:
    difference = (x - x.max(axis=-1, keepdims=True)).astype(np.float64)
    log_sum = np.log(np.exp(difference).sum(axis=-1, keepdims=True))
    return np.asarray(difference - log_sum)


def _quantized_log_softmax(x: Ints, input_type: TensorType, output: TensorType) -> Ints:
    params = log_softmax_params(input_type)
    difference, _, total = _exponentials(x, params)
    log_sum = log_of_value_above_one(total, SUM_INTEGER_BITS, DIFFERENCE_INTEGER_BITS)
    # Below this difference the subtraction of log_sum would leave the range of Q5.
    lowest = multiply_by_quantized_multiplier(log_sum + INT32_MIN, *params.reverse)
    lowest = np.maximum(params.difference_min - 1, lowest)
    counts = difference > lowest
    in_q5 = _in_q5(np.where(counts, difference, 0), params)
    fraction_bits = 31 - DIFFERENCE_INTEGER_BITS - LOG_OUTPUT_INTEGER_BITS
    result = rounding_divide_by_pot(in_q5 - log_sum, fraction_bits) + output.dtype.max
    result = np.where(counts, result, output.dtype.min)
    return np.clip(result, output.dtype.min, output.dtype.max)
