"""Read CIRCULAR_BUFFER of tflite-micro, whose output is what it keeps."""

from __future__ import annotations

from microtir.operators.circular_buffer.definition import CircularBuffer
from microtir.operators.common.tflite_flexbuffer import CustomOptions
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader

_EVERY_RUN = (5, 13, 25)
_UNDECIDED = (2, 96)


def circular_buffer(operands: Operands) -> Converted:
    """Read the newest slot; the ring is what the output held before."""
    ring = operands.output.shape
    slot = operands.image(0)
    if len(ring) != 4 or ring[0] != 1 or slot != (1, 1, *ring[2:]):
        what = f"its input has the shape {slot}, its output {ring}"
        raise operands.malformed(what, "(1, 1, W, C) and (1, slots, W, C)")
    op = CircularBuffer()
    return Converted(op, operands.present, kept_output=True, period=_period(operands))


def _period(operands: Operands) -> int:
    """Return after how many runs the operators behind it run once.

    Without the option tflite-micro guesses by the number of slots; for one shape it counts how
    many of these operators its process has prepared so far, which no file says.
    """
    stated = 0
    if operands.custom_options:
        stated = CustomOptions.of(operands).integer("cycles_max", 0)
    if stated > 0:
        return stated
    _, slots, *rest = operands.output.shape
    if slots in _EVERY_RUN:
        return 1
    if tuple(rest) == _UNDECIDED:
        raise operands.unsupported(
            "its option cycles_max is missing",
            "a number, or another shape of a slot than (2, 96)",
            "export the model with cycles_max",
        )
    return 2


READERS = (TfliteReader(CircularBuffer, "CIRCULAR_BUFFER", circular_buffer, updates=True),)
