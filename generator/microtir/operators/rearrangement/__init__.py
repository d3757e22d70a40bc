"""Join what the sibling files say of operators that trade axes of blocks for others."""

from microtir.operators.rearrangement.definition import DEFINITIONS
from microtir.operators.rearrangement.formula import FORMULAS
from microtir.operators.rearrangement.meaning import MEANINGS
from microtir.operators.rearrangement.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
