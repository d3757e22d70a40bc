"""Compute LOGISTIC and TANH of int16 by the table of `sigmoid_table`, as tensor expressions."""

from __future__ import annotations

from typing import Protocol

from microtir import te
from microtir.operators.common.arithmetic import wide
from microtir.operators.common.sigmoid_table import (
    LAST_STEP,
    LINES,
    LOGISTIC_STEP_BITS,
    SATURATED_LOGISTIC,
    SATURATED_TANH,
    TANH_STEP_BITS,
    SigmoidScaling,
    sigmoid_table,
)


class Sigmoids(Protocol):
    """A way to look LOGISTIC and TANH up."""

    def logistic(self, x: te.Expr, scaling: SigmoidScaling) -> te.Expr:
        """Return LOGISTIC of a stored int16, as a stored value of scale 2^-15; INT32."""

    def tanh(self, x: te.Expr, scaling: SigmoidScaling) -> te.Expr:
        """Return TANH of a stored int16, as a stored value of scale 2^-15; INT32."""


class SigmoidTable:
    """The table as a constant of one function, and look-ups in it.

    Below 0 stands the mirror image: -1 less a height, whose bits are inverted then, and of LOGISTIC
    as much more as makes 1 of it.
    """

    def __init__(self) -> None:
        self._entries = te.constant(sigmoid_table(), "sigmoid_table")

    def logistic(self, x: te.Expr, scaling: SigmoidScaling) -> te.Expr:
        argument = _argument(x, scaling)
        height = self._looked_up(argument, LOGISTIC_STEP_BITS, SATURATED_LOGISTIC)
        mirrored = te.bind("mirrored", argument >> 31)
        return ((height ^ mirrored) + (mirrored & (1 << 25)) + (1 << 9)) >> 10

    def tanh(self, x: te.Expr, scaling: SigmoidScaling) -> te.Expr:
        argument = _argument(x, scaling)
        height = self._looked_up(argument, TANH_STEP_BITS, SATURATED_TANH) - (1 << 23)
        return ((height ^ (argument >> 31)) + (1 << 7)) >> 8

    def _looked_up(self, argument: te.Expr, step_bits: int, saturated: int) -> te.Expr:
        """Return the entries, with step_bits bits more, on the line from one to the next."""
        magnitude = te.bind("magnitude", te.abs(argument))
        step, way = magnitude >> step_bits, magnitude & ((1 << step_bits) - 1)
        # No magnitude is below 0: this says what the prover cannot know.
        below = te.bind("below", te.clamp(step, 0, LAST_STEP))
        # What saturates gets an end of the last line, which two large entries are.
        end = int(sigmoid_table()[-2:].tolist().index(saturated)) << step_bits
        way = te.select(step > LAST_STEP, end, way)
        first = te.bind("first", wide(self._entries[below]))
        return first * (1 << step_bits) + way * (wide(self._entries[below + 1]) - first)


class SignedLines:
    """Look-ups in the lines of arguments of both signs, a parameter (LINES, 2) of micro-kernels."""

    def __init__(self, lines: te.Tensor) -> None:
        self._lines = lines

    def logistic(self, x: te.Expr, scaling: SigmoidScaling) -> te.Expr:
        argument = self._clamped(_argument(x, scaling))
        return (self._height(argument) + (argument >> 31) + (1 << 9)) >> 10

    def tanh(self, x: te.Expr, scaling: SigmoidScaling) -> te.Expr:
        argument = self._clamped(te.clamp(_argument(x, scaling), -(1 << 16), (1 << 16) - 1) * 2)
        return (self._height(argument) + (argument >> 31) + (1 << 8) - (1 << 24)) >> 9

    def _clamped(self, argument: te.Expr) -> te.Expr:
        return te.bind("clamped", te.clamp(argument, -(1 << 17), (1 << 17) - 1))

    def _height(self, argument: te.Expr) -> te.Expr:
        """Return the height on a line, with LOGISTIC_STEP_BITS more."""
        line = te.bind(
            "line", te.clamp((argument >> LOGISTIC_STEP_BITS) + LINES // 2, 0, LINES - 1)
        )
        way = argument & ((1 << LOGISTIC_STEP_BITS) - 1)
        begin = ((1 << 15) - wide(self._lines[line, 1])) * (1 << LOGISTIC_STEP_BITS)
        return begin + way * wide(self._lines[line, 0])


def _argument(x: te.Expr, scaling: SigmoidScaling) -> te.Expr:
    half = (1 << scaling.right_shift) >> 1
    return te.bind("argument", (wide(x) * scaling.multiplier + half) >> scaling.right_shift)
