"""Join what the sibling files say of operators that move elements."""

from microtir.operators.movement.definition import DEFINITIONS
from microtir.operators.movement.formula import FORMULAS
from microtir.operators.movement.meaning import MEANINGS
from microtir.operators.movement.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
