"""Join what the sibling files say of the ring that tflite-micro's streaming models keep."""

from microtir.operators.circular_buffer import definition as circular_buffer
from microtir.operators.circular_buffer import formula, meaning, tflite
from microtir.operators.common.formula import WrittenFunction
from microtir.operators.record import join

RECORDS = join(
    circular_buffer.DEFINITIONS,
    {
        circular_buffer.CircularBuffer: (
            meaning.circular_buffer,
            WrittenFunction(formula.circular_buffer),
        ),
        circular_buffer.Countdown: (meaning.countdown, WrittenFunction(formula.countdown)),
    },
    tflite.READERS,
)
