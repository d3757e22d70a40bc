"""Find again the integers that a file stores, in the floats that DequantizeLinear makes of them.

A constant that is dequantised is a float from there on, and remembers its scales in its type.  Its
integers are multiples of these, so that they follow from the floats: whatever has been done to the
order of the floats since is done to them.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Quantization, Tensor, TensorType
from microtir.graph.rewriting import constant

_INT32_LIMIT = 1 << 31
_ROUNDINGS = 2.0**-20  # a part that a few roundings to float32 stay below
_LARGEST_BIAS = 1 << 22  # a float32 has room for its integer and for what its scale rounds off
_LARGEST_ROUNDED_BIAS = 1 << 25
_LOST = 2.0**-22  # the part of a larger integer that may be lost
_ROUNDED = 2.0**-16  # of a step: what a float32 of 8 bits before the point rounds off
_LOST_OF_INT16 = 2.0**-5  # of a step of int16


def stored_weights(weights: Tensor) -> Tensor | None:
    """Return the int8 weights that a constant remembers.

    None if they are no such multiples, or have scales of another axis than that of the outputs,
    the first.
    """
    quant, data = weights.type.quantization, weights.data
    if quant is None or data is None or any(quant.zero_points):
        return None
    scales = np.array(quant.scales, np.float32)
    if quant.axis is not None:
        if quant.axis != 0 or len(scales) != weights.shape[0]:
            return None
        scales = scales.reshape(-1, *(1,) * (data.ndim - 1))
    values = np.rint(data / scales)
    is_exact = np.array_equal(values.astype(np.float32) * scales, data)
    low, high = DType.INT8.min, DType.INT8.max
    if not is_exact or values.min(initial=0) < low or values.max(initial=0) > high:
        return None
    return constant(weights.name, TensorType(weights.shape, DType.INT8, quant), values)


def stored_bias(bias: Tensor, data: Tensor, weights: Tensor, output: TensorType) -> Tensor | None:
    """Return a bias as int32 with the product of the scales; None if it is no multiple of that.

    That of a layer whose outputs are int16 has 64 bits.

    A larger bias than a float32 holds is legal where it makes one result of all sums, whichever
    integers it may have been: so do channels that nothing reaches, whose scales are tiny.  It is
    legal, too, where these integers are few, and closer than what a float32 result is rounded by.
    """
    if bias.data is None:
        return None
    if output.dtype is DType.INT16:
        return _long_bias(bias, data, weights, output)
    factors = np.float32(data.type.quant.scale) * np.array(weights.type.quant.scales, np.float32)
    values = np.rint(bias.data.reshape(-1) / factors)
    is_large = np.abs(values) > _LARGEST_BIAS
    lost = np.abs(values) * _LOST * (factors / np.float32(output.quant.scale))
    is_undecided = is_large & ((lost > _ROUNDED) | (np.abs(values) > _LARGEST_ROUNDED_BIAS))
    if is_undecided.any() and not _is_constant(values, weights, data, output)[is_undecided].all():
        return None
    if not np.array_equal(values.astype(np.float32) * factors, bias.data.reshape(-1)):
        return None
    quant = Quantization(tuple(factors.tolist()), (0,) * len(factors))
    if len(factors) > 1:
        quant = replace(quant, axis=0)
    return constant(bias.name, TensorType(values.shape, DType.INT32, quant), values)


def rounded_bias(bias: Tensor, data: Tensor, weights: Tensor, output: TensorType) -> Tensor | None:
    """Return the bias of PT2E, which is a float, as the integers next to it at the sums' scale.

    Of two nearest integers it is the even one.  None if one is larger than its type.
    """
    if bias.data is None:
        return None
    dtype = DType.INT64 if output.dtype is DType.INT16 else DType.INT32
    scales = np.array(weights.type.quant.scales, np.float32).astype(np.float64)
    steps = float(np.float32(data.type.quant.scale)) * scales  # exact, as both have 24 bits
    real = np.array(bias.data.reshape(-1), np.float64)
    pairs = zip(real.tolist(), np.broadcast_to(steps, real.shape).tolist(), strict=True)
    values = [round(Fraction(value) / Fraction(step)) for value, step in pairs]
    if any(not dtype.min <= value <= dtype.max for value in values):
        return None
    if dtype is DType.INT64:
        return constant(bias.name, TensorType((len(values),), dtype), np.array(values))
    quant = Quantization(
        tuple(steps.tolist()), (0,) * len(steps), axis=0 if len(steps) > 1 else None
    )
    return constant(bias.name, TensorType((len(values),), dtype, quant), np.array(values))


def _long_bias(bias: Tensor, data: Tensor, weights: Tensor, output: TensorType) -> Tensor | None:
    """Return a bias for outputs of int16 as int64; None if it is no multiple of the scales.

    Steps of int16 are so small that a bias has more bits than a float32: its integer is one of
    some that became the same float, a small part of a step from each other.
    """
    real = bias.values.reshape(-1).astype(np.float64)
    scales = np.array(weights.type.quant.scales, np.float32)
    factors = np.float32(data.type.quant.scale) * scales
    values = np.rint(real / factors)
    errors = np.abs(values * factors.astype(np.float64) - real)
    lost = np.abs(real) * _LOST
    if (errors > lost).any() or (lost > _LOST_OF_INT16 * output.quant.scale).any():
        return None
    return constant(bias.name, TensorType(values.shape, DType.INT64), values)


def _is_constant(
    bias: npt.NDArray[np.float32], weights: Tensor, data: Tensor, output: TensorType
) -> npt.NDArray[np.bool_]:
    """Return which channels have one result, for all inputs and for all roundings on the way."""
    stored = weights.values.astype(np.float64).reshape(len(weights.values), -1)
    centre = np.abs(bias.astype(np.float64))
    reach = 2 * DType.UINT8.max * np.abs(stored).sum(axis=1) + centre * _ROUNDINGS
    if (centre + reach).max() >= _INT32_LIMIT:
        return np.zeros(len(bias), bool)
    factors = np.array(weights.type.quant.scales) * data.type.quant.scale / output.quant.scale
    low, high = (
        np.clip(
            np.rint((bias + sign * reach) * factors * (1 + sign * side * _ROUNDINGS)),
            output.dtype.min - output.quant.zero_point,
            output.dtype.max - output.quant.zero_point,
        )
        for sign, side in ((-1, np.sign(bias)), (1, np.sign(bias)))
    )
    return np.asarray(low == high)
