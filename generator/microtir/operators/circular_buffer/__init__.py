"""Join what the sibling files say of the ring that tflite-micro's streaming models keep."""

from microtir.operators.circular_buffer.definition import DEFINITIONS
from microtir.operators.circular_buffer.formula import FORMULAS
from microtir.operators.circular_buffer.meaning import MEANINGS
from microtir.operators.circular_buffer.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
