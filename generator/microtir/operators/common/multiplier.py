"""Quantise real factors to integer multipliers, and the ranges that activations clamp to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from microtir.graph.ir import TensorType
from microtir.operators.common import attributes, fixed_point
from microtir.operators.common.problem import Problem


class QuantizedMultiplier(NamedTuple):
    """A real factor as multiplier * 2^(shift - 31).

    `multiplier` is 0 or has a magnitude in [2^30, 2^31).
    """

    multiplier: int
    shift: int


@lru_cache(maxsize=1 << 14)  # every stage asks again
def quantize_multiplier(real: float) -> QuantizedMultiplier:
    """Return the 31-bit mantissa and the exponent nearest to `real`.

    Magnitudes below 2^-32 become 0: the right shift that they ask for leaves no bit of an int32.
    """
    fraction, shift = math.frexp(real)
    multiplier = fixed_point.round_half_away(fraction * (1 << 31))
    if abs(multiplier) == 1 << 31:
        multiplier //= 2
        shift += 1
    if multiplier == 0 or shift < -31:
        return QuantizedMultiplier(0, 0)
    return QuantizedMultiplier(multiplier, shift)


def quantized_ratio(
    numerator: float, denominator: float, *, in_float32: bool = False
) -> QuantizedMultiplier:
    """Return the ratio of two scales as a multiplier.

    Args:
        numerator: a scale, or the product of one with a factor.
        denominator: the other scale.
        in_float32: whether the ratio is rounded to float32 first, as some of LiteRT's kernels do.
    """
    ratio = numerator / denominator
    return quantize_multiplier(float(np.float32(ratio)) if in_float32 else ratio)


MAX_REDUCED_SHIFT = 7
_REDUCED_MAX = (1 << 15) - 1


def reduced(factor: QuantizedMultiplier) -> QuantizedMultiplier:
    """Return a factor with a multiplier of 15 bits: multiplier * 2^(shift - 15).

    That is what sums of 64 bits are multiplied by: with 48 bits of them the product fits an int64.
    """
    return QuantizedMultiplier(
        min((factor.multiplier + (1 << 15)) >> 16, _REDUCED_MAX), factor.shift
    )


def quantize_value(real: float, scale: float, zero_point: int) -> int:
    """Return the stored value of a float32 `real`, not clamped; the quotient is a float32.

    Rounding the double quotient again gives that: a double has more than twice the bits.  One that
    leaves float32 is as large as any stored value.
    """
    limit = float(np.finfo(np.float32).max)
    quotient = min(max(real / scale, -limit), limit)
    return zero_point + fixed_point.round_half_away(float(np.float32(quotient)))


def activation_range(activation: attributes.Activation, output: TensorType) -> tuple[int, int]:
    """Return the inclusive clamp, in stored values, of an output with a fused activation."""
    low, high = activation.real_range
    scale, zero_point = output.quant.scale, output.quant.zero_point
    minimum, maximum = output.dtype.min, output.dtype.max
    if math.isfinite(low):
        minimum = max(minimum, quantize_value(low, scale, zero_point))
    if math.isfinite(high):
        maximum = min(maximum, quantize_value(high, scale, zero_point))
    return minimum, maximum


# Rules, analyses and kernels ask one after the other about the same layer.
@lru_cache(maxsize=16)
def per_channel_multipliers(
    input_type: TensorType, weights: TensorType, output: TensorType
) -> tuple[QuantizedMultiplier, ...]:
    """Return one multiplier per scale of the weights, all computed in double."""
    factor = input_type.quant.scale
    divisor = output.quant.scale
    return tuple(quantize_multiplier(factor * s / divisor) for s in weights.quant.scales)


def input_radius(integer_bits: int, left_shift: int) -> int:
    """Return the largest magnitude that scaling leaves below 2^integer_bits - 1, rounded down."""
    largest = ((1 << integer_bits) - 1) << (31 - integer_bits)
    return largest >> left_shift if left_shift >= 0 else largest << -left_shift


MAX_SHIFT = 30

MAX_INT16_SHIFT = 15
"""Largest left shift with which centred values of int16 fit an int32."""


def check_shift(multiplier: QuantizedMultiplier, limit: int = MAX_SHIFT) -> Iterator[Problem]:
    """Find a factor of 2^limit or more."""
    if multiplier.shift > limit:
        yield Problem(
            f"the ratio of its scales is 2^{multiplier.shift - 1} or more", f"below 2^{limit}"
        )
