"""Join what the sibling files say of operators whose results are conditions."""

from microtir.operators.conditions.definition import DEFINITIONS
from microtir.operators.conditions.formula import FORMULAS
from microtir.operators.conditions.meaning import MEANINGS
from microtir.operators.conditions.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
