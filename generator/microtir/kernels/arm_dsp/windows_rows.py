"""Rows of an image as a convolution's windows are read: widened to 16 bits, between borders."""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe, repeated
from microtir.kernels.common.statements import load, loop, store
from microtir.schedule import KernelDescription
from microtir.tir import ir

PIXELS = 4  # of a tile
PAIR = 2  # channels of a tile, and values of a word
WORD = PAIR * DType.INT16.bytes
_STRAIGHT = 32  # steps without a loop
_QUAD = 4  # values of a word of the image
_WIDENED, _WIDENINGS = 8, 2  # values that are widened together, and how often in a turn
_MOVED, _MOVES = 8, 4  # words that are moved together, and how often in a turn


@dataclass(frozen=True, slots=True)
class WidenedRows:
    """Rows of a convolution's windows as they lie in scratch: `taps` rows of `pitch` values.

    Neighbouring pixels begin `step` values apart and need `length` of each row.  Where `step` is
    odd, every other pixel would begin inside a word: a second copy of each row, behind it, begins
    with its second value.
    """

    taps: int
    length: int
    step: int
    width: int  # pixels

    @property
    def copies(self) -> int:
        return 1 + self.step % 2

    @property
    def words(self) -> int:
        """Return the words of a pixel in a row; the last one may reach a value beyond."""
        return -(-self.length // PAIR)

    @property
    def steps(self) -> int:
        """Return words of a window."""
        return self.taps * self.words

    @property
    def pitch(self) -> int:
        """Return values of a row: whole words."""
        return -(-((self.width - 1) * self.step + self.words * PAIR) // PAIR) * PAIR

    @property
    def distance(self) -> int:
        return self.copies * self.pitch

    @property
    def elements(self) -> int:
        return self.taps * self.distance

    @property
    def step_words(self) -> int:
        """Return the words between two windows that begin at a word of the same copy."""
        return self.step * self.copies // PAIR

    @property
    def turns(self) -> int:
        """Return the turns of the loop over words of a tap, which long sums have, else 0.

        Windows must move by whole taps then, and fill tiles.
        """
        is_whole = self.copies == 1 and self.words % max(self.step_words, 1) == 0
        fits = is_whole and self.width % PIXELS == 0
        return self.step_words if fits and not self.is_short else 0

    @property
    def is_short(self) -> bool:
        """Return whether a sum needs no loop."""
        return self.steps <= _STRAIGHT

    def order(self) -> list[int]:
        """Return the steps as their weights follow each other.

        The loop takes its weights from the last to the first: what it has read may then be below
        the stack pointer, and nothing that it will read is.
        """
        taps = range(0, self.steps, self.step_words if self.turns else self.steps)
        size = self.step_words if self.turns else self.steps
        runs = (range(first, first + size) for first in taps)
        return [n for run in runs for n in (reversed(run) if self.turns else run)]

    def weights(self, ky: te.Expr, word: te.Expr) -> te.Expr:
        """Return where the weights of a word of a row lie, as `order` says."""
        if not self.turns:
            return ky * self.words + word
        first = ky * self.words + word // self.step_words * self.step_words
        return first + (self.step_words - 1) - word % self.step_words

    @property
    def odd(self) -> int:
        """Return values from an even pixel to the odd one beside it."""
        return self.step if self.copies == 1 else self.pitch + self.step - 1

    def place(self, pixel: te.Expr) -> te.Expr:
        """Return where the window of a pixel begins, seen from an even one."""
        if self.copies == 1:
            return pixel * self.step
        return pixel // 2 * (2 * self.step) + pixel % 2 * self.odd

    def reach(self, pixels: int) -> int:
        """Return values from the window of an even pixel to the end of those of so many pixels."""
        beside = (pixels - 1) // 2 * 2 * self.step + (pixels > 1) * self.odd
        if self.copies == 1:
            beside = (pixels - 1) * self.step
        return (self.taps - 1) * self.distance + beside + self.words * PAIR

    @property
    def name(self) -> str:
        return f"{self.taps}x{self.length}by{self.step}in{self.pitch}"


@made_once
def widen_row(values: int, *, at_words: bool) -> KernelDescription:
    """Widen part of a row.

    Args:
        values: of the row.
        at_words: whether the target begins at a word.

    Returns:
        Parameters: values int8; the same as int16.
    """
    x = ir.Buffer("x", (values,), DType.INT8)
    row = ir.Buffer("row", (values,), DType.INT16, alignment=4 if at_words else 2)
    turns, rest = divmod(values, _WIDENED)
    return describe(
        f"widen_row_{values}" + ("" if at_words else "_between_words"),
        (f"Widens {values} values to 16 bits",),
        (x, row),
        (row,),
        loop("i", 0, values, lambda i: store(row, (i,), te.cast(DType.INT16, load(x, i)))),
        "kernels/widen_row.j2",
        {
            **repeated(turns, _WIDENINGS),
            "loop_bytes": str(turns * _WIDENED),
            "at_words": at_words,
            "quad": rest >= _QUAD,
            "values": str(rest % _QUAD) if rest % _QUAD else "",
        },
        stack_bytes=36,
    )


@made_once
def keep_rows(rows: WidenedRows, stride: int) -> KernelDescription:
    """Move the rows that the next output row needs, too, to where it finds them.

    Args:
        rows: of a window.
        stride: rows from a window to the next, fewer than it has.

    Returns:
        Parameter: the rows.
    """
    distance = stride * rows.distance
    moved = rows.taps * rows.distance - distance
    x = ir.Buffer("rows", (moved + distance,), DType.INT16, alignment=4)
    turns, rest = divmod(moved // PAIR, _MOVED)
    return describe(
        f"keep_rows_{rows.name}_{stride}",
        (f"Moves {moved} values {distance} to the front",),
        (x,),
        (x,),
        loop("i", 0, moved, lambda i: store(x, (i,), load(x, i + distance))),
        "kernels/keep_rows.j2",
        {
            **repeated(turns, _MOVES),
            "distance": str(distance * DType.INT16.bytes),
            "loop_bytes": str(turns * _MOVED * WORD),
            "words": str(rest) if rest else "",
        },
        stack_bytes=32,
    )
