"""Join what the sibling files say of operators that divide."""

from microtir.operators.division.definition import DEFINITIONS
from microtir.operators.division.formula import FORMULAS
from microtir.operators.division.meaning import MEANINGS
from microtir.operators.division.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
