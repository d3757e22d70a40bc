"""Join what the sibling files say of operators that cut samples into frames and join frames."""

from microtir.operators.framing.definition import DEFINITIONS
from microtir.operators.framing.formula import FORMULAS
from microtir.operators.framing.meaning import MEANINGS
from microtir.operators.framing.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
