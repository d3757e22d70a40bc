"""Join what the sibling files say of operators that repeat elements."""

from microtir.operators.record import join
from microtir.operators.repetition.definition import DEFINITIONS
from microtir.operators.repetition.formula import FORMULAS
from microtir.operators.repetition.meaning import MEANINGS
from microtir.operators.repetition.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
