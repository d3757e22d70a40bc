"""Requantisation of four lanes, with TFLite's result for every accumulator.

VQRDMULH is TFLite's first rounding, ties up.  VRSHL by a negative count is the second, but rounds
ties up where TFLite rounds them away from zero: negative numbers are first lessened by 1 where the
count is not 0, as the sign of `high & -exponent` says, or of `high` if no count is 0.  Where the
clamp begins at the zero point (any fused ReLU) that is left out: a negative number gives the zero
point with or without it.

The zero point is added after narrowing to 16 bits, saturating: whatever saturates there is beyond
the range of the output on the same side.

Where ONNX rescales in float32, so do vectors of floats: VCVT, VMUL, and VCVTN, which rounds to the
nearest integer, of two the even one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.finish_s16 import Finish16, Sums
from microtir.operators.common.linear import LinearParams

Ints = npt.NDArray[np.int64]

LANES = 4  # int32 values of a vector
WORDS = 3
BIAS, MULTIPLIER, SHIFT = range(WORDS)  # the shift is to the left: never positive
WIDE_WORDS = WORDS + 1  # and the upper part of the bias, multiplied
_INT32_LIMIT = 1 << 31
_LEAST_SHIFT = -31
_LEAST_BITS, _MOST_BITS = 16, 30  # of the lower part of a wide sum
_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Rescaling:
    """Numbers of requantisation that all channels of a layer share; part of a kernel's identity.

    Results are clamped to [low, high], which is within int8.  Where it is `in_float`, the
    multiplier is a float32, by its bits, and there is no shift.  Where it `always_divides`, no
    shift of a channel is 0.
    """

    zero_point: int
    low: int
    high: int
    in_float: bool = False
    always_divides: bool = False

    element = stored = DType.INT8
    shifts_left = adds = False
    words = WORDS
    is_wide = False
    bits = 0

    @staticmethod
    def of(params: LinearParams) -> Rescaling:
        limits = params.output_zero_point, params.activation_min, params.activation_max
        divides = not params.factors and all(pair.shift < 0 for pair in params.multipliers)
        return Rescaling(*limits, in_float=bool(params.factors), always_divides=divides)

    @property
    def corrects_ties(self) -> bool:
        return self.low < self.zero_point and not self.in_float

    @property
    def name(self) -> str:
        numbers = "_".join(_signed(n) for n in (self.zero_point, self.low, self.high))
        whole = "_whole" if self.corrects_ties and not self.always_divides else ""
        return f"float_{numbers}" if self.in_float else f"{numbers}{whole}"

    def values(self) -> Mapping[str, str | bool]:
        return {
            "in_float": self.in_float,
            "corrects_ties": self.corrects_ties,
            "always_divides": self.always_divides,
            "zero_point": str(self.zero_point),
            "low": "" if self.low == DType.INT8.min else str(self.low),
            "high": "" if self.high == DType.INT8.max else str(self.high),
        }

    def apply(self, total: te.Expr, factors: Sequence[te.Expr]) -> te.Expr:
        """Return the stored value of an accumulator, bias included."""
        multiplier, shift = factors
        if self.in_float:
            real = te.no_fp_contract(te.cast(DType.FLOAT32, total) * te.float_of_bits(multiplier))
            low, most = (float(end - self.zero_point) for end in (self.low, self.high))
            whole = te.cast(DType.INT32, te.round_small(te.clamp(real, low, most)))
            return te.cast(DType.INT8, whole + self.zero_point)
        high = te.saturating_rounding_doubling_high_mul(total, multiplier)
        scaled = te.rounding_divide_by_pot(high, -shift)
        return te.cast(DType.INT8, te.clamp(scaled + self.zero_point, self.low, self.high))


@dataclass(frozen=True, slots=True)
class Rescaling16:
    """The same of int16, by the sequences of `finish_s16`.

    A long sum takes VMULH, which drops nothing that rounding needs, and VRSHL, which rounds ties
    up, as tflite-micro does there.

    A wide sum is upper * 2^k + lower, k so large that 2^k * multiplier has no lower word.  So the
    upper word of the product is that of lower * multiplier, and upper times a few bits of the
    multiplier, without a carry between them.  Lower parts are added as sums of 32 bits are; the
    upper one is that of the bias alone, a constant, unless products may leave 32 bits: then
    `bits` is k, and what lies above it moves to the upper part before that can happen.

    Values may be int8 (`element`).  One word more shifts short sums to the left first where
    `shifts_left`.  Results are added to what the outputs are before, saturating, where `adds`.
    """

    finish: Finish16
    bits: int = 0
    element: DType = DType.INT16
    shifts_left: bool = False
    adds: bool = False

    stored = DType.INT16

    @property
    def words(self) -> int:
        return WIDE_WORDS if self.is_wide or self.shifts_left else WORDS

    @property
    def is_wide(self) -> bool:
        return self.finish.is_wide

    @property
    def name(self) -> str:
        form = f"s16_{self.finish.name}" + (f"_{self.bits}_bits" if self.bits else "")
        if self.element is DType.INT8:
            form = f"{form}_of_s8"
        return f"{form}{'_left' * self.shifts_left}{'_add' * self.adds}"

    @property
    def corrects_ties(self) -> bool:
        return self.finish.corrects_ties

    def values(self) -> Mapping[str, object]:
        return {
            "in_float": False,
            "always_divides": False,
            "is_long": self.finish.sums is not Sums.SHORT,
            "bits": str(self.bits) if self.bits else "",
            "upper_bits": str(_WORD_BITS - self.bits),
            **self.finish.values(),
        }

    def apply(self, total: te.Expr, factors: Sequence[te.Expr]) -> te.Expr:
        """Return the stored value of an accumulator, with the bias or its lower part."""
        multiplier, shift, *upper = factors
        if self.shifts_left:
            total = total << upper[0]
        if self.finish.sums is not Sums.SHORT:
            product = te.cast(DType.INT64, total) * te.cast(DType.INT64, multiplier)
            high = te.cast(DType.INT32, product >> _WORD_BITS)
            for constant in upper:
                high = high + constant
            scaled = ((high >> (-1 - shift)) + 1) >> 1
        else:
            high = te.saturating_rounding_doubling_high_mul(total, multiplier)
            scaled = te.rounding_divide_by_pot(high, -shift)
        clamped = te.clamp(scaled, self.finish.low, self.finish.high)
        return te.cast(DType.INT16, clamped)


Form: TypeAlias = Rescaling | Rescaling16
"""Rescaling of the sums of a layer, to int8 or to int16."""


def constants16(words: npt.NDArray[np.int32]) -> Ints:
    """Return bias, multiplier and shift of channels, given the words of long sums."""
    wide = words.astype(np.int64)
    constants: Ints = np.stack([wide[:, 0], wide[:, 1], -wide[:, 3]], axis=1)
    return constants


def wide_constants(words: npt.NDArray[np.int32], largest: int) -> tuple[Ints | None, int]:
    """Return the constants of channels, given the words of wide sums, and `Rescaling16.bits`.

    Args:
        words: of the channels, as `finish16` has them.
        largest: magnitude of a sum of products, without the bias.

    Returns:
        Lower part of the bias, multiplier, shift, and the upper part, multiplied; None if lower
        parts have too many bits.
    """
    low, high, multiplier, by = words.astype(np.int64).T
    zeros = [(n & -n).bit_length() - 1 for n in map(int, multiplier) if n]
    bits = max((_WORD_BITS - n for n in zeros), default=_LEAST_BITS)
    bits = max(bits, _LEAST_BITS)
    if bits > _MOST_BITS:
        return None, 0
    bias = (high << _WORD_BITS) + (low & ((1 << _WORD_BITS) - 1))
    upper = (bias >> bits) * (multiplier >> (_WORD_BITS - bits))
    lower = bias & ((1 << bits) - 1)
    constants: Ints = np.stack([lower, multiplier, -1 - by, upper], axis=1)
    return constants, 0 if largest + (1 << bits) < _INT32_LIMIT else bits


def _signed(number: int) -> str:
    return str(number) if number >= 0 else f"m{-number}"


def constants_of(params: LinearParams, bias: Ints, magnitude: Ints) -> Ints | None:
    """Return bias, multiplier and shift of the channels, (channels, 3); None if one does not fit.

    Args:
        params: of the layer.
        bias: per output channel, with the input's zero point folded.
        magnitude: largest magnitude of the sum of products per channel, without the bias.
    """
    multipliers, shifts = params.multiplier_arrays(len(bias))
    if (np.abs(bias) + magnitude).max() >= _INT32_LIMIT or params.in_double:
        return None
    if params.factors:
        factors = np.array(params.factors * (len(bias) // len(params.factors)), np.float32)
        multipliers, shifts = factors.view(np.int32).astype(np.int64), np.zeros_like(bias)
    if shifts.min() < _LEAST_SHIFT or shifts.max() > 0:
        return None
    return np.stack([bias, multipliers, shifts], axis=1)


def by_lanes(constants: Ints) -> npt.NDArray[np.int32]:
    """Arrange constants (channels, words) as (groups, words, 4), zeros for missing channels."""
    (channels, words), groups = constants.shape, -(-len(constants) // LANES)
    padded = np.zeros((groups * LANES, words), np.int32)
    padded[:channels] = constants
    by_group: npt.NDArray[np.int32] = padded.reshape(groups, LANES, words).transpose(0, 2, 1)
    return by_group
