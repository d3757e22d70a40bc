"""Finishing steps that turn a channel's sum into an int16, for kernels with special instructions.

Sums are of 32 bits where no input can make more of them (`SHORT` with a bias of int32, which
tflite-micro rescales as it does int8, else `LONG`), or of 64 bits (`WIDE`).  A channel is four
words: those that its sum begins with, which are two where it is wide, and those that rescale it.
Sums of 32 bits that become floats (`FLOAT`) are multiplied by one, by its bits, and rounded to the
nearest integer, of two the even one, to which the zero point is added.

A wide sum is multiplied by a word whose product, without its lower 32 bits, is a word again: as few
bits of the multiplier are dropped into the shift as the largest sum of the channel asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import made_once, packing, requantise, runs, weights
from microtir.kernels.common.long_requantise import LongRescaling, long_constants
from microtir.operators.common.fixed_point import INT32_MAX
from microtir.operators.common.linear import LinearParams, bias_of, has_long_sums, params_of
from microtir.operators.common.multiplier import QuantizedMultiplier, reduced
from microtir.rewrite.facts.sums import fits

_MAGNITUDE = -DType.INT16.min  # of an input
_LARGEST = 1 << 30  # what the upper word of a product stays below
_MULTIPLIER_BITS = 15
_LOW = (1 << 32) - 1


class Sums(Enum):
    """The width of sums in bits, and their rescaling; `RAW` sums are outputs themselves."""

    SHORT = "short"
    LONG = "long"
    WIDE = "wide"
    FLOAT = "float"
    RAW = "sums"


Word = Callable[[int], te.Expr]
"""A word of a channel."""


@dataclass(frozen=True, slots=True)
class Finish16:
    """The sequence that all channels of a layer use; part of the identity of a kernel.

    Short sums may need a correction of negative ties.  Results are clamped to [low, high].
    """

    sums: Sums
    low: int
    high: int
    corrects_ties: bool = False

    @property
    def is_wide(self) -> bool:
        return self.sums is Sums.WIDE

    @property
    def is_raw(self) -> bool:
        return self.sums is Sums.RAW

    @property
    def output_dtype(self) -> DType:
        return DType.INT32 if self.is_raw else DType.INT16

    @property
    def starts(self) -> int:
        """Return the words that a sum begins with: the first ones of a channel."""
        return 1 + self.is_wide

    @property
    def dtype(self) -> DType:
        """Return the type of the sums."""
        return DType.INT64 if self.is_wide else DType.INT32

    @property
    def name(self) -> str:
        is_free = (self.low, self.high) == (DType.INT16.min, DType.INT16.max)
        clamp = "" if is_free else f"_{self.low}_{self.high}".replace("-", "m")
        return f"{self.sums.value}{'_ties' * self.corrects_ties}{clamp}"

    @property
    def instructions(self) -> int:
        """Return the instructions of an output, loads of its words and its store included."""
        clamps = 5 * ((self.low > DType.INT16.min) + (self.high < DType.INT16.max))
        short = 5 + 2 * self.corrects_ties
        some = {Sums.SHORT: short, Sums.LONG: 4, Sums.WIDE: 8, Sums.FLOAT: 10, Sums.RAW: 0}
        return some[self.sums] + clamps

    def place(self, channel: te.Expr, number: int, at_once: int) -> te.Expr:
        """Return where a word of a channel lies among those of a turn, as `pack_words` has them."""
        starts, rest = self.starts, requantise.WORDS - self.starts
        if number < starts:
            return channel * starts + number
        return channel * rest + (number - starts + at_once * starts)

    def start(self, word: Word) -> te.Expr:
        if self.is_raw:
            return te.as_expr(0, DType.INT32)
        if not self.is_wide:
            return word(0)
        low, high = (te.cast(DType.INT64, word(n)) for n in range(2))
        return high * (1 << 32) + (low & _LOW)

    def output(self, total: te.Expr, word: Word) -> te.Expr:
        if self.is_raw:
            return total
        if self.sums is Sums.LONG:
            return LongRescaling(self.low, self.high).apply(total, word(1), word(2), word(3))
        if self.sums is Sums.FLOAT:
            rescale = self._float
        else:
            rescale = self._wide if self.is_wide else self._short
        return te.cast(DType.INT16, te.clamp(rescale(total, word), self.low, self.high))

    def _wide(self, total: te.Expr, word: Word) -> te.Expr:
        multiplier = te.cast(DType.INT64, word(2))
        upper = (total >> 32) * multiplier + (((total & _LOW) * multiplier) >> 32)
        return ((te.cast(DType.INT32, upper) >> word(3)) + 1) >> 1

    def _float(self, total: te.Expr, word: Word) -> te.Expr:
        real = te.no_fp_contract(te.cast(DType.FLOAT32, total) * te.float_of_bits(word(1)))
        return te.cast(DType.INT32, te.round_half_to_even(real)) + word(2)

    def _short(self, total: te.Expr, word: Word) -> te.Expr:
        product = te.cast(DType.INT64, total * 2) * te.cast(DType.INT64, word(1))
        high = te.cast(DType.INT32, (product + (1 << 31)) >> 32)
        if self.corrects_ties:
            high = high + (high >> 31)
        return (high + word(2)) >> word(3)

    def values(self) -> Mapping[str, object]:
        limits = (("lt", self.low, DType.INT16.min), ("gt", self.high, DType.INT16.max))
        return {
            "short": self.sums is Sums.SHORT,
            "wide": self.is_wide,
            "in_float": self.sums is Sums.FLOAT,
            "corrects_ties": self.corrects_ties,
            "saturates": self.low == DType.INT16.min or self.high == DType.INT16.max,
            "clamps": [
                {
                    "condition": condition,
                    "value": str(value & 0xFFFF),
                    "negative": value < 0,
                    "is_low": condition == "lt",
                }
                for condition, value, free in limits
                if value != free
            ],
        }


Found16: TypeAlias = tuple[Finish16, npt.NDArray[np.int32]]
"""A finish, and the words of the channels, (channels, 4)."""


def pack_words(pair: Found16, at_once: int) -> npt.NDArray[np.int32]:
    """Return the words of channels turn by turn: what sums begin with, then the rest."""
    finish, words = pair
    starts, rows = finish.starts, []
    for first in runs.turns_of(len(words), at_once):
        taken = words[first : first + at_once]
        rows.append(np.concatenate([taken[:, :starts].ravel(), taken[:, starts:].ravel()]))
    return np.array(rows)


@made_once.of_node
def finish16(node: Node, *, wide: bool = False) -> Found16 | None:
    """Return the finish of a layer in int16 and the words of its channels, (channels, 4).

    Args:
        node: with a bias as third input, or without.
        wide: take sums of 64 bits, of a layer that tflite-micro computes with them.

    Returns:
        None if a channel does not fit, or sums are not proven to.
    """
    params = params_of(node)
    low, high = params.activation_min, params.activation_max
    if params.in_double or (wide and params.factors):
        return None
    if wide:
        return _wide(node, params) if has_long_sums(node) else None
    if not fits(node):
        return None
    if params.factors:
        return _in_float(node, params)
    if has_long_sums(node):
        words = long_constants(params, bias_of(node))
        return None if words is None else (Finish16(Sums.LONG, low, high), words)
    factors = packing.requantised(node)
    if factors is None:
        return None
    words = factors.constants.copy()
    words[:, requantise.BIAS] //= 2
    return Finish16(Sums.SHORT, low, high, factors.rescaling.corrects_ties), words


def _in_float(node: Node, params: LinearParams) -> Found16 | None:
    """Return the finish that multiplies by floats; None if results might leave int32."""
    wide = weights.matrix_of(node).astype(np.int64)
    bias = weights.folded_bias(wide, node)
    factors = np.array(params.factors * (len(bias) // len(params.factors)), np.float32)
    largest = weights.largest_sums(wide, _MAGNITUDE) + np.abs(bias)
    if largest.max(initial=0) > INT32_MAX or (largest * factors).max(initial=0) >= _LARGEST:
        return None
    words = np.zeros((len(bias), requantise.WORDS), np.int32)
    words[:, 0], words[:, 1], words[:, 2] = bias, factors.view(np.int32), params.output_zero_point
    return Finish16(Sums.FLOAT, params.activation_min, params.activation_max), words


def _wide(node: Node, params: LinearParams) -> Found16 | None:
    bias: requantise.Ints = bias_of(node)
    factors = params.multipliers * (len(bias) // len(params.multipliers))
    largest = weights.largest_sums(weights.matrix_of(node), _MAGNITUDE) + np.abs(bias)
    channels = zip(factors, bias, largest, strict=True)
    rows = [wide_words(factor, int(start), int(most)) for factor, start, most in channels]
    present = [row for row in rows if row is not None]
    if len(present) < len(rows):
        return None
    words = np.array(present, np.int64).reshape(-1, requantise.WORDS).astype(np.int32)
    return Finish16(Sums.WIDE, params.activation_min, params.activation_max), words


def wide_words(
    factor: QuantizedMultiplier, bias: int, largest: int
) -> tuple[int, int, int, int] | None:
    """Return the words of a wide channel whose sums have at most a magnitude; None: none fit."""
    multiplier, shift = reduced(factor)
    start = (bias & _LOW, bias >> 32)
    if multiplier == 0:
        return *start, 0, 0
    for bits in range(_MULTIPLIER_BITS + 1, -1, -1):
        by = bits - 3 - shift - _MULTIPLIER_BITS  # one less: the last bit is rounded
        if by >= 0 and (largest * multiplier) >> (32 - bits) < _LARGEST:
            return *start, multiplier << bits, by
    return None
