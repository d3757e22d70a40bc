"""Words that depthwise 3x3 over planes reads for a channel, in the order of their loads.

Weights are doubled, so that sums of products are doubled accumulators, and the first product of a
sum is added to twice the bias: rescaling begins with its multiplication.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.requantise import BIAS, MULTIPLIER, ROUNDING, SHIFT, Rescaling
from microtir.kernels.common.statements import load
from microtir.tir import ir

_SHIFT_MASK = 0xFF  # ASR by a register reads only the lowest byte


@dataclass(frozen=True, slots=True)
class Place:
    """A weight of a kernel row: in which word it stands, and which 16 bits of it, 0 the lower."""

    tap: int
    word: int
    half: int


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel row: where its weights stand, and the words that its products take.

    The word `pair` meets two columns at once, a half of `other` a single one.  Where the row before
    has brought `other` along, it is not loaded again.
    """

    places: tuple[Place, ...]
    pair: int
    other: int
    half: int = 0
    loads_other: bool = True


@dataclass(frozen=True, slots=True)
class Words:
    """The positions of weights and constants in a channel's words; the first is twice the bias.

    The lowest byte of the word `shift` is the shift; the rounding constant follows the multiplier.
    """

    rows: tuple[Row, ...]
    multiplier: int
    shift: int
    count: int

    @property
    def bytes(self) -> int:
        return self.count * DType.INT32.bytes

    @property
    def last_has_shift(self) -> bool:
        """Return whether a word of the last row has the shift."""
        return self.rows[-1].other == self.shift

    def weight(self, words: ir.Buffer, channel: te.Expr, row: int, tap: int) -> te.Expr:
        """Return twice a weight."""
        place = next(place for place in self.rows[row].places if place.tap == tap)
        word = load(words, channel, place.word)
        return word >> 16 if place.half else (word & 0xFFFF ^ 0x8000) - 0x8000

    def rescale(
        self, rescaling: Rescaling, total: te.Expr, words: ir.Buffer, channel: te.Expr
    ) -> te.Expr:
        """Return the stored value of a sum that began with the first word."""
        multiplier, rounding, shift = (
            load(words, channel, n) for n in (self.multiplier, self.multiplier + 1, self.shift)
        )
        return rescaling.rescale(total, multiplier, rounding, shift & _SHIFT_MASK)

    def pack(
        self, weights: npt.NDArray[np.int8], constants: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Arrange the constants of a layer.

        Args:
            weights: (3, 3, channels).
            constants: words of each channel as requantisation makes them, (channels, 4).

        Returns:
            (channels, count).
        """
        halves = np.zeros((len(constants), self.count, 2), np.int64)
        for row, taps in zip(self.rows, 2 * weights.astype(np.int64), strict=True):
            for place in row.places:
                halves[:, place.word, place.half] = taps[place.tap]
        words = halves[:, :, 1] * (1 << 16) + (halves[:, :, 0] & 0xFFFF)
        words[:, 0] = constants[:, BIAS]
        words[:, self.multiplier] = constants[:, MULTIPLIER]
        words[:, self.multiplier + 1] = constants[:, ROUNDING]
        words[:, self.shift] += constants[:, SHIFT]
        return words.astype(np.int32)


def _neighbours(pair: int) -> Row:
    """Return weights 0 and 1, then 1 and 2."""
    other = pair + 1
    places = (Place(0, pair, 0), Place(1, pair, 1), Place(1, other, 0), Place(2, other, 1))
    return Row(places, pair, other)


def _pairs(left: int, right: int, single: int) -> Words:
    """Pack two weights of each row into a word; the last word of the third ones has the shift."""

    def row(pair: int, other: int, half: int, *, loads_other: bool = True) -> Row:
        places = (Place(left, pair, 0), Place(right, pair, 1), Place(single, other, half))
        return Row(places, pair, other, half, loads_other)

    rows = (row(1, 2, 0), row(3, 2, 1, loads_other=False), row(4, 5, 1))
    return Words(rows, multiplier=6, shift=5, count=8)


# Of neighbouring outputs every other one begins in the middle of a word of two columns.
NEIGHBOURS = Words(tuple(_neighbours(pair) for pair in (1, 3, 5)), multiplier=7, shift=9, count=10)
ADJACENT = _pairs(0, 1, 2)  # every output begins at a word of two columns
SPREAD = _pairs(0, 2, 1)  # words hold every other column, as SXTB16 makes them
